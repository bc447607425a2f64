"""What ops and sensors are handed: the ledger, and over it the Registry, the gate and the cursors.

Each opens what `wiring` builds for the length of a block; nothing is opened at import. None has a
field: the environment says where the ledger is (`settings`), so that no password can be typed into
the Launchpad and be kept with the run.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from patra_ingest.defs.processes import introduce
from patra_ingest.errors import PersonMustAct, UnknownName
from patra_ingest.model.codes import Operation
from patra_ingest.planner.trigger import Trigger
from patra_ingest.registry.cadences import list_cadences
from patra_ingest.registry.pack import SchedulePart
from patra_ingest.registry.read import EndpointName, list_endpoints
from patra_ingest.views.budget import list_buckets
from patra_ingest.wiring import Ingest, Reader, open_ingest, open_reader


class LedgerResource(dg.ConfigurableResource["LedgerResource"]):
    """The SQL ledger that PATRA_DB_URL and PATRA_HOME name: the only truth."""

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Tell Dagster which process a run is, before its first step."""
        if context.run is not None and context.instance is not None:
            introduce(context.instance, context.run.run_id)

    @contextmanager
    def open(self, worker_name: str | None = None) -> Iterator[Ingest]:
        """Open the live objects; leaving the block closes them.

        What a person must mend fails the step with our one sentence.
        """
        try:
            with open_ingest(worker_name=worker_name) as live:
                yield live
        except PersonMustAct as error:
            raise dg.Failure(str(error)) from None

    @contextmanager
    def look(self) -> Iterator[Reader]:
        """Open the ledger to read it, and nothing else: what sensors do every few seconds."""
        try:
            with open_reader() as reader:
                yield reader
        except PersonMustAct as error:
            raise dg.Failure(str(error)) from None


class RegistryResource(dg.ConfigurableResource["RegistryResource"]):
    """The Registry: what can be planned."""

    ledger: dg.ResourceDependency[LedgerResource]

    def endpoints(self, operation: Operation) -> list[EndpointName]:
        """Return every endpoint that the Registry declares for an operation and that can run."""
        with self.ledger.open() as live:
            with live.db.read() as tx:
                declared = list_endpoints(tx, live.clock.now(), operation)
            return [
                name
                for name in declared
                if live.planner.can_run(Trigger(name.provenance, name.endpoint, operation))
            ]

    def can_run(self, name: EndpointName) -> bool:
        """Return whether the Registry has this endpoint for this operation, and it can run."""
        trigger = Trigger(name.provenance, name.endpoint, name.operation)
        with self.ledger.open() as live:
            try:
                return live.planner.can_run(trigger)
            except UnknownName:
                return False

    def cadences(self, operation: Operation) -> dict[tuple[str, str], SchedulePart]:
        """Return what the Registry says of when to ask, by source and endpoint."""
        with self.ledger.look() as live, live.db.read() as tx:
            return list_cadences(tx, operation, live.clock.now())


class RateGateResource(dg.ConfigurableResource["RateGateResource"]):
    """The rate gate: how fast we may go, shared by all processes."""

    ledger: dg.ResourceDependency[LedgerResource]

    def states(self) -> dict[str, str]:
        """Return what every rate key allows now, in words."""
        with self.ledger.look() as live, live.db.read() as tx:
            return {bucket.rate_key: bucket.words(live.db.now(tx)) for bucket in list_buckets(tx)}


class CursorResource(dg.ConfigurableResource["CursorResource"]):
    """The cursors: how far we are."""

    ledger: dg.ResourceDependency[LedgerResource]

    def catch_up(self) -> None:
        """Advance every cursor that is behind its frontier."""
        with self.ledger.open() as live:
            live.cursors.catch_up()
