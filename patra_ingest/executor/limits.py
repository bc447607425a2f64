"""When a slice has taken so much that its rest is better cut again, and what that rest is. Pure.

A declared budget (planning.slice_requests, planning.slice_time) always counts: where nothing can be
cut it is that of one attempt, and the next one goes on. That a slice is far deeper than expected,
or that the source keeps turning us away, counts only where the rest is known: cutting a slice again
whole would repeat all its pages.
"""

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from patra_ingest.errors import SliceTooBig
from patra_ingest.executor.history import History
from patra_ingest.executor.leased import Work
from patra_ingest.model.bounds import Bounds
from patra_ingest.model.codes import ResliceReason
from patra_ingest.model.window import Window, floor_to
from patra_ingest.spec.paging import OffsetPaging, PagePaging, TokenPaging
from patra_ingest.spec.words import Consistency

_FEW_REQUESTS = 20  # too few to judge a slice by
_DEEPER = 4  # … times as many pages as were expected
_THROTTLED_SHARE = 0.05


def find_excess(work: Work, history: History) -> SliceTooBig | None:
    """Return why the rest of a slice must be cut again before its next page is asked for."""
    spent = _spent(work, history.total("reqCount"), history.spent)
    excess = SliceTooBig(ResliceReason.BUDGET, spent, history.promised) if spent else None
    too_much = excess or _out_of_hand(work, history)
    if too_much is None:
        return None
    rest = find_rest(work, history)
    if not is_cuttable(work, rest or work.bounds):
        return None
    return excess or (None if rest is None else too_much)


def find_spent(work: Work, history: History) -> str | None:
    """Return which budget an attempt has spent, for a slice that cannot be cut again.

    Not where one token serves the whole walk: the next attempt would begin at the first page.
    """
    paging = work.plan.spec.paging
    if isinstance(paging, TokenPaging) and paging.token_stays and work.bounds.ids is None:
        return None
    return _spent(work, *history.own)


def _spent(work: Work, requests: int, time: timedelta) -> str | None:
    planning = work.plan.spec.planning
    if planning.slice_requests is not None and requests >= planning.slice_requests:
        return f"{requests} requests are all that planning.slice_requests allows"
    if planning.slice_time is not None and time >= planning.slice_time:
        return f"{time} is all that planning.slice_time allows"
    return None


def _out_of_hand(work: Work, history: History) -> SliceTooBig | None:
    requests, turned_away = history.total("reqCount"), history.total("429Count")
    if requests < _FEW_REQUESTS:
        return None
    if turned_away > requests * _THROTTLED_SHARE:
        told = f"{turned_away} of {requests} requests were turned away"
        return SliceTooBig(ResliceReason.THROTTLED, told, history.promised)
    expected = work.expected_requests
    if expected is not None and requests > _DEEPER * expected:
        told = f"{requests} requests so far, {expected} were expected"
        return SliceTooBig(ResliceReason.PAGE_DEPTH, told, history.promised)
    return None


def is_cuttable(work: Work, bounds: Bounds) -> bool:
    """Return whether a slice, or its rest, can be cut finer by time."""
    window, floor = bounds.window, work.plan.spec.window.min_span
    return window is not None and window.end - window.start >= 2 * floor


def find_rest(work: Work, history: History) -> Bounds | None:
    """Return what of a slice is still to be asked for; None when that cannot be told.

    It can where items come in the order of their update times and none is skipped when others
    move: everything before the newest one seen has then been read. What the last page ends with
    does not count: only a page that goes on from there shows that the source keeps to its order.
    """
    spec, bounds = work.plan.spec, work.bounds
    paging, window = spec.paging, bounds.window
    by_number = isinstance(paging, OffsetPaging | PagePaging)
    shifts = by_number and paging.consistency is Consistency.UNSTABLE
    if window is None or spec.detail or paging.order != "ASC" or shifts:
        return None
    if history.confirmed is None or not history.in_order:  # it does not do as its pack says
        return None
    start = floor_to(history.confirmed, spec.window.granularity, ZoneInfo(spec.window.zone))
    if not window.start < start < window.end:
        return None
    return Bounds(Window(start, window.end), splits=bounds.splits, partition=bounds.partition)


def remaining(work: Work, history: History) -> dict[str, Any]:
    """Return the rest of a slice as a re-slice request keeps it; empty for the whole slice.

    A rest that cannot be cut is of no use to the planner, but the whole slice may be.
    """
    rest = find_rest(work, history)
    return {"bounds": rest.as_json()["bounds"]} if rest and is_cuttable(work, rest) else {}
