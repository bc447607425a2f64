"""Templates: they parse, use only known names, and carry what must reach the source."""

import re
from collections.abc import Iterable, Iterator, Mapping

from patra_ingest.expr.safe_regex import safe_regex
from patra_ingest.expr.template import compile_template
from patra_ingest.model.codes import TimeUnit, UpperBound
from patra_ingest.spec.freeze import body_texts, placed_params
from patra_ingest.spec.places import Param, templates_of
from patra_ingest.spec.platform import LETTERS
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.subject import Subject, names_in
from patra_ingest.spec.words import Meaning, PagingType

_PARTS = ("query", "first", "next", "form")
_WINDOW = r"\$\{\s*window\.(?:from|to|last)[^}]*\|\s*"
_NAMED = re.compile(_WINDOW + r"(date|isoSeconds|iso)\s*[|}]")
_SECONDS = "yyyy-MM-dd HH:mm:ss"
_SHOWN = {"date": "yyyy-MM-dd", "iso": _SECONDS, "isoSeconds": _SECONDS}
_FORMATTED = re.compile(_WINDOW + r"""format(?:DateTime)?\(\s*['"]?([^'")]*)""")
_ZONED = re.compile(r"""zone\(\s*['"]?([^'")]*)""")
_PLACE = re.compile(r"\$\{[^}]*\}")
_FOREIGN = ("params", "ids", "query", "asked", "page.token", "split")
_POSITION = {
    PagingType.OFFSET: "page.offset",
    PagingType.PAGE: "page.number",
    PagingType.TOKEN: "page.token",
}


def templates_parse(subject: Subject) -> Iterator[Problem]:
    """Every template is closed, calls functions of the whitelist, and knows its names."""
    known = subject.known_names()
    for where, text in _templates(subject):
        try:
            reasons = compile_template(text).check(known)
        except ValueError as error:
            yield Problem(where, str(error), "correct the template")
            continue
        for reason in reasons:
            yield Problem(where, reason, f"known names: {', '.join(sorted(known))}")


def _templates(subject: Subject, clauses: bool = True) -> Iterator[tuple[str, str]]:
    """Yield every template with its place; without `clauses` only those that stand alone."""
    request, http = subject.shaped.request, subject.shaped.http
    yield "request.path", request.path or ""
    for part in _PARTS:
        yield from _of_params(f"request.{part}", getattr(request, part), clauses)
    yield from _of_params("request.headers", request.headers, clauses)
    yield from _of_params("http.query", http.query, clauses)
    yield from _of_params("http.headers", http.headers, clauses)
    for text in body_texts(request.body):
        yield "request.body", text
    for number, expectation in enumerate(subject.shaped.response.expect or ()):
        if expectation.equals is not None:
            yield f"response.expect.{number}.equals", expectation.equals
    probe = subject.shaped.cap.probe
    if probe:
        yield from _of_params("cap.probe.query", probe.query, clauses)
        yield from _of_params("cap.probe.form", probe.form, clauses)
        yield from (("cap.probe.body", text) for text in body_texts(probe.body))


def _of_params(
    where: str, params: Mapping[str, str | Param | None] | None, clauses: bool
) -> Iterator[tuple[str, str]]:
    for name, param in (params or {}).items():
        in_clauses = isinstance(param, Param) and param.clauses is not None
        if param is not None and (clauses or not in_clauses):
            yield from ((f"{where}.{name}", text) for text in templates_of(param))


def patterns_parse(subject: Subject) -> Iterator[Problem]:
    """The pattern a value must match is a regular expression."""
    request, probe = subject.shaped.request, subject.shaped.cap.probe
    maps = {f"request.{part}": getattr(request, part) for part in _PARTS}
    maps |= {"http.query": subject.shaped.http.query, "cap.probe.query": probe and probe.query}
    maps |= {"cap.probe.form": probe and probe.form}
    for where, params in maps.items():
        for name, param in (params or {}).items():
            if isinstance(param, Param) and param.pattern is not None:
                try:
                    safe_regex(param.pattern, needs_group=False)
                except ValueError as error:
                    yield Problem(f"{where}.{name}.pattern", str(error), "correct the pattern")


def the_page_reaches_the_request(subject: Subject) -> Iterator[Problem]:
    """Else every page would be page 1."""
    paging = subject.shaped.paging
    wanted = _POSITION.get(paging.type) if paging.type else None
    if wanted is None or subject.by_ids or subject.uses(wanted, without="first"):
        return
    placed = {template for _name, template in placed_params(subject.shaped)}
    if f"${{{wanted}}}" not in placed:
        key = {"page.offset": "offset", "page.number": "page", "page.token": "token"}[wanted]
        yield Problem(
            "request.query",
            f"never uses ${{{wanted}}}",
            f"name it in paging.{key}_param: every page would be page 1",
        )


def the_window_reaches_the_request(subject: Subject) -> Iterator[Problem]:
    """Else every slice would ask for everything."""
    window = subject.shaped.window
    if subject.by_ids or window.meaning == Meaning.NONE:
        return
    if not subject.uses("window.from", without="next"):
        yield Problem("request.query", "never uses ${window.from}", "filter by the window's start")
    uses_end = subject.uses("window.to", "next") or subject.uses("window.last", "next")
    if not uses_end and window.upper_bound != UpperBound.OPEN:
        yield Problem(
            "window.upper_bound",
            "the request sends no end of the window",
            "use ${window.last}, or say upper_bound: OPEN",
        )
    if uses_end and window.upper_bound == UpperBound.OPEN:
        yield Problem("window.upper_bound", "is OPEN but an end is sent", "say how it is counted")


def the_end_is_the_right_one(subject: Subject) -> Iterator[Problem]:
    """An inclusive end names the last grain inside the window, an exclusive one its end."""
    bound = subject.shaped.window.upper_bound
    if bound == UpperBound.INCLUSIVE and subject.uses("window.to"):
        yield Problem(
            "window.upper_bound",
            "is INCLUSIVE but ${window.to} is sent: its first grain belongs to the next slice",
            "send ${window.last}, or say upper_bound: EXCLUSIVE",
        )
    if bound == UpperBound.EXCLUSIVE and subject.uses("window.last"):
        yield Problem(
            "window.upper_bound",
            "is EXCLUSIVE but ${window.last} is sent: the last grain would be lost",
            "send ${window.to}, or say upper_bound: INCLUSIVE",
        )


def times_show_the_grain(subject: Subject) -> Iterator[Problem]:
    """A window of seconds that a template writes in days asks for other records than its own."""
    window = subject.shaped.window
    letters = LETTERS[window.granularity or TimeUnit.SECOND]
    for where, text in _templates(subject):
        for pattern in (*_NAMED.findall(text), *_FORMATTED.findall(text)):
            if letters not in _SHOWN.get(pattern, pattern):
                yield Problem(
                    where,
                    f"{pattern} does not show the {window.granularity} the source filters by",
                    "write it finer, or say a coarser window.granularity",
                )


def utc_is_written_in_utc(subject: Subject) -> Iterator[Problem]:
    """A Z behind the clock of another zone is hours off, in silence."""
    zone, written = subject.shaped.window.zone, subject.shaped.window.format or ""
    if zone != "UTC" and "Z" in written:
        yield Problem("window.format", f"writes Z behind the clock of {zone}", "drop the Z")
    for where, text in _templates(subject):
        for pattern in _FORMATTED.findall(text):
            moved = _ZONED.findall(text)
            shown = moved[-1] if moved else zone
            if shown != "UTC" and "Z" in pattern:
                yield Problem(where, f"writes Z behind the clock of {shown}", "use |iso, or drop Z")


def what_may_be_null_stands_alone(subject: Subject) -> Iterator[Problem]:
    """Inside a longer text a null leaves a hole; a clause would be dropped whole."""
    nullable = ["query", "split", "asked.", "identity.contact"]
    nullable += [] if subject.shaped.paging.initial_token else ["page.token"]
    for values in (subject.shaped.endpoint.partitions or {}).values():
        nullable += [f"partition.{name}" for name, value in values.items() if value is None]
    for where, text in _templates(subject, clauses=False):
        for place in _PLACE.findall(text):
            names = names_in(place)
            guarded = "?" in place or "default(" in place or "coalesce(" in place
            if place != text.strip() and not guarded and _any_of(names, nullable):
                yield Problem(
                    where,
                    f"{place} may be null inside a longer text",
                    "make it a clause, or write ${name?} where nothing may stand",
                )


def _any_of(names: Iterable[str], prefixes: Iterable[str]) -> bool:
    return any(name.startswith(tuple(prefixes)) for name in names)


def values_in_the_path_are_segments(subject: Subject) -> Iterator[Problem]:
    """What a person or a source wrote cannot lead to another path."""
    for place in _PLACE.findall(subject.shaped.request.path or ""):
        foreign = any(name.startswith(_FOREIGN) for name in names_in(place))
        if foreign and "|segment" not in place.replace(" ", ""):
            yield Problem("request.path", f"{place} may hold a slash", "add |segment to it")


def parameters_are_used(subject: Subject) -> Iterator[Problem]:
    """A parameter that no template takes would change nothing, in silence."""
    both = [subject, *([subject.detail] if subject.detail else [])]
    texts = [text for each in both for _where, text in _templates(each)]
    used = {name for text in texts for name in names_in(text)}
    for name in sorted(subject.params):
        if f"params.{name}" not in used:
            yield Problem(
                f"--set params.{name}",
                "no template of this endpoint uses it",
                f"remove it, or use ${{params.{name}}} in the pack",
            )


def ids_reach_the_request(subject: Subject) -> Iterator[Problem]:
    """An endpoint that is asked for ids sends them; another one has none."""
    names = {name for name, text in placed_params(subject.shaped) if "${ids" in str(text)}
    sends = bool(names) or subject.uses("ids")
    for where, text in _templates(subject):
        for place in _PLACE.findall(text):
            several = "ids" in names_in(place) and "join(" not in place.replace(" ", "")
            if several and (where == "request.path" or place != text.strip()):
                yield Problem(where, f"{place} is a list inside a text", "add |join(',') to it")
    if subject.by_ids and not sends:
        yield Problem("request.query", "never uses ${ids}", "name them in batching.ids_param")
    if subject.by_ids and subject.uses("window"):
        yield Problem("request.query", "uses ${window}, which ids do not have", "remove it")
    if sends and not subject.by_ids:
        yield Problem("request.query", "uses ${ids}, which a window does not have", "remove it")


def partitions_are_used(subject: Subject) -> Iterator[Problem]:
    """Each partition asks something of its own, and all have the same names."""
    partitions = subject.shaped.endpoint.partitions or {}
    names = [frozenset(values) for values in partitions.values()]
    if len(set(names)) > 1:
        yield Problem("endpoint.partitions", "differ in their names", "give all the same names")
    if partitions and not subject.uses("partition"):
        yield Problem(
            "endpoint.partitions", "no template uses ${partition.…}", "use it, or remove them"
        )


CHECKS = (
    templates_parse,
    patterns_parse,
    the_page_reaches_the_request,
    the_window_reaches_the_request,
    the_end_is_the_right_one,
    times_show_the_grain,
    utc_is_written_in_utc,
    what_may_be_null_stands_alone,
    values_in_the_path_are_segments,
    parameters_are_used,
    ids_reach_the_request,
    partitions_are_used,
)
