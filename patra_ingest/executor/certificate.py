"""The completeness certificate: what was promised, what landed, and whether that is everything."""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from math import floor
from typing import Any

from patra_ingest.model import keys

_KEY_BYTES = 8
_ENDS_BY_COUNT = ("TOTAL_REACHED", "SHORT_PAGE")


class Verdict(StrEnum):
    """Whether the pages of a slice add up."""

    COMPLETE = "COMPLETE"
    DRIFTED = "DRIFTED"  # the total moved while we read; what is missing is within the tolerance
    INCOMPLETE = "INCOMPLETE"


@dataclass(frozen=True)
class Promise:
    """Where a source says how many items there are, and how far it may be off."""

    place: str | None = None
    tolerance: float = 0.0
    is_estimate: bool = False
    shifts: bool = False  # pages are counted: a record that goes pulls another past a page's edge

    def counts(self, totals: Sequence[int], stop_rule: str | None, is_empty: bool) -> int:
        """Return which of the totals that a walk was told is held against it.

        The last one, where the walk came to an end of its own; else the largest. A total that
        fell ends nothing by itself, and one that fell by more than half is not believed at all.
        """
        most, last = max(totals), totals[-1]
        is_own_end = is_empty or stop_rule not in _ENDS_BY_COUNT
        return most if self.shifts or not is_own_end or last * 2 < most else last


@dataclass(frozen=True)
class Certificate:
    """The proof of one slice."""

    promised: int | None
    promised_from: str | None
    landed: int  # distinct ids, and items without one
    pages: int
    duplicates: int
    retries: int
    stop_rule: str | None
    verdict: Verdict
    gone: int = 0  # ids that were asked for and that the source does not have
    bad: int = 0  # ids that the source cannot answer for
    found: int | None = None  # in two phases: the ids that the search found
    quarantined: int = 0  # items that were seen and are no records: they could not be mapped
    out_of_window: int = 0  # … or lie outside the window

    def as_json(self) -> dict[str, Any]:
        """Return the certificate as the ledger keeps it."""
        proof = asdict(self)
        proof["outOfWindow"] = proof.pop("out_of_window")
        return proof

    def __str__(self) -> str:
        promised = "no total promised" if self.promised is None else f"{self.promised} promised"
        found = "" if self.found is None else f", {self.found} found"
        bad = f", {self.quarantined} quarantined" if self.quarantined else ""
        outside = f", {self.out_of_window} out of the window" if self.out_of_window else ""
        return (
            f"{self.verdict}: {promised}{found}, {self.landed} landed over {self.pages} pages"
            f"{bad}{outside}, {self.duplicates} seen twice, ended by {self.stop_rule}"
        )


def pack_ids(ids: Iterable[str]) -> str:
    """Return a page's ids as a short text of their keys, so that a later run can count them."""
    return base64.b64encode(b"".join(keys.item_key(one) for one in ids)).decode()


def unpack_ids(packed: str) -> set[bytes]:
    """Return the keys of the ids that `pack_ids` wrote."""
    raw = base64.b64decode(packed)
    return {raw[i : i + _KEY_BYTES] for i in range(0, len(raw), _KEY_BYTES)}


def certify(batches: Sequence[dict[str, Any]], promise: Promise) -> Certificate:
    """Judge the stats of all batches of a slice, in the order they were walked."""
    # In two phases the pages of the search are held against its promise, and the details against
    # the ids that the search has found.
    walked = [stats for stats in batches if stats.get("phase") != "DETAIL"]
    details = [stats for stats in batches if stats.get("phase") == "DETAIL"]
    ids: set[bytes] = set()
    nameless = duplicates = 0
    for stats in walked:
        page = unpack_ids(stats["idKeys"])
        named = stats.get("listed", stats["itemsCount"]) - stats["withoutId"]
        duplicates += named - len(page - ids)
        ids |= page
        nameless += stats["withoutId"]
    totals = [stats["total"] for stats in walked if stats["total"] is not None]
    gone, bad = (sum(stats.get(key, 0) for stats in batches) for key in ("goneIds", "badIds"))
    in_two_phases = any("foundCount" in stats for stats in walked)
    reached = len(ids) + nameless
    landed = sum(len(unpack_ids(stats["idKeys"])) for stats in details)
    # Hits that are skipped, bad or outside the window are found, but their details not asked for.
    wanted = sum(len(stats.get("foundIds", ())) for stats in walked)
    is_resolved = _resolved(details) >= wanted
    by_ids = any("askedCount" in stats for stats in walked)
    stop_rule = walked[-1]["stopRule"] if walked else None
    is_empty = not walked or walked[-1].get("listed", walked[-1]["itemsCount"]) == 0
    promised = promise.counts(totals, stop_rule, is_empty) if totals else None
    verdict = _verdict(_resolved(walked) if by_ids else reached, totals, promised, promise)
    return Certificate(
        promised=promised,
        promised_from=promise.place if totals else None,
        landed=landed if in_two_phases else reached,
        pages=len(walked),
        duplicates=duplicates,
        retries=sum(stats["retryCount"] for stats in batches),
        stop_rule=stop_rule,
        verdict=verdict if is_resolved else Verdict.INCOMPLETE,
        gone=gone,
        bad=bad,
        found=len(ids) if in_two_phases else None,
        quarantined=sum(stats.get("quarantined", 0) for stats in batches),
        out_of_window=sum(stats.get("outOfWindow", 0) for stats in batches),
    )


def _resolved(batches: Iterable[dict[str, Any]]) -> int:
    """Return how many of the ids that were asked for have come to an end; two may share one."""
    asked = [stats for stats in batches if "askedCount" in stats]
    return sum(stats["askedCount"] - stats.get("unanswered", 0) for stats in asked)


def _verdict(
    reached: int, totals: Sequence[int], promised: int | None, promise: Promise
) -> Verdict:
    if promised is None or reached == totals[-1] == totals[0]:
        return Verdict.COMPLETE
    if reached == 0 < promised:  # not even an estimate is off by everything
        return Verdict.INCOMPLETE
    if promise.is_estimate or promised - reached <= floor(promise.tolerance * promised):
        return Verdict.DRIFTED
    return Verdict.INCOMPLETE
