"""One leased task in work: what it asks for, how it is walked, and whose records it brings."""

import threading
from dataclasses import dataclass
from datetime import timedelta

from patra_ingest.executor.paging import IdsWalk, Page, Walk
from patra_ingest.ledger.plans import Plan
from patra_ingest.ledger.runs import Run
from patra_ingest.ledger.tasks import Lease
from patra_ingest.model.bounds import Bounds
from patra_ingest.model.lineage import BatchId, Lineage


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

    @property
    def walk(self) -> Walk:
        """How the slice is walked: by the source's pages, or by the ids it asks for."""
        if self.bounds.ids is None:
            return self.plan.spec.paging
        return IdsWalk(self.bounds.ids.ids, self.plan.spec.batching.ids_per_request)

    @property
    def stored_under(self) -> str:
        """The endpoint whose records these are."""
        return self.bounds.ids.endpoint if self.bounds.ids else self.plan.namespace.endpoint

    def lineage(self, batch_id: BatchId | None) -> Lineage:
        """Return where a batch of this run comes from, up to its trigger."""
        lease = self.lease
        above = (lease.schedule_instance_id, lease.plan_id, lease.slice_id, lease.task_id)
        return Lineage(*above, self.run.id, batch_id)

    def asked_ids(self, page: Page) -> tuple[str, ...]:
        """Return the ids that a page asks for; none where it asks for a window."""
        walk = self.walk
        return walk.asked(page) if isinstance(walk, IdsWalk) else ()
