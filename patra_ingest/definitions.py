"""What Dagster loads. Everything it can see is listed here, by name."""

import dagster as dg

from patra_ingest.defs import execution, planning, upkeep
from patra_ingest.defs.assets import builtin_assets
from patra_ingest.defs.resources import (
    CursorResource,
    LedgerResource,
    RateGateResource,
    RegistryResource,
)

ledger = LedgerResource()

defs = dg.Definitions(
    assets=builtin_assets(),
    jobs=[
        execution.ingest_job,
        planning.plan_job,
        execution.execute_job,
        upkeep.go_on_job,
        upkeep.publish_job,
    ],
    schedules=[planning.harvest_schedule],
    sensors=[execution.queued_tasks, upkeep.waiting_plans],
    resources={
        "ledger": ledger,
        "registry": RegistryResource(ledger=ledger),
        "rate_gate": RateGateResource(ledger=ledger),
        "cursors": CursorResource(ledger=ledger),
    },
)
