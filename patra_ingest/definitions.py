"""What Dagster loads. Everything it can see is listed here, by name."""

import dagster as dg

from patra_ingest.defs import alerts, execution, planning, replaying, schedules, sensors, upkeep
from patra_ingest.defs import checks as health
from patra_ingest.defs.assets import assets_of, builtin_sources, places_of
from patra_ingest.defs.resources import (
    CursorResource,
    LedgerResource,
    RateGateResource,
    RegistryResource,
)

ledger = LedgerResource()
packs = builtin_sources()
places = places_of(packs)

defs = dg.Definitions(
    assets=assets_of(packs),
    asset_checks=[health.checks_of(places)],
    jobs=[
        execution.ingest_job,
        planning.plan_job,
        execution.execute_job,
        planning.reslice_job,
        planning.update_candidates_job,
        replaying.replay_job,
        upkeep.publish_outbox_job,
        upkeep.upkeep_job,
        health.check_job,
    ],
    schedules=[
        *schedules.builtin_schedules(),
        *schedules.registry_schedules(),
        upkeep.upkeep_daily,
        health.schedule_of(places),
    ],
    sensors=[
        sensors.queued_harvest,
        sensors.queued_update,
        sensors.queued_backfill,
        sensors.reslice_requests,
        sensors.signals_waiting,
        alerts.alerts,
    ],
    resources={
        "ledger": ledger,
        "registry": RegistryResource(ledger=ledger),
        "rate_gate": RateGateResource(ledger=ledger),
        "cursors": CursorResource(ledger=ledger),
    },
)
