"""What a slice has seen so far: the loop guard and the certificate rest on it."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, Literal, TypeVar

from patra_ingest.errors import EndpointHalted, NotSent, SliceIncomplete, SliceTooBig
from patra_ingest.executor.certificate import unpack_ids
from patra_ingest.executor.decoding import Decoded
from patra_ingest.executor.drift import found_instead
from patra_ingest.executor.mapping import Mapped
from patra_ingest.executor.paging import Page
from patra_ingest.model.codes import ResliceReason
from patra_ingest.model.keys import item_key
from patra_ingest.model.window import parse_instant

T = TypeVar("T")

_MOST_EMPTY_PAGES = 5  # some sources hand out a few between full ones
_MOST_KNOWN_PAGES = 3
_MOST_BROKEN = 2  # answers in a row that bring nothing but one bad item
_SUMMED = ("reqCount", "429Count")


@dataclass
class History:
    """The batches of a slice over all its runs, and the tries of the batch at hand."""

    batches: list[dict[str, Any]]
    ids: set[bytes]  # of the pages walked; those of details are among them
    walked: int = 0  # items on the pages so far
    nameless: int = 0  # … without an id
    pages: set[str] = field(default_factory=set)  # what tells the pages apart
    attempts: list[dict[str, Any]] = field(default_factory=list)
    requests: int = 0
    empty_pages: int = 0  # how many of the last pages brought nothing
    known_pages: int = 0  # … brought only ids that were known before
    broken: list[int] = field(default_factory=list)  # bad items of the last answers, if all were
    promised: int | None = None  # what the source said last about how much there is
    most: int = 0  # … and the most that it has said
    newest: datetime | None = None  # the newest update time so far
    confirmed: datetime | None = None  # … before the last page, which went on from there
    in_order: bool = True  # no page said that it does not come in the order of its pack
    spent: timedelta = timedelta(0)  # with asking, and with waiting for it
    earlier: tuple[int, timedelta] = (0, timedelta(0))  # requests and time of earlier attempts
    _sums: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, batches: Sequence[dict[str, Any]]) -> "History":
        """Return the history that earlier runs left behind."""
        history = cls([], set())
        for stats in batches:
            history.add(stats)
        history.earlier = (history.total("reqCount"), history.spent)
        return history

    @property
    def retries(self) -> int:
        """How often the batch at hand had to be asked for again."""
        return len(self.attempts)

    @property
    def own(self) -> tuple[int, timedelta]:
        """The requests and the time that this attempt has taken."""
        return self.total("reqCount") - self.earlier[0], self.spent - self.earlier[1]

    def count(self, ask: Callable[[], T]) -> T:
        """Send one request of the batch at hand, once, and count it if it left."""
        self.requests += 1
        try:
            return ask()
        except NotSent:
            self.requests -= 1
            raise

    def add(self, stats: dict[str, Any]) -> None:
        """Take a committed batch in and begin to count for the next one.

        Whatever is asked of the past at every page is summed up here: a slice may have thousands.
        """
        self.batches.append(stats)
        if stats.get("phase") != "DETAIL":
            found = stats.get("listed", stats["itemsCount"])
            self.ids |= unpack_ids(stats["idKeys"])
            self.pages.add(stats.get("pageHash", ""))
            self.walked += found
            self.nameless += stats.get("withoutId", 0)
            self.empty_pages = 0 if found else self.empty_pages + 1
            self.known_pages = self.known_pages + 1 if stats.get("onlyKnown") else 0
        self._note_broken(stats)
        if stats.get("total") is not None:
            self.promised = stats["total"]
            self.most = max(self.most, stats["total"])
        self.in_order &= stats.get("ordered") is not False
        if stats.get("observedMax"):
            at = _instant(stats["observedMax"])
            self.newest, self.confirmed = max(self.newest or at, at), self.newest
        self._sums.update({key: stats.get(key, 0) for key in _SUMMED})
        told = stats.get("latencyMs", 0) + stats.get("waitedMs", 0)
        self.spent += timedelta(milliseconds=told)
        self.attempts, self.requests = [], 0

    def _note_broken(self, stats: dict[str, Any]) -> None:
        """Count answers that brought nothing but bad items; what has no items says nothing."""
        bad, seen = stats.get("quarantined", 0), stats["itemsCount"]
        if seen > bad:
            self.broken = []
        elif seen == stats.get("listed") and bad > stats.get("hollow", 0):
            self.broken.append(bad - stats.get("hollow", 0))

    def reached(self, packed_ids: str = "", nameless: int = 0) -> int:
        """Count distinct ids, and items without one, of the pages so far and of one more."""
        new = unpack_ids(packed_ids) - self.ids
        return len(self.ids) + self.nameless + len(new) + nameless

    def total(self, key: Literal["reqCount", "429Count"]) -> int:
        """Return the sum of a number over all batches."""
        return self._sums[key]


def is_in_order(mapped: Mapped, history: History) -> bool:
    """Return whether update times never fall, within a page and from the pages before it to it."""
    first = mapped.first_time
    goes_on = first is None or history.newest is None or history.newest <= first
    return goes_on and mapped.is_ascending


def _instant(at: str | datetime) -> datetime:
    return at if isinstance(at, datetime) else parse_instant(at)


def require_sense(decoded: Decoded, mapped: Mapped, page: Page, history: History) -> None:
    """Raise when a page cannot be what was asked for: all empty, or all seen before."""
    empty = 0 if decoded.items else 1 + history.empty_pages
    if empty > _MOST_EMPTY_PAGES:
        raise SliceIncomplete(f"{empty} pages in a row are empty and none of them is the last")
    if page.number == 1 or not is_known(mapped, history):
        return
    # Records that were changed meanwhile may come once more; the very same ones go in a circle.
    if page_hash(mapped) in history.pages or history.known_pages >= _MOST_KNOWN_PAGES:
        raise SliceIncomplete(
            f"page {page.number} repeats ids of earlier pages only: the source goes in a circle"
        )


def is_known(mapped: Mapped, history: History) -> bool:
    """Return whether a page holds only ids that earlier pages of the walk have brought."""
    return bool(mapped.ids) and all(item_key(one) in history.ids for one in mapped.ids)


def page_hash(mapped: Mapped) -> str:
    """Return what tells one page from another: its records, in their order, with their content."""
    told = "".join(record.content_hash for record in mapped.records)
    return blake2b(told.encode(), digest_size=12).hexdigest()


def require_shape(decoded: Decoded, mapped: Mapped, before: Sequence[int] = ()) -> None:
    """Raise when every item of an answer is broken: the source has changed, not one record.

    One bad item is one bad item, also where it is alone on its page, but not three answers in a
    row: `before` has how many were broken in each of the last ones.
    """
    if mapped.broken > 1 or (mapped.broken and len(before) >= _MOST_BROKEN):
        first = mapped.bad[0]
        item = decoded.items[first.item_no - 1]
        count = len(mapped.bad) + sum(before)
        raise EndpointHalted(
            f"every one of {count} items fails at {first.path} ({first.reason});"
            f" in the first of them {found_instead(item, first.path)};"
            " the source has changed its shape"
        )


def require_order(mapped: Mapped, page: Page) -> None:
    """Raise when going on at the newest update time would pass over records of later pages."""
    if not mapped.is_ascending:
        raise EndpointHalted(
            f"the items of page {page.number} do not come in the order of their update times,"
            " as paging.order says; what lies between would be skipped"
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
