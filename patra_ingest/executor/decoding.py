"""An answer becomes items, a total and what leads to the next page; or an error, never zero items.

What an answer lacks, or says differently from what was declared, halts the endpoint: from then on
nobody can tell an empty answer from a changed one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from patra_ingest.errors import EndpointHalted
from patra_ingest.executor.drift import found_instead
from patra_ingest.executor.items import Items, find_items, group_items
from patra_ingest.executor.malformed import Body, count_malformed, set_aside
from patra_ingest.executor.places import (
    find_gone,
    find_more,
    find_next,
    find_step,
    find_total,
    needs_last_item,
    shown,
)
from patra_ingest.executor.trees import BodyUnreadable, plain, read_tree, unreadable
from patra_ingest.executor.triage import shown_answer
from patra_ingest.expr.functions import to_text
from patra_ingest.expr.path import Path, compile_path
from patra_ingest.expr.safe_regex import SafeRegex, safe_regex
from patra_ingest.expr.template import compile_template
from patra_ingest.spec.paging import Paging
from patra_ingest.spec.places import Expectation
from patra_ingest.spec.snapshot import CallSpec, ResponseSpec
from patra_ingest.transport.messages import Response

__all__ = ["BodyUnreadable", "Decoded", "decode", "path", "plain", "read_tree"]


@dataclass(frozen=True)
class Decoded:
    """What one page holds."""

    items: list[Any]
    total: int | None = None
    next: str | None = None  # the token or the address that the answer hands out
    has_more: bool | None = None
    step: int | None = None  # how far the source says the offset must move
    gone: tuple[str, ...] = ()  # ids that the source reports as deleted
    places: tuple[str, ...] | None = None  # the ids that the items stand for, one each
    is_ruled: bool = False  # an error rule says that there is nothing; the body was not read


def decode(
    response: Response,
    tree: Any,
    call: CallSpec,
    paging: Paging | None,
    variables: Mapping[str, object],
) -> Decoded:
    """Read a page; raise EndpointHalted when it is not what this source is known to send."""
    if isinstance(tree, Body):
        _require_only_items(response, tree, call.response, paging)
    try:
        _require_all(tree, call.response)
        for expectation in call.response.expect:
            _require_expected(tree, expectation, variables)
        return _decoded(response, tree, call.response, paging, variables)
    except ValueError as error:
        raise EndpointHalted(
            f"{response.url}: {error}; the source has changed its shape, or has not done as asked:"
            f" {shown_answer(response)}"
        ) from error


def require_echo(
    response: Response, tree: Any, call: CallSpec, variables: Mapping[str, object]
) -> None:
    """Raise when an answer without items shows that something else was asked than we did.

    It need not say all that a page says; what it says must fit.
    """
    try:
        for expectation in call.response.expect:
            if path(expectation.path).first(tree) is not None:
                _require_expected(tree, expectation, variables)
    except ValueError as error:
        raise EndpointHalted(
            f"{response.url}: {error}; the source has not done as asked"
        ) from error


def path(text: str) -> Path:
    """Return the compiled path; each text is compiled once per process."""
    return compile_path(text)


def _decoded(
    response: Response,
    tree: Any,
    spec: ResponseSpec,
    paging: Paging | None,
    variables: Mapping[str, object],
) -> Decoded:
    total = find_total(response, tree, paging.total if paging else None)
    items = find_items(tree, spec, total)
    if spec.grouped:
        items = group_items(items, variables.get("ids"))
    if isinstance(tree, Body):
        items = Items(set_aside(items.found), items.places)
    return Decoded(
        items.found,
        total,
        find_next(response, tree, items.found, paging),
        find_more(tree, paging.has_more if paging else None),
        find_step(tree, paging),
        find_gone(tree, spec.tombstones),
        items.places,
    )


def _require_only_items(
    response: Response, tree: Body, spec: ResponseSpec, paging: Paging | None
) -> None:
    """Raise BodyUnreadable when what is malformed is not in items, or may lead to the next page."""
    error = ValueError("what is malformed in it is not in its items alone")
    try:
        found = find_items(tree, spec, 0).found
    except ValueError:
        raise unreadable(response, spec, error) from None
    is_next = found and needs_last_item(paging) and count_malformed(found[-1])
    if is_next or sum(map(count_malformed, found)) < count_malformed(tree):
        raise unreadable(response, spec, error)


def _require_all(tree: Any, spec: ResponseSpec) -> None:
    for where in spec.require:
        found = path(where).nodes(tree)
        if not found or (not spec.null_is_empty and all(value is None for value in found)):
            instead = found_instead(tree, where)
            raise ValueError(f"there is nothing at {where}, which every answer has: {instead}")


def _require_expected(tree: Any, expectation: Expectation, variables: Mapping[str, object]) -> None:
    found = path(expectation.path).first(tree)
    text = to_text(found).strip() if isinstance(found, str | int | float) else None
    if expectation.matches is not None:
        is_met = text is not None and _matches(expectation.matches, text)
        expected = f"what matches {expectation.matches}"
    else:
        asked = compile_template(expectation.equals or "").render_clause(variables)
        if asked is None:  # an echo of what was not asked for cannot be held against anything
            return
        is_met, expected = text == asked.strip(), shown(asked)
    if not is_met:
        raise ValueError(f"{expectation.path} holds {shown(found)}, expected was {expected}")


def _matches(pattern: str, text: str) -> bool:
    regex = _pattern(pattern)
    return len(text) <= regex.longest and regex.pattern.search(text) is not None


@lru_cache(maxsize=1024)
def _pattern(text: str) -> SafeRegex:
    return safe_regex(text, needs_group=False)
