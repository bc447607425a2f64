"""What an answer means for its slice: records, numbers, and where the walk goes on. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from patra_ingest.errors import SliceIncomplete, SliceTooBig
from patra_ingest.executor.decoding import Decoded
from patra_ingest.executor.history import (
    History,
    is_in_order,
    is_known,
    page_hash,
    require_order,
    require_reach,
    require_sense,
    require_shape,
)
from patra_ingest.executor.leased import Details, Place, Work
from patra_ingest.executor.mapping import Mapped, map_items, set_apart, tombstones
from patra_ingest.executor.paging import Ended, Page, RangeWalk, Seen, next_page
from patra_ingest.executor.positions import position
from patra_ingest.executor.two_phase import BadId, hold_against
from patra_ingest.model.codes import ResliceReason
from patra_ingest.model.keys import item_key
from patra_ingest.model.records import NewRecord
from patra_ingest.spec.localize import query_window
from patra_ingest.spec.paging import NoPaging, TimePaging, TokenPaging, UrlPaging
from patra_ingest.spec.snapshot import CallSpec
from patra_ingest.spec.words import MissingIds, StopRule
from patra_ingest.transport.redact import hide_parameters


@dataclass(frozen=True)
class Turned:
    """One answer, turned into what is written and where the walk goes on."""

    call: CallSpec  # whose records these are
    mapped: Mapped
    following: Place | None
    numbers: dict[str, Any]
    gone: tuple[str, ...] = ()  # ids that the source does not have any more
    bad_ids: tuple[BadId, ...] = ()


def turn_page(work: Work, place: Place, decoded: Decoded, history: History) -> Turned:
    """Turn a page of a walk: into records, or into ids whose records are fetched next."""
    spec, page = work.plan.spec, place.page
    if decoded.total == 0 and history.walked:
        # That there is nothing at all is no promise in the middle of a walk.
        decoded = replace(decoded, total=None)
    require_reach(decoded, page, spec.cap.max)
    mapped = _map(work, spec, decoded)
    require_shape(decoded, mapped, history.broken)
    if isinstance(spec.paging, TimePaging):
        require_order(mapped, page)
    else:  # by time, the end of a page begins the next one
        require_sense(decoded, mapped, page, history)
    _require_meant(work, page, decoded, history)
    after = _after(work, page, decoded, mapped, history)
    _require_whole(work, decoded, history)
    following = None if isinstance(after, Ended) else after
    numbers = _walk_numbers(work, page, decoded, mapped, after)
    numbers |= {"pageHash": page_hash(mapped), "onlyKnown": is_known(mapped, history)}
    if spec.paging.order == "ASC":
        numbers["ordered"] = is_in_order(mapped, history)
    if spec.detail is None:
        whole = _with_tombstones(mapped, mapped.records, decoded)
        return Turned(spec, whole, Place(following) if following else None, numbers)
    found = _new_ids(mapped, history)
    numbers |= {
        "phase": "SEARCH",
        "foundCount": len(decoded.items),
        "foundIds": list(found),
        "searchAt": position(work.walk, page),
        "searchNext": position(work.walk, following) if following else None,
    }
    numbers["itemsCount"] = len(mapped.bad) + mapped.out_of_window + len(decoded.gone)
    details = Details(found, 0, spec.detail.batch, following)
    only_gone = _with_tombstones(mapped, (), decoded)
    return Turned(spec, only_gone, after_details(page, details), numbers)


def _with_tombstones(mapped: Mapped, records: Sequence[NewRecord], decoded: Decoded) -> Mapped:
    """Return records and deletions together; what cannot be an id is bad, as any other item."""
    whole = replace(mapped, records=[*records, *tombstones(decoded.gone)])
    return set_apart(whole, len(decoded.items))


def after_details(page: Page, details: Details) -> Place | None:
    """Return where a walk goes on: with the rest of the details, else with the search."""
    if details.done < len(details.ids):
        return Place(page, details)
    return Place(details.after) if details.after else None


def _new_ids(mapped: Mapped, history: History) -> tuple[str, ...]:
    """Return the ids of a search page that no earlier page has found."""
    found = dict.fromkeys(record.provider_id for record in mapped.records)
    return tuple(one for one in found if item_key(one) not in history.ids)


@dataclass(frozen=True)
class IdsSeen:
    """What came for the ids of one batch."""

    items: Sequence[Any]
    tombstones: Sequence[str]
    missing: Sequence[str]
    merged: Mapping[str, str]
    bad: Sequence[BadId]
    is_mute: bool = False  # the source says nothing about any of them, and has nothing for others


def turn_ids(work: Work, place: Place, seen: IdsSeen, history: History) -> Turned:
    """Turn what came for ids into records; every id is a record, gone, merged or bad."""
    call, rule = work.call_at(place)
    asked = work.asked_ids(place)
    if seen.missing and rule and rule.missing is MissingIds.FAIL:
        raise SliceIncomplete(f"the source has no {', '.join(seen.missing[:10])}")
    decoded = Decoded(list(seen.items), gone=tuple(seen.tombstones))
    mapped = _map(work, call, decoded)
    require_shape(decoded, mapped, history.broken)
    accepted = set(seen.merged.values())
    if rule and rule.aliases:
        accepted |= {record.provider_id for record in mapped.records}
    mapped = hold_against(asked, mapped, sorted(accepted), len(history.broken))
    if seen.is_mute:
        option = "detail.batch" if place.details else "batching.ids_per_request"
        raise SliceIncomplete(
            f"the source has none of {len(asked)} ids, and nothing for others of the slice either:"
            " that proves no deletion; if they really are gone, plan again with"
            f" --set {option}=1 --campaign NAME, to ask for each of them alone"
        )
    whole = _with_tombstones(mapped, mapped.records, decoded)
    following = _after_ids(work, place)
    numbers = {
        "itemsCount": len(decoded.items) - mapped.skipped + len(decoded.gone),
        "listed": len(decoded.items),
        "hollow": mapped.hollow,
        "withoutId": len(decoded.items) - len(mapped.ids),
        "idKeys": mapped.packed_ids,
        "total": None if place.details else len(asked_in_all(work)),
        "askedCount": len(asked),
        "goneIds": len(seen.missing) + sum(record.is_tombstone for record in whole.records),
        "badIds": len(seen.bad),
        "unanswered": _count_unanswered(asked, mapped, seen),
        "hasNext": following is not None,
        "nextHint": _hint(work, following.page if following else None),
        "stopRule": None if following else "IDS_END",
    }
    if place.details is not None:
        numbers["phase"] = "DETAIL"
    if seen.merged:
        numbers["merged"] = dict(seen.merged)
    gone = (*seen.missing, *(old for old, new in seen.merged.items() if old != new))
    return Turned(call, whole, following, numbers, gone, tuple(seen.bad))


def _count_unanswered(asked: Sequence[str], mapped: Mapped, seen: IdsSeen) -> int:
    """Count the ids without an end; an item that is nobody's, or nameless, may stand for one."""
    bad = (one.id for one in seen.bad)
    ended = {*mapped.ids, *seen.missing, *seen.merged, *seen.tombstones, *bad}
    strange = set(mapped.ids) - {*asked, *seen.merged.values()}
    nameless = len(seen.items) - len(mapped.ids)
    return max(0, len(set(asked) - ended) - len(strange) - nameless)


def asked_in_all(work: Work) -> tuple[str, ...]:
    """Return every id of a slice that is cut by ids."""
    return work.bounds.ids.ids if work.bounds.ids else ()


def _after_ids(work: Work, place: Place) -> Place | None:
    if place.details is not None:
        details = replace(place.details, done=place.details.reached)
        return after_details(place.page, details)
    after = next_page(work.walk, place.page, Seen(0))
    return None if isinstance(after, Ended) else Place(after)


def _map(work: Work, call: CallSpec, decoded: Decoded) -> Mapped:
    spec, window = work.plan.spec, work.bounds.window
    asked = query_window(spec.window, window, work.lookback) if window else None
    return map_items(decoded.items, call, spec.window.zone, asked)


def _after(
    work: Work, page: Page, decoded: Decoded, mapped: Mapped, history: History
) -> Page | Ended:
    total = decoded.total
    if total is None and not isinstance(work.walk, RangeWalk | TimePaging):
        total = history.promised  # some sources tell it on the first page only
    count = len(decoded.items)
    reached = history.reached(mapped.packed_ids, count - len(mapped.ids))
    seen = Seen(
        count,
        decoded.next,
        total,
        decoded.has_more,
        decoded.step,
        history.walked,
        mapped.observed_max,
        history.walked + count - reached,
        history.most,
    )
    return next_page(work.walk, page, seen)


def _require_meant(work: Work, page: Page, decoded: Decoded, history: History) -> None:
    """Raise when a rule says "nothing" to a token that the source has handed out itself."""
    paging = work.plan.spec.paging
    if not decoded.is_ruled or not isinstance(paging, TokenPaging | UrlPaging) or page.number == 1:
        return
    is_estimate = paging.total is not None and paging.total.is_estimate
    is_reached = 0 < history.most <= history.reached() and not is_estimate
    if StopRule.EMPTY_PAGE not in paging.stop and not is_reached:
        raise SliceIncomplete(
            f"a rule EMPTY holds for page {page.number}, and EMPTY_PAGE is none of paging.stop"
        )


def _require_whole(work: Work, decoded: Decoded, history: History) -> None:
    """Raise when one page is all there is and it is less than what the source says it has."""
    paging, total = work.plan.spec.paging, decoded.total
    if not isinstance(paging, NoPaging) or total is None or work.bounds.ids is not None:
        return
    allowed = paging.total.tolerance * total if paging.total else 0
    if total - len(decoded.items) > allowed and len(decoded.items) >= paging.page_size:
        raise SliceTooBig(
            ResliceReason.RESULT_CAP,
            f"the slice holds {total} records and one page brings {len(decoded.items)}",
            total,
        )


def _walk_numbers(
    work: Work, page: Page, decoded: Decoded, mapped: Mapped, after: Page | Ended
) -> dict[str, Any]:
    """Return what a page says of itself, in the words of the batch's stats."""
    ended = after if isinstance(after, Ended) else None
    return {
        "itemsCount": len(decoded.items) - mapped.skipped + len(decoded.gone),
        "listed": len(decoded.items),
        "hollow": mapped.hollow,
        "ignored": mapped.skipped,
        "withoutId": len(decoded.items) - len(mapped.ids),
        "total": _promised(work, page, decoded),
        "idKeys": mapped.packed_ids,
        "hasNext": ended is None,
        "nextHint": _hint(work, after if isinstance(after, Page) else None),
        "stopRule": ended.rule if ended else None,
    }


def _hint(work: Work, after: Page | None) -> dict[str, Any]:
    paging = work.plan.spec.paging
    is_url = isinstance(paging, UrlPaging)
    if after is None:
        return {"token": None, "page": None, "url": None}
    return {
        "token": after.token if isinstance(paging, TokenPaging | TimePaging) else None,
        "page": after.number,
        "url": hide_parameters(after.token) if is_url and after.token else None,
    }


def _promised(work: Work, page: Page, decoded: Decoded) -> int | None:
    """Return how much the slice holds by this answer; None where the answer cannot know."""
    paging, total = work.plan.spec.paging, decoded.total
    first_only = isinstance(paging, TimePaging) or (paging.total and paging.total.first_page_only)
    if total is None or (first_only and page.number > 1):
        return None
    if isinstance(work.walk, RangeWalk):
        pages, size = work.walk.pages, paging.page_size
        rest = max(0, total - (pages.first - 1) * size)
        return rest if pages.past is None else min(rest, (pages.past - pages.first) * size)
    return total


def ends_too_early(work: Work, place: Place, turned: Turned, history: History) -> bool:
    """Return whether a walk ends with less than was promised, or its end must be looked at twice.

    A source may lose its next token once, or answer with an empty page when it is busy.
    """
    if turned.numbers["stopRule"] is None or place.details or work.bounds.ids:
        return False
    paging, total = work.plan.spec.paging, turned.numbers["total"]
    if total is not None or history.promised is not None:
        total = max(total or 0, history.most)
    reached = history.reached(turned.numbers["idKeys"], turned.numbers["withoutId"])
    if isinstance(paging, TokenPaging | UrlPaging) and turned.numbers["stopRule"] == "NO_TOKEN":
        # A token may be lost however little is missing, and whatever the total is worth.
        return paging.probe_tail or (total is not None and total > reached)
    if total is None or (paging.total and paging.total.is_estimate):
        return False
    return bool(total > reached)  # what may be missing is for the verdict, not for giving up
