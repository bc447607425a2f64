"""What a slice has seen so far: the loop guard and the certificate rest on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from patra_ingest.errors import EndpointHalted, SliceIncomplete, SliceTooBig
from patra_ingest.executor.certificate import pack_ids, unpack_ids
from patra_ingest.executor.decoding import Decoded
from patra_ingest.executor.mapping import Mapped
from patra_ingest.executor.paging import Ended, Page
from patra_ingest.model.codes import ResliceReason


@dataclass
class History:
    """The batches of a slice over all its runs, and the tries of the batch at hand."""

    batches: list[dict[str, Any]]
    ids: set[bytes]
    retries: int = 0
    throttled: int = 0
    requests: int = 0

    @classmethod
    def of(cls, batches: Sequence[dict[str, Any]]) -> "History":
        """Return the history that earlier runs left behind."""
        ids = (unpack_ids(stats["idKeys"]) for stats in batches)
        return cls(list(batches), set().union(*ids))

    def add(self, stats: dict[str, Any]) -> None:
        """Take a committed batch in and begin to count for the next one."""
        self.batches.append(stats)
        self.ids |= unpack_ids(stats["idKeys"])
        self.retries = self.throttled = self.requests = 0


def require_sense(decoded: Decoded, mapped: Mapped, page: Page, history: History) -> None:
    """Raise when a page cannot be what was asked for: all items broken, or all seen before."""
    if mapped.bad and len(mapped.bad) == len(decoded.items):
        first = mapped.bad[0]
        raise EndpointHalted(
            f"every one of {len(mapped.bad)} items fails at {first.path}"
            f" ({first.reason}); the source has changed its shape"
        )
    ids = unpack_ids(pack_ids(mapped.ids))
    if ids and ids <= history.ids and page.number > 1:
        raise SliceIncomplete(
            f"page {page.number} repeats ids of earlier pages only: the source goes in a circle"
        )


def require_reach(decoded: Decoded, page: Page, most: int | None) -> None:
    """Raise when a slice holds more than the source gives for one question, however it pages."""
    total = decoded.total
    if page.number == 1 and most is not None and total is not None and total > most:
        raise SliceTooBig(
            ResliceReason.RESULT_CAP,
            f"the slice holds {total} records and the source gives {most} for one question",
            total,
        )


def page_numbers(
    decoded: Decoded, mapped: Mapped, after: Page | Ended, history: History
) -> dict[str, Any]:
    """Return what a page says of itself, in the words of the batch's stats."""
    return {
        "itemsCount": len(decoded.items),
        "withoutId": len(decoded.items) - len(mapped.ids),
        "total": decoded.total,
        "idKeys": pack_ids(mapped.ids),
        "hasNext": isinstance(after, Page),
        "stopRule": after.rule.value if isinstance(after, Ended) else None,
        "reqCount": history.requests,
        "retryCount": history.retries,
        "429Count": history.throttled,
    }
