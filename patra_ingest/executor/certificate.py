"""The completeness certificate: what was promised, what landed, and whether that is everything."""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from patra_ingest.model import keys

_KEY_BYTES = 8


class Verdict(StrEnum):
    """Whether the pages of a slice add up."""

    COMPLETE = "COMPLETE"
    DRIFTED = "DRIFTED"  # the total moved while we read, and nothing of the last promise is missing
    INCOMPLETE = "INCOMPLETE"


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

    def as_json(self) -> dict[str, Any]:
        """Return the certificate as the ledger keeps it."""
        return asdict(self)

    def __str__(self) -> str:
        promised = "no total promised" if self.promised is None else f"{self.promised} promised"
        return (
            f"{self.verdict}: {promised}, {self.landed} landed over {self.pages} pages,"
            f" {self.duplicates} seen twice, ended by {self.stop_rule}"
        )


def pack_ids(ids: Iterable[str]) -> str:
    """Return a page's ids as a short text of their keys, so that a later run can count them."""
    return base64.b64encode(b"".join(keys.item_key(one) for one in ids)).decode()


def unpack_ids(packed: str) -> set[bytes]:
    """Return the keys of the ids that `pack_ids` wrote."""
    raw = base64.b64decode(packed)
    return {raw[i : i + _KEY_BYTES] for i in range(0, len(raw), _KEY_BYTES)}


def certify(batches: Sequence[dict[str, Any]], total_path: str | None) -> Certificate:
    """Judge the stats of all batches of a slice, in the order they were walked."""
    ids: set[bytes] = set()
    nameless = duplicates = retries = 0
    for stats in batches:
        page = unpack_ids(stats["idKeys"])
        named = stats["itemsCount"] - stats["withoutId"]
        duplicates += named - len(page - ids)
        ids |= page
        nameless += stats["withoutId"]
        retries += stats["retryCount"]
    totals = [stats["total"] for stats in batches if stats["total"] is not None]
    landed = len(ids) + nameless
    gone = sum(stats.get("goneIds", 0) for stats in batches)
    return Certificate(
        totals[-1] if totals else None,
        total_path if totals else None,
        landed,
        len(batches),
        duplicates,
        retries,
        batches[-1]["stopRule"] if batches else None,
        _verdict(landed + gone, totals),
        gone,
    )


def _verdict(landed: int, totals: Sequence[int]) -> Verdict:
    if not totals or landed == totals[-1] == totals[0]:
        return Verdict.COMPLETE
    return Verdict.DRIFTED if landed >= totals[-1] else Verdict.INCOMPLETE
