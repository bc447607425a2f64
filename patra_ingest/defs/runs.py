"""Dagster's runs as the ledger's people look for them: their tags, their order, how many there are.

A run's tags say what it works on: patra/source, patra/endpoint, patra/operation, patra/plan,
patra/window, and patra/trigger, which says who wanted it.
"""

from collections.abc import Iterable, Mapping, Sequence

import dagster as dg

from patra_ingest.model.codes import Operation

LOCATION = "patra_ingest"  # what workspace.yaml calls the place of our code

EXECUTOR = {"patra/role": "executor"}  # dagster.yaml limits how many of these run at once

# Of what nobody waits for: after a day it ends, and what it was at is begun anew. So a run that
# died where nobody can see it (see `processes`) does not keep its place for ever.
AUTOMATIC = {"dagster/max_runtime": str(24 * 3600)}

# Who is dequeued first when more runs wait than may run.
PRIORITY = {Operation.HARVEST: "2", Operation.UPDATE: "1", Operation.BACKFILL: "0"}

ACTIVE = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
FINISHED = [
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
]


def named(**tags: object) -> dict[str, str]:
    """Return tags of ours; what is empty is left out."""
    return {f"patra/{name}": str(value) for name, value in tags.items() if value}


def tag_run(context: dg.OpExecutionContext, **tags: object) -> None:
    """Tag this run with what it works on, so that it can be found by it."""
    context.instance.add_run_tags(context.run_id, named(**tags))


def trigger_of(run: dg.DagsterRun) -> str:
    """Return who wanted a run: `schedule NAME`, `sensor NAME`, `again after RUN` or `person`."""
    if run.parent_run_id:
        return f"again after {run.parent_run_id}"
    for kind in ("schedule", "sensor"):
        name = run.tags.get(f"dagster/{kind}_name")
        if name:
            return f"{kind} {name}"
    return "person"


def count_active(instance: dg.DagsterInstance, job: str, tags: Mapping[str, str]) -> int:
    """Count the runs of a job with these tags that wait or run."""
    return instance.get_runs_count(dg.RunsFilter(job_name=job, tags=dict(tags), statuses=ACTIVE))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> dg.TableMetadataValue:
    """Return rows of words as a table that the run's page draws."""
    records = [dg.TableRecord(dict(zip(columns, row, strict=True))) for row in rows]
    schema = dg.TableSchema([dg.TableColumn(name) for name in columns])
    return dg.MetadataValue.table(records, schema)
