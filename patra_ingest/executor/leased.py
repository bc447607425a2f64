"""One leased task in work: what it asks for, how it is walked, and whose records it brings."""

import threading
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property

from patra_ingest.errors import RequestRejected
from patra_ingest.executor.certificate import Promise
from patra_ingest.executor.paging import IdsWalk, Page, RangeWalk, Walk
from patra_ingest.executor.positions import position
from patra_ingest.ledger.plans import Plan
from patra_ingest.ledger.runs import Run
from patra_ingest.ledger.tasks import Lease
from patra_ingest.model.bounds import Bounds
from patra_ingest.model.lineage import BatchId, Lineage
from patra_ingest.spec.paging import OffsetPaging, PagePaging
from patra_ingest.spec.snapshot import CallSpec, ReconcileSpec
from patra_ingest.spec.words import Consistency


@dataclass
class Healing:
    """What was done to get one batch through; it is told with the batch."""

    slowed_down: bool = False
    page_shrunk: bool = False
    circuit_open: bool = False
    last_failure: str | None = None  # the one that opened it
    halved: bool = False
    tail_probed: bool = False
    times_turned_away: int = 0  # answers that said: not so fast
    quota_soft_hits: int = 0  # the rest of a quota was kept for more urgent operations
    quota_hard_hits: int = 0  # a quota was used up

    def as_json(self) -> dict[str, bool]:
        """Return the actions in the words of the batch's stats."""
        return {
            "qpsDownshift": self.slowed_down,
            "pageSizeShrink": self.page_shrunk,
            "circuitOpen": self.circuit_open,
            "idsHalved": self.halved,
            "tailProbed": self.tail_probed,
        }


@dataclass(frozen=True)
class Details:
    """The ids that a search page has found, and how many of them have become records."""

    ids: tuple[str, ...]
    done: int
    per_request: int
    after: Page | None  # where the search goes on when these are done

    @property
    def asked(self) -> tuple[str, ...]:
        """The ids of the next request."""
        return self.ids[self.done : self.done + self.per_request]

    @property
    def reached(self) -> int:
        """How many will be done after the next request."""
        return self.done + len(self.asked)


@dataclass(frozen=True)
class Place:
    """Where one batch starts: a page of the walk, or some ids that a page has found."""

    page: Page
    details: Details | None = None

    @property
    def needed(self) -> Page | None:
        """The page of the walk that is asked for next, here or when the details are done."""
        return self.details.after if self.details else self.page

    def at_address(self, address: str) -> "Place":
        """Return the same place, with the address of the page that is needed."""
        page = replace(self.needed or self.page, token=address)
        if self.details is None:
            return Place(page)
        return Place(self.page, replace(self.details, after=page))


@dataclass(frozen=True)
class Work:
    """One leased task being executed."""

    lease: Lease
    plan: Plan
    run: Run
    bounds: Bounds
    expr_hash: str
    stop: threading.Event
    lookback: timedelta = timedelta(0)
    expected_requests: int | None = None
    expected_records: int | None = None
    healing: Healing = field(default_factory=Healing)

    @cached_property
    def walk(self) -> Walk:
        """How the slice is walked: by the source's pages, or by the ids it asks for."""
        paging = self.plan.spec.paging
        if self.bounds.ids is not None:
            return IdsWalk(self.bounds.ids.ids, self.plan.spec.batching.ids_per_request)
        if self.bounds.pages is None:
            return paging
        if not isinstance(paging, OffsetPaging | PagePaging):
            raise RequestRejected(f"slices cut by pages cannot be walked by {paging.type}")
        return RangeWalk(paging, self.bounds.pages)

    @property
    def stored_under(self) -> str:
        """The endpoint whose records these are."""
        return self.bounds.ids.endpoint if self.bounds.ids else self.plan.namespace.endpoint

    @property
    def promise(self) -> Promise:
        """Where the source says how much a slice holds."""
        if self.bounds.ids is not None:
            return Promise("the ids of the slice")
        paging = self.plan.spec.paging
        total = paging.total
        if total is None:
            return Promise()
        place = total.path or f"header {total.header}"
        by_number = isinstance(paging, OffsetPaging | PagePaging)
        shifts = by_number and paging.consistency is not Consistency.SNAPSHOT
        return Promise(place, total.tolerance, total.is_estimate, shifts)

    def lineage(self, batch_id: BatchId | None) -> Lineage:
        """Return where a batch of this run comes from, up to its trigger."""
        lease = self.lease
        above = (lease.schedule_instance_id, lease.plan_id, lease.slice_id, lease.task_id)
        return Lineage(*above, self.run.id, batch_id)

    def asked_ids(self, place: Place) -> tuple[str, ...]:
        """Return the ids that a batch asks for; none where it asks for a page."""
        if place.details is not None:
            return place.details.asked
        return self.walk.asked(place.page) if isinstance(self.walk, IdsWalk) else ()

    def other_ids(self, place: Place) -> tuple[str, ...]:
        """Return the other ids of the same walk, those that were asked for last first."""
        if place.details is not None:
            found, done = place.details.ids, place.details.done
        elif isinstance(self.walk, IdsWalk):
            found, done = self.walk.ids, place.page.offset
        else:
            return ()
        return (*found[:done][::-1], *found[done + len(self.asked_ids(place)) :])

    def call_at(self, place: Place) -> tuple[CallSpec, ReconcileSpec | None]:
        """Return what is called at a place, and how its ids are reconciled."""
        spec = self.plan.spec
        if place.details is not None and spec.detail is not None:
            return spec.detail, spec.detail.reconcile
        return spec, spec.reconcile

    def position(self, place: Place) -> str:
        """Return a place as text: what the ledger stores and compares."""
        at = position(self.walk, place.page)
        return at if place.details is None else f"{at}|ids:{place.details.done}"
