"""Packs of every kind, drawn from the models of the pack language itself."""

import re
import types
from datetime import timedelta
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Le, MinLen
from hypothesis import reject
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from patra_ingest.errors import PackError
from patra_ingest.expr import query_rules
from patra_ingest.registry import pack as packs
from patra_ingest.registry.pack_file import PackText
from patra_ingest.spec import parts, places, planning, policies, splits, words
from patra_ingest_tests.builders import an_endpoint, by_token, pack_text

Strategy = st.SearchStrategy[Any]

ODD = [
    *("${window.from}", "${ids|join(',')}", '"', "'", "a: b", "- x", "# x", "{{v}}", "[]", "{}"),
    *("null", "yes", "010", "2025-01-01", "é", "漢字", "🧬", " both ", "\\", "%", "a\tb"),
    *("line\nline", "<<", "*x", "&x", "!x", "@", "`", "~", "0", "", "x" * 60, ".", "=", "?"),
]
PRINTABLE = st.characters(max_codepoint=0xFFFD, exclude_categories=["C", "Zl", "Zp"])
_LIKE_NUMBER = re.compile(r"[-+.0-9]+[eE][-+0-9]+")  # `show` does not quote 1e3 yet
texts = st.sampled_from(ODD) | st.text(PRINTABLE, max_size=12).filter(
    lambda text: not _LIKE_NUMBER.fullmatch(text)
)
some = texts.filter(bool)
long_texts = texts | st.just("é" * 5000)
names = st.sampled_from(["q", "filter", "x-odd", "Ünï", "a.b", "from", "0", "rows[]"])
keys = st.sampled_from(["title", "year", "k_1", "z"])
trees = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | long_texts | st.just(0.1),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=4,
)
fractions = [0.1, 0.333333333, 1.0, 2.5, 0.0000001, 0.5, 1 / 3, 3.0, 1234.567891]
statuses = st.integers(100, 599)
durations = (
    st.sampled_from(["1ms", "500ms", "1s500ms", "90s", "1h30m", "36h", "7d", "1d1ms"])
    | st.integers(1, 10**9).map(lambda number: f"{number}ms")
    | st.just("PT0.000001S")
)


def said(required: dict[str, Strategy], /, **optional: Strategy) -> Strategy:
    """Return mappings with all of the required keys and any of the others."""
    return st.fixed_dictionaries(required, optional=optional)


def one_of_keys(*choices: str, **optional: Strategy) -> Strategy:
    """Return mappings with exactly one of the keys, and any of the others."""
    return st.one_of(*(said({choice: some}, **optional) for choice in choices))


def spelled(part: type[BaseModel], /, **own: Strategy) -> Strategy:
    """Return what may be said of a part: what it requires, and any of its other keys."""
    hints = get_type_hints(part, include_extras=True)
    said_of = [name for name in part.model_fields if name not in ("use", "parameters")]  # files'
    known = {name: own[name] if name in own else value_of(hints[name]) for name in said_of}
    required = {name for name, field in part.model_fields.items() if field.is_required()}
    return said(
        {name: known[name] for name in known if name in required},
        **{name: known[name] for name in known if name not in required},
    )


def value_of(hint: Any) -> Strategy:
    """Return what may be said where the language expects `hint`."""
    for special, strategy in SPECIAL:
        if hint is special:
            return strategy
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return bounded(inner[0], [limit for one in inner[1:] for limit in limits(one)])
    if origin in (Union, types.UnionType):
        return st.one_of(*(value_of(one) for one in inner if one is not type(None)))
    if origin is tuple:
        return st.lists(value_of(inner[0]), min_size=1, max_size=3)
    if origin is dict:
        keyed = names if inner[0] is str else value_of(inner[0])
        return st.dictionaries(keyed, optional(inner[1]), max_size=3)
    return st.sampled_from(inner) if origin is Literal else plain(hint)


def optional(hint: Any) -> Strategy:
    return value_of(hint) | st.none() if type(None) in get_args(hint) else value_of(hint)


def plain(hint: Any) -> Strategy:
    if issubclass(hint, Enum):
        return st.sampled_from([member.value for member in hint])
    if issubclass(hint, BaseModel):
        return MODELS[hint]() if hint in MODELS else spelled(hint)
    return PLAIN[hint]


def limits(metadata: Any) -> list[Any]:
    return metadata.metadata if isinstance(metadata, FieldInfo) else [metadata]


def bounded(kind: Any, found: list[Any]) -> Strategy:
    low: Any = max((one.ge for one in found if isinstance(one, Ge)), default=0)
    high: Any = min((one.le for one in found if isinstance(one, Le)), default=10**9)
    if kind is int:
        return st.integers(low, high)
    if kind is float:
        return st.sampled_from([one for one in fractions if low <= one <= high])
    if kind is str and any(isinstance(one, MinLen) for one in found):
        return some
    return value_of(kind)


PLAIN = {
    str: texts,
    bool: st.booleans(),
    int: st.integers(1, 2**31 - 1),
    timedelta: durations,
}
SPECIAL: list[tuple[Any, Strategy]] = [
    (Any, trees),
    (
        words.Instant,
        st.sampled_from(["2025-01-01T00:00:00Z", "2024-02-29T23:59:59.5Z", "1999-01-01T00:00:00Z"]),
    ),
    (packs.Operation, st.sampled_from(["HARVEST", "BACKFILL", "UPDATE"])),
    (words.Zone, st.sampled_from(["UTC", "Asia/Tokyo", "America/New_York"])),
    (planning.Clock, st.sampled_from(["21:00-05:00", "00:00-06:30", "08:15-23:59"])),
    (words.Name, st.sampled_from(["works", "a", "0", "x.y-z_1"])),
    (words.RateKey, st.sampled_from(["shared", "a:b", "0"])),
    (words.Text, texts | st.integers(0, 99)),
    (words.SecretRef, st.sampled_from(["env:A_KEY", "file:/run/secrets/key", "env:_x9"])),
    (query_rules.Name, keys),
    (query_rules.Pattern, st.sampled_from(["a+", "[^ ]+", ""])),
]


def param() -> Strategy:
    """Return parameters in full; one with a value alone would be the same as its short form."""
    more = {"join": texts, "required": st.booleans(), "repeat": st.booleans(), "keep": texts}
    return said({"value": texts, "pattern": texts}, **more) | said(
        {"clauses": st.lists(texts, max_size=3)}, **more
    )


def when() -> Strategy:
    tested = said(
        {"path": some, "equals": st.booleans() | st.integers(-5, 5) | texts},
        one_of=st.lists(texts, max_size=2),
        status=statuses,
    )
    return (
        said({"status": statuses | st.lists(statuses, min_size=1, max_size=3)}, text=texts)
        | said({"header": some, "exists": st.booleans()})
        | tested
    )


def capability() -> Strategy:
    ranges = [
        {"ops": ["RANGE"], "range": "DATE", "open_end": False},
        {"ops": ["RANGE"], "range": "DATETIME", "min": "2000-01-01T00:00:00Z"},
        {"ops": ["RANGE"], "range": "NUMBER", "open_start": False},
    ]
    unranged = spelled(query_rules.Capability, range=st.just("NONE"))
    return st.sampled_from(ranges) | unranged.map(
        lambda found: {key: value for key, value in found.items() if key not in ("min", "max")}
    )


MODELS: dict[type[BaseModel], Any] = {
    places.Param: param,
    places.When: when,
    places.Expectation: lambda: said({"path": texts, "equals": texts}),
    places.NextPlace: lambda: one_of_keys("path", "header", "link", "last_item", param=texts),
    places.Total: lambda: one_of_keys("path", "header", is_estimate=st.booleans()),
    places.Moment: lambda: one_of_keys("path", "header"),
    splits.NumberSplit: lambda: spelled(
        splits.NumberSplit, lowest=st.just(-1), highest=st.integers(0, 2**53)
    ),
    splits.ValueSplit: lambda: spelled(
        splits.ValueSplit, values=st.lists(texts, min_size=2, max_size=3)
    ),
    splits.PrefixSplit: lambda: spelled(splits.PrefixSplit, alphabet=st.just("ab漢")),
    policies.BatchingPart: lambda: spelled(policies.BatchingPart, join=st.sampled_from([",", "+"])),
    query_rules.Capability: capability,
    parts.ParamNames: lambda: spelled(parts.ParamNames, offset=some),
}


@st.composite
def books(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a query book whose fields are all spoken of; a rule stands once for what it is for."""
    used = draw(st.lists(keys, min_size=1, max_size=3, unique=True))
    rule = spelled(query_rules.RenderRule, field=st.sampled_from(used), joiner=st.just(" OR "))
    target = ("field", "op", "match", "negated", "value_type", "emit")
    rules = st.lists(rule, max_size=3, unique_by=lambda one: tuple(map(one.get, target)))
    params = spelled(query_rules.ParamRule, notes=trees.filter(lambda it: it is not None))
    return {
        **draw(said({}, syntax=st.sampled_from(["NONE", "PUBMED"]), everything=texts)),
        "fields": {name: draw(spelled(query_rules.QueryField)) for name in used},
        "capabilities": {name: draw(value_of(query_rules.Capability)) for name in used},
        "rules": draw(rules),
        "params": draw(st.lists(params, max_size=3, unique_by=lambda one: one["key"])),
    }


def without_empty(found: dict[str, Any]) -> dict[str, Any]:
    """Leave out what says nothing: a row cannot say that."""
    return {key: value for key, value in found.items() if value != {}}


def credentials() -> Strategy:
    """Return auth parts; of several credentials one may be preferred."""
    found = st.dictionaries(names, value_of(policies.Credential), min_size=1, max_size=3)
    one_preferred = found.map(
        lambda them: {
            name: {**it, "preferred": it.get("preferred", False) and name == min(them)}
            for name, it in them.items()
        }
    )
    return said({}, required=st.booleans(), use=some, credentials=one_preferred)


def endpoints() -> Strategy:
    operation = value_of(packs.Operation)
    cron = said({"cron": st.just("*/5 3 * * 1-5")}, enabled=st.booleans())
    field = texts | said({"path": texts}, required=st.booleans())
    return spelled(
        packs.EndpointPart,
        operations=st.dictionaries(operation, spelled(packs.OperationPart), max_size=3),
        fields=st.dictionaries(names, field, max_size=3),
        schedule=st.dictionaries(operation, cron, max_size=2),
        auth=credentials(),
    )


def _forms() -> Strategy:
    provenance = said(
        {"code": st.just("example"), "name": some, "base_url": st.just("https://example.org")},
        timezone=value_of(words.Zone),
        docs_url=some,
        evidence=said({"date": st.dates().map(str)}, grade=st.just("LIVE"), note=some),
    )
    operation = spelled(packs.Dimensions).map(without_empty).filter(bool)
    return spelled(
        packs.Pack,
        provenance=provenance,
        effective_from=st.none(),
        auth=credentials(),
        expressions=books(),
        operations=st.dictionaries(value_of(packs.Operation), operation, max_size=2),
        endpoints=st.dictionaries(value_of(words.Name), endpoints(), min_size=1, max_size=2),
    )


_FORMS = _forms()


@st.composite
def whole_packs(draw: st.DrawFn) -> packs.Pack:
    """Draw a pack that says anything the language knows, whether it makes sense or not."""
    try:
        return packs.parse_pack(PackText("a drawn pack", draw(_FORMS), {}))
    except PackError:
        return reject()


def a_full_pack(**differences: Any) -> packs.Pack:
    """Return a pack that has a row in every table of the Registry."""
    works = an_endpoint(schedule={"HARVEST": "0 3 * * *"})
    key = {"type": "API_KEY", "field": "api_key", "secret": "env:EXAMPLE_KEY"}
    parts = {
        **pack_text(works=works, tokens=by_token()),
        "batching": {"ids_per_request": 50},
        "planning": {"records_per_slice": 1000},
        "auth": {"credentials": {"key": key}},
        "expressions": a_book(),
    }
    return packs.parse_pack(PackText("the test's pack", {**parts, **differences}, {}))


def a_book(
    name: str = "Title", template: str = "ti:{{v}}", param: str = "q", min_length: int = 1
) -> dict[str, Any]:
    """Return a small query book."""
    able = {"ops": ["TERM"], "matches": ["ANY"], "min_length": min_length}
    return {
        "fields": {"title": {"type": "TEXT", "name": name}},
        "capabilities": {"title": able},
        "rules": [{"field": "title", "op": "TERM", "match": "ANY", "template": template}],
        "params": {"query": param},
    }
