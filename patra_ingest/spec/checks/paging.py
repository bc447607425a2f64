"""Paging: the kind and its paths fit, the walk can end, and it does not end too soon."""

from collections.abc import Iterator, Mapping

from patra_ingest.spec.problems import Problem
from patra_ingest.spec.subject import Subject
from patra_ingest.spec.words import PagingType, SizePolicy, Step, StopRule

_BY_NUMBER = (PagingType.OFFSET, PagingType.PAGE)
_MAX_PAGE = 10_000
_TOKENS = (
    *("token_param", "next_token", "next_url", "initial_token", "token_life"),
    *("token_stays", "keep_token", "probe_tail"),
)
_NUMBERS = ("offset_param", "page_param", "step_path")
_FOREIGN: Mapping[PagingType, tuple[str, ...]] = {
    PagingType.NONE: (*_TOKENS, *_NUMBERS),
    PagingType.OFFSET: (*_TOKENS, "page_param"),
    PagingType.PAGE: (*_TOKENS, "offset_param", "step_path"),
    PagingType.TOKEN: (*_NUMBERS, "next_url"),
    PagingType.URL: (
        *(*_NUMBERS, "next_token", "token_param", "initial_token", "token_stays", "keep_token"),
    ),
    PagingType.TIME: (*_TOKENS, *_NUMBERS),
}


def kinds_do_not_mix(subject: Subject) -> Iterator[Problem]:
    """A walk by token has no page number, and the other way round."""
    paging = subject.shaped.paging
    if paging.type is None:
        return
    for key in _FOREIGN[paging.type]:
        if getattr(paging, key) is not None:
            yield Problem(f"paging.{key}", f"means nothing with {paging.type} paging", "remove it")


def kinds_have_their_paths(subject: Subject) -> Iterator[Problem]:
    """A token, a URL, a reported step: each must be somewhere."""
    paging = subject.shaped.paging
    if paging.type == PagingType.TOKEN and not paging.next_token:
        yield Problem("paging.next_token", "TOKEN paging needs it", "say where the token is")
    if paging.type == PagingType.URL and not paging.next_url:
        yield Problem("paging.next_url", "URL paging needs it", "say where the next address is")
    if paging.step == Step.REPORTED and not paging.step_path:
        yield Problem("paging.step_path", "step REPORTED needs it", "say where the count is")
    by_time = paging.type == PagingType.TIME
    if by_time and not (paging.order == "ASC" and subject.shaped.response.updated_at):
        yield Problem(
            "paging.order",
            "TIME paging goes on from the last item's update time",
            "declare order: ASC and response.updated_at, or page another way",
        )


def the_walk_can_end(subject: Subject) -> Iterator[Problem]:
    """At least one rule that this kind of paging can meet ends it."""
    paging = subject.shaped.paging
    stop = set(paging.stop or ())
    if paging.type is None:
        return
    if not stop:
        yield Problem("paging.stop", "lists no rule", "declare what ends the pages")
    for rule in sorted(stop - _possible(paging.type)):
        yield Problem("paging.stop", f"{rule} cannot happen with {paging.type} paging", "remove it")


def _possible(kind: PagingType) -> set[StopRule]:
    if kind == PagingType.NONE:
        return {StopRule.ONE_PAGE}
    by_count = {StopRule.EMPTY_PAGE, StopRule.SHORT_PAGE, StopRule.TOTAL_REACHED, StopRule.NO_MORE}
    if kind == PagingType.TOKEN:
        return by_count | {StopRule.NO_TOKEN, StopRule.SAME_TOKEN}
    return by_count | ({StopRule.NO_TOKEN} if kind == PagingType.URL else set())


def stop_rules_have_their_paths(subject: Subject) -> Iterator[Problem]:
    """A rule that looks at a total or a flag must know where it is."""
    paging = subject.shaped.paging
    stop = paging.stop or ()
    if StopRule.TOTAL_REACHED in stop and not paging.total:
        yield Problem("paging.total", "TOTAL_REACHED needs it", "say where the total is")
    if StopRule.TOTAL_REACHED in stop and paging.total and paging.total.is_estimate:
        yield Problem("paging.stop", "TOTAL_REACHED would end at an estimate", "use EMPTY_PAGE")
    if StopRule.NO_MORE in stop and not paging.has_more:
        yield Problem("paging.has_more", "NO_MORE needs it", "say where the flag is")


def a_short_page_is_the_end(subject: Subject) -> Iterator[Problem]:
    """A source that chooses its own page size sends short pages all the time."""
    paging = subject.shaped.paging
    if paging.size_policy in (None, SizePolicy.OBEYED, SizePolicy.FIXED):
        return
    if StopRule.SHORT_PAGE in (paging.stop or ()):
        yield Problem(
            "paging.stop",
            f"SHORT_PAGE would end the walk early: the page size is {paging.size_policy}",
            "use EMPTY_PAGE or TOTAL_REACHED",
        )
    if paging.type == PagingType.OFFSET and paging.step == Step.PAGE_SIZE:
        yield Problem(
            "paging.step",
            f"PAGE_SIZE would skip records: the page size is {paging.size_policy}",
            "use ITEMS or REPORTED",
        )


def the_page_size_is_known(subject: Subject) -> Iterator[Problem]:
    """Whoever counts in pages must know how long one is."""
    paging = subject.shaped.paging
    steps = paging.type == PagingType.PAGE or (
        paging.type == PagingType.OFFSET and paging.step == Step.PAGE_SIZE
    )
    counts = steps or StopRule.SHORT_PAGE in (paging.stop or ())
    silent = paging.size_policy in (None, SizePolicy.OBEYED) and not subject.sends_page_size()
    if counts and silent and not subject.by_ids:
        yield Problem(
            "paging.size_param",
            "the source is not told the page size, but the walk counts on it",
            "name the parameter, or say size_policy: FIXED or SERVER",
        )


def the_page_size_is_allowed(subject: Subject) -> Iterator[Problem]:
    """Not above what the source serves, nor what a batch holds."""
    paging = subject.shaped.paging
    size, most = paging.page_size or 0, paging.max_page_size or _MAX_PAGE
    if not 1 <= size <= most:
        yield Problem("paging.page_size", f"{size} is out of bounds", f"stay within 1–{most}")


def the_position_stays_inside_the_cap(subject: Subject) -> Iterator[Problem]:
    """Pages beyond the cap are promised by max_pages and never served."""
    paging, cap = subject.shaped.paging, subject.shaped.cap.max
    if paging.type not in (*_BY_NUMBER, PagingType.NONE) or not cap or subject.by_ids:
        return
    pages = 1 if paging.type == PagingType.NONE else paging.max_pages
    reach = (paging.page_size or 0) * (pages or 0)
    where = "paging.page_size" if paging.type == PagingType.NONE else "paging.max_pages"
    if pages and reach > cap:
        yield Problem(
            where,
            f"{paging.page_size} × {pages} pages go beyond the {cap} results that are served",
            f"stay within {cap}",
        )
    if pages and reach < cap:
        yield Problem(
            "cap.max",
            f"{paging.page_size} × {pages} pages end before the {cap} results of a slice",
            f"use {reach}, so that a larger slice is cut, or let the pages reach it",
        )


CHECKS = (
    kinds_do_not_mix,
    kinds_have_their_paths,
    the_walk_can_end,
    stop_rules_have_their_paths,
    a_short_page_is_the_end,
    the_page_size_is_known,
    the_page_size_is_allowed,
    the_position_stays_inside_the_cap,
)
