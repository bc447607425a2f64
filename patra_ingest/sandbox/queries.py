"""What a caller of `/works` asks for, or why Crossref would refuse it. Pure.

Crossref checks every parameter and answers 400 with a list of reasons; so do we, because an
upstream that ignores a misspelt filter hides the mistake until data is missing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import parse_qsl

from patra_ingest.sandbox.tokens import read_token
from patra_ingest.sandbox.world import World

MAX_ROWS = 1000
MAX_OFFSET = 10_000  # offset + rows; whoever wants more must use a cursor
_PARAMETERS = ("rows", "offset", "cursor", "filter", "sort", "order", "select", "mailto")
_FILTERS = ("from-index-date", "until-index-date", "doi")
_NUMBER = re.compile(r"[0-9]{1,9}")
_DATE = re.compile(r"[0-9]{4}(-[0-9]{2}){2}(T[0-9]{2}(:[0-9]{2}){0,2})?")
_SECONDS = {10: 86_400, 13: 3_600, 16: 60, 19: 1}  # length of a written date → what it spans


@dataclass(frozen=True)
class Query:
    """A request that can be answered: a page of `rows` works, `position` works into `works`."""

    works: Sequence[int]
    position: int
    rows: int
    scope: str  # what a cursor belongs to: it is worth nothing with another filter or order
    cursor: str | None
    select: tuple[str, ...]

    @property
    def page(self) -> Sequence[int]:
        """The works to be sent."""
        return self.works[self.position : self.position + self.rows]

    @property
    def page_key(self) -> str:
        """The page's name: two requests with this name want the same works."""
        return f"{self.scope}@{self.position}+{self.rows}"


@dataclass(frozen=True)
class Refusal:
    """Why a request is not answered, in Crossref's words."""

    status: int
    type: str
    value: str
    message: str


@dataclass(frozen=True)
class _Span:
    first: int | None
    past: int | None
    dois: frozenset[str] = frozenset()


def read_query(world: World, query_string: str, newest: int | None = None) -> Query | Refusal:
    """Return what is asked for, or the first reason to refuse it.

    Works that are indexed after the second `newest` are not there yet.
    """
    asked = dict(parse_qsl(query_string, keep_blank_values=True))
    span = _read_filter(asked.get("filter", ""))
    if isinstance(span, Refusal):
        return span
    refusal = _refuse_names(asked) or _refuse_numbers(asked) or _refuse_choices(asked)
    if refusal:
        return refusal

    order = asked.get("order", "asc")
    works: Sequence[int] = world.within(span.first, span.past, newest)
    if span.dois:
        known = (world.index_of(doi) for doi in span.dois)
        works = sorted(index for index in known if index is not None and index in works)
    scope = asked.get("filter", "") + (",desc" if order == "desc" else "")
    cursor = asked.get("cursor")
    position = int(asked.get("offset", 0))
    if cursor is not None and cursor != "*":
        found = read_token(cursor, scope)
        if found is None:
            return Refusal(404, "cursor-invalid", cursor, "Cursor specified but it is invalid")
        position = found
    return Query(
        works=works if order == "asc" else works[::-1],
        position=position,
        rows=int(asked.get("rows", 20)),
        scope=scope,
        cursor=cursor,
        select=tuple(asked["select"].split(",")) if asked.get("select") else (),
    )


@lru_cache(maxsize=4096)
def _read_filter(written: str) -> _Span | Refusal:
    """Return the seconds that a filter lets through; both its bounds are inclusive."""
    bounds: dict[str, list[tuple[int, int]]] = {name: [] for name in _FILTERS}
    dois: set[str] = set()
    for part in filter(None, written.split(",")):
        name, _, value = part.partition(":")
        if name == "doi":
            dois.add(value.lower())
            continue
        if name not in bounds:
            valid = ", ".join(_FILTERS)
            text = f"Filter '{name}' specified but there is no such filter for this route."
            return _invalid("filter-not-available", name, f"{text} Valid filters are: {valid}")
        span = _read_date(value)
        if span is None:
            text = f"Filter '{name}' specified as '{value}' but must be a date or a time in UTC"
            return _invalid("date-not-valid", value, f"{text} without a zone, to the second")
        bounds[name].append(span)
    # Crossref joins filters of one name by OR, so the widest bound wins.
    return _Span(
        first=min((first for first, _ in bounds["from-index-date"]), default=None),
        past=max((past for _, past in bounds["until-index-date"]), default=None),
        dois=frozenset(dois),
    )


def _read_date(value: str) -> tuple[int, int] | None:
    """Return the seconds `[first, past)` that a day, hour, minute or second stands for."""
    if not _DATE.fullmatch(value):
        return None
    try:
        first = int(datetime.fromisoformat(value).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None
    return first, first + _SECONDS[len(value)]


def _refuse_names(asked: dict[str, str]) -> Refusal | None:
    for name in asked:
        if name not in _PARAMETERS:
            return _invalid("parameter-not-allowed", name, f"This route does not support {name}")
    if "cursor" in asked and "offset" in asked:
        text = "Cursor and offset cannot be combined"
        return _invalid("parameter-not-allowed", "offset", text)
    return None


def _refuse_numbers(asked: dict[str, str]) -> Refusal | None:
    for name, most in (("rows", MAX_ROWS), ("offset", MAX_OFFSET)):
        value = asked.get(name, "0")
        if not _NUMBER.fullmatch(value) or int(value) > most:
            text = f"Integer specified as {value} but must be a positive integer less than"
            return _invalid("integer-not-valid", value, f"{text} or equal to {most}.")
    offset = asked.get("offset", "0")
    if "cursor" not in asked and int(offset) + int(asked.get("rows", 20)) > MAX_OFFSET:
        text = f"Offset and rows reach past {MAX_OFFSET}."
        remedy = "Use the cursor parameter to page further into result sets."
        return _invalid("integer-not-valid", offset, f"{text} {remedy}")
    return None


def _refuse_choices(asked: dict[str, str]) -> Refusal | None:
    for name, valid in (("sort", ("indexed",)), ("order", ("asc", "desc"))):
        value = asked.get(name, valid[0])
        if value not in valid:
            text = f"{name.capitalize()} specified as {value} but must be one of:"
            return _invalid(f"{name}-not-valid", value, f"{text} {', '.join(valid)}")
    return None


def _invalid(kind: str, value: str, message: str) -> Refusal:
    return Refusal(400, kind, value, message)
