"""Which recording answers a request. Pure.

A pack never asks word for word what somebody once recorded: its window is another one, its page may
be larger, it selects other fields. So parameters matter in different ways:

- where a page begins (offset, page, cursor, token, …) and which ids are asked for must be the same;
  a first page may be asked for in any way, or in none;
- what kind of answer is wanted (verb, db, format, …) must not contradict;
- who asks (mailto, email, tool, keys) and how long a page is are of no interest;
- all others decide between several recordings that fit: the fewest differences win, dates aside.

The method must be the same, but a form that is posted and the same parameters in an address are one
question. The path must be the same; a date in it may be another date. `Rules` says it otherwise.
Where several fit alike, the walk goes on in the sequence it is in, in its order; the last of them
answers whoever asks on.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from patra_ingest.model.secrets import is_secret_name
from patra_ingest.sandbox.recordings import Recording

_TOKENS = frozenset(
    (
        *("cursor", "cursormark", "nextcursor", "pagecursor", "searchafter", "after", "scrollid"),
        *("token", "pagetoken", "nexttoken", "nextpagetoken", "resumptiontoken", "continuation"),
    )
)
_POSITION = _TOKENS | {
    *("offset", "pageoffset", "start", "startrecord", "startindex", "startat", "retstart"),
    *("skip", "page", "pagenumber", "pageno", "p", "webenv", "querykey"),
}
_IDS = frozenset(
    (
        *("id", "ids", "idlist", "uid", "uids", "pmid", "pmids", "pmcids", "doi", "dois"),
        *("identifier", "identifiers"),
    )
)
_KIND = frozenset(
    ("verb", "db", "dbfrom", "cmd", "retmode", "rettype", "format", "wt", "metadataprefix")
)
_WHO = frozenset(("mailto", "email", "mail", "tool", "contact", "useragent"))
_SIZE = frozenset(
    (
        *("rows", "size", "limit", "perpage", "pagesize", "pagelimit", "retmax", "maxresults"),
        *("count", "num", "numrows", "hitsperpage", "resultsperpage", "batchsize"),
    )
)
_FIRST = frozenset({"", "0", "*"})
_DAY = r"(?<!\d)(?:19|20)\d\d{0}(?:0[1-9]|1[0-2]){0}(?:0[1-9]|[12]\d|3[01])(?!\d)"
_TIME = r"(?:[T +]?\d\d:?\d\d(?::?\d\d)?[\d.,]*Z?)?"
_DATE = re.compile(_DAY.replace("{0}", "[-/]?") + _TIME)
_DATE_IN_PATH = re.compile(_DAY.replace("{0}", "[-/]") + _TIME)  # eight digits may be an id
_PLAIN = re.compile(r"[^a-z0-9]")


@dataclass(frozen=True)
class Rules:
    """Names of parameters that matter otherwise than their names say."""

    position: frozenset[str] = frozenset()
    same: frozenset[str] = frozenset()  # must be equal, whatever they mean
    ignored: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Question:
    """What is asked: the method, the path, and all parameters, wherever they travel."""

    method: str
    path: str
    params: tuple[tuple[str, str], ...]

    @cached_property
    def shown(self) -> str:
        """The question in one line."""
        params = "&".join(f"{name}={value}" for name, value in self.params)
        return f"{self.method} {self.path}" + (f"?{params}" if params else "")


def read_question(method: str, url: str, body: str = "") -> Question:
    """Return the question of a request; a form and a JSON object are parameters too."""
    parts = urlsplit(url)
    params = parse_qsl(parts.query, keep_blank_values=True)
    sent, is_form = _sent(body)
    # NCBI and others take a form instead of a long address: that is no other question.
    kind = "GET" if method == "POST" and is_form else method
    return Question(kind, unquote(parts.path).rstrip("/"), tuple([*params, *sent]))


def _sent(body: str) -> tuple[list[tuple[str, str]], bool]:
    if body.lstrip()[:1] in ("{", "["):
        try:
            return list(_leaves("", json.loads(body))), False
        except ValueError:
            return [("body", body)], False
    return parse_qsl(body, keep_blank_values=True), bool(body)


def _leaves(name: str, tree: Any) -> Iterator[tuple[str, str]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _leaves(f"{name}.{key}" if name else key, value)
    elif isinstance(tree, list) and not any(isinstance(one, dict | list) for one in tree):
        yield name or "body", ",".join(str(one) for one in tree)
    elif isinstance(tree, list):
        for number, value in enumerate(tree):
            yield from _leaves(f"{name}.{number}", value)
    else:
        yield name, json.dumps(tree) if isinstance(tree, bool) or tree is None else str(tree)


@dataclass(frozen=True)
class Fit:
    """How well a recording answers a question: not at all, or with so many differences."""

    recording: Recording
    against: tuple[str, ...]  # why it is no answer, the weightiest reason first
    is_elsewhere: bool = False  # it is about another path
    is_other_count: bool = False  # one of both wants no records, only their number
    differences: int = 0  # dates aside
    exact_differences: int = 0

    @property
    def rank(self) -> tuple[bool, int, bool, int, int]:
        """The smaller, the better."""
        differences = (self.is_other_count, self.differences, self.exact_differences)
        return self.is_elsewhere, len(self.against), *differences


def fit(asked: Question, recording: Recording, rules: Rules) -> Fit:
    """Hold a question against the one that a recording answered."""
    if not recording.url:
        return Fit(recording, ("nobody recorded what it answered",), is_elsewhere=True)
    was = read_question(recording.method, recording.url, recording.asked_body)
    is_elsewhere = not _is_path(asked.path, was.path)
    against = [
        *([f"its path is {was.path}"] if is_elsewhere else []),
        *([f"it was asked by {was.method}"] if was.method != asked.method else []),
        *_unlike(_must(asked, rules), _must(was, rules)),
        *_contradictions(_values(asked, _KIND), _values(was, _KIND)),
    ]
    mine, its = _others(asked, rules), _others(was, rules)
    dated, exact = _count(_undated(mine), _undated(its)), _count(mine, its)
    is_other_count = _only_counts(asked) != _only_counts(was)
    return Fit(recording, tuple(against), is_elsewhere, is_other_count, dated, exact)


def _only_counts(question: Question) -> bool:
    return any(_plain(name) in _SIZE and value == "0" for name, value in question.params)


def leads_on(url: str, rules: Rules) -> bool:
    """Whether an address asks for a page that is not the first."""
    question = read_question("GET", url)
    return any(
        _is_position(name, value, rules) and not _is_first(_plain(name), value)
        for name, value in question.params
    )


def _is_path(asked: str, was: str) -> bool:
    mine, its = (_DATE_IN_PATH.sub("<date>", path).lower() for path in (asked, was))
    return mine == its


def _plain(name: str) -> str:
    """Return the last part of a name as it is compared: page[size] and pageSize are one."""
    return _PLAIN.sub("", name.rpartition(".")[2].lower())


def _must(question: Question, rules: Rules) -> dict[str, str]:
    """Return where the page begins, and of what: a first page is the same however it is asked."""
    found: dict[str, str] = {}
    ids: set[str] = set()
    for name, value in question.params:
        plain = _plain(name)
        if name in rules.same:
            found[name] = value
        elif name in rules.ignored:
            continue
        elif _is_position(name, value, rules):
            found |= {} if _is_first(plain, value) else {name: _decoded(value)}
        elif plain in _IDS:
            ids |= {one for one in re.split(r"[,\s]+", value) if one}
    if any(_plain(name) in _TOKENS for name in found):  # a token says it all
        numbers = _POSITION - _TOKENS
        found = {name: value for name, value in found.items() if _plain(name) not in numbers}
    return {**found, "ids": ",".join(sorted(ids))} if ids else found


def _decoded(token: str) -> str:
    """Return a token as it is meant: some are handed out encoded, and not all encode them again."""
    plain = unquote(token)
    return token if plain == token else _decoded(plain)


def _is_position(name: str, value: str, rules: Rules) -> bool:
    plain = _plain(name)
    is_offset = plain == "from" and value.isdigit() and len(value) < len("20250101")  # no date
    return name in rules.position or plain in _POSITION or is_offset


def _is_first(plain: str, value: str) -> bool:
    return value in _FIRST or (value == "1" and ("page" in plain or plain == "cursor"))


def _unlike(asked: Mapping[str, str], was: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*asked, *was}):
        if asked.get(name) != was.get(name):
            yield f"its {name} is {was[name]:.60}" if name in was else f"it has no {name}"


def _values(question: Question, names: frozenset[str]) -> dict[str, str]:
    return {_plain(name): value.lower() for name, value in question.params if _plain(name) in names}


def _contradictions(asked: Mapping[str, str], was: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*asked} & {*was}):
        if asked[name] != was[name]:
            yield f"its {name} is {was[name]:.60}"


def _others(question: Question, rules: Rules) -> Counter[tuple[str, str]]:
    return Counter(
        (name, value)
        for name, value in question.params
        if name not in rules.ignored and not _is_aside(name, value, rules)
    )


def _is_aside(name: str, value: str, rules: Rules) -> bool:
    plain = _plain(name)
    is_known = _is_position(name, value, rules) or plain in _IDS | _WHO | _SIZE
    return is_known or is_secret_name(plain, as_parameter=True)


def _undated(params: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    return Counter((name, _DATE.sub("<date>", value)) for name, value in params.elements())


def _count(mine: Counter[tuple[str, str]], its: Counter[tuple[str, str]]) -> int:
    return (mine - its).total() + (its - mine).total()


@dataclass
class Memory:
    """What was answered so far: that is how answers to one and the same question take turns."""

    served: Counter[str] = field(default_factory=Counter)
    sequence: str | None = None


def choose(
    asked: Question, recordings: Sequence[Recording], memory: Memory, rules: Rules | None = None
) -> Fit | list[Fit]:
    """Return the recording that answers a question and remember it; else the three closest."""
    fits = [fit(asked, one, rules or Rules()) for one in recordings]
    good = [one for one in fits if not one.against]
    if not good:
        return sorted(fits, key=lambda one: one.rank)[:3]
    best = min(one.rank for one in good)
    alike = [one for one in good if one.rank == best]
    here = [one for one in alike if _sequence(one.recording) == memory.sequence] or alike
    # In their order; who asks on after the last is told the last again.
    chosen = next((one for one in here if not memory.served[one.recording.name]), here[-1])
    _remember(chosen.recording, recordings, memory)
    return chosen


def _sequence(recording: Recording) -> str | None:
    return recording.sequence.id if recording.sequence else None


def _remember(recording: Recording, recordings: Sequence[Recording], memory: Memory) -> None:
    place = recording.sequence
    if place and place.page == 1:  # a walk that begins again
        for one in recordings:
            if one.sequence and one.sequence.id == place.id:
                memory.served[one.name] = 0
    memory.sequence = _sequence(recording)
    memory.served[recording.name] += 1
