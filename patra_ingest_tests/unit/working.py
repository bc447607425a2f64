"""A task in work without a ledger, for the pure parts of the executor."""

import threading
from datetime import datetime
from typing import Any

from patra_ingest.executor.leased import Work
from patra_ingest.ledger.batches import DoneBatch
from patra_ingest.ledger.plans import Plan
from patra_ingest.ledger.runs import Run
from patra_ingest.ledger.tasks import Lease, Partition
from patra_ingest.model.bounds import Bounds, IdSet
from patra_ingest.model.codes import (
    CursorDirection,
    NamespaceScope,
    Operation,
    PlanStatus,
    Scheduler,
    TriggerType,
)
from patra_ingest.model.namespace import Namespace
from patra_ingest.spec.snapshot import DetailSpec, ReconcileSpec, SpecSnapshot
from patra_ingest.spec.words import MissingIds
from patra_ingest_tests.builders import NOON, a_spec, days


def a_work(spec: SpecSnapshot | None = None, bounds: Bounds | None = None, **more: Any) -> Work:
    """Return a leased task over one day, as its executor sees it."""
    names = Namespace(
        "example", "works", Operation.HARVEST, "updated_at", NamespaceScope.GLOBAL, "0" * 64
    )
    lease = Lease(1, 1, 1, 1, "me", NOON, Partition("example", "works", "HARVEST"))
    plan = Plan(
        *(1, 1, next(iter(PlanStatus)), names, next(iter(CursorDirection))),
        *(spec or a_spec(), "f" * 64, days(0, 1), None, {}),
        *(next(iter(TriggerType)), next(iter(Scheduler))),
    )
    cut = bounds or Bounds(days(0, 1))
    return Work(lease, plan, Run(1, 1), cut, "e" * 64, threading.Event(), **more)


def a_rule(**more: Any) -> ReconcileSpec:
    """Return how ids are reconciled; by default a missing one is gone."""
    plain = {"missing": MissingIds.GONE, "positional": False, "aliases": False, "isolate": True}
    return ReconcileSpec(**{**plain, **more})


def a_search(batch: int = 2, **rule: Any) -> SpecSnapshot:
    """Return a spec of two phases: what `a_spec` finds is fetched in batches."""
    spec = a_spec()
    call = {name: getattr(spec, name) for name in DetailSpec.model_fields if hasattr(spec, name)}
    own = {"endpoint": "fetch", "batch": batch, "reconcile": a_rule(**rule)}
    return spec.model_copy(update={"detail": DetailSpec(**{**call, **own})})


def by_ids(*ids: str, **rule: Any) -> Work:
    """Return a task that asks for ids."""
    spec = a_spec().model_copy(update={"reconcile": a_rule(**rule)})
    return a_work(spec, Bounds(ids=IdSet("works", ids)))


def a_done(
    stats: dict[str, Any],
    after: str | None,
    page: int = 1,
    at: datetime = NOON,
    address: str | None = None,
) -> DoneBatch:
    """Return a batch that has been committed."""
    plain = {"itemsCount": 0, "withoutId": 0, "idKeys": "", "total": None}
    return DoneBatch(page, page, after, {**plain, **stats}, at, address)
