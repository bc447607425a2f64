"""What a plan did, told to Dagster: events on its assets, with numbers that Dagster can plot.

Per plan one event on plans, records, cursors and quarantine, and one on records for each day that
it completed, 31 at most. The one on records that tells of the whole plan comes last, because the
newest is what people see first.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import dagster as dg
from sqlalchemy import Connection

from patra_ingest.defs.assets import cursors_key, plans_key, quarantine_key, records_key
from patra_ingest.executor.certificate import Verdict
from patra_ingest.views.health_plan import PlanAudit, WholeDay, audit_plan
from patra_ingest.views.plan_summary import FATES, PlanSummary

Metadata = dict[str, Any]


def materializations(
    tx: Connection, summary: PlanSummary, records: int, dagster_run: str
) -> list[dg.AssetMaterialization]:
    """Return the events of one plan; `records` is how many its endpoint has by now."""
    audit = audit_plan(tx, summary.plan_id)
    return list(_events(summary, audit, records, dagster_run))


def _events(
    summary: PlanSummary, audit: PlanAudit, records: int, dagster_run: str
) -> Iterator[dg.AssetMaterialization]:
    own = (summary.provenance, summary.endpoint)
    who = _who(summary, audit, dagster_run)
    whole = {**_plan_metadata(summary, audit), **who}
    told = _certificate(summary)
    yield dg.AssetMaterialization(plans_key(*own), description=told, metadata=whole)
    for day in audit.days:
        yield _of_day(summary, day, who)
    rows = {"dagster/row_count": records}
    yield dg.AssetMaterialization(records_key(*own), description=told, metadata={**rows, **whole})
    yield dg.AssetMaterialization(
        cursors_key(*own), metadata={**_cursor_metadata(summary, audit), **who}
    )
    yield dg.AssetMaterialization(
        quarantine_key(*own), metadata={**_quarantine_metadata(summary, audit), **who}
    )


def _of_day(summary: PlanSummary, day: WholeDay, who: Metadata) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(
        records_key(summary.provenance, summary.endpoint),
        partition=day.day.isoformat(),
        description=f"{day.day} is whole: every part of it was harvested with its proof.",
        metadata={**_counted(day.counts or {}), **who},
    )


def _who(summary: PlanSummary, audit: PlanAudit, dagster_run: str) -> Metadata:
    """Return what leads from any event back to what was asked and answered."""
    return {
        "plan": f"{summary.plan_id} ({summary.operation}, {summary.status})",
        "plan_id": int(summary.plan_id),
        "window": str(summary.window),
        "dagster_run": dg.MetadataValue.dagster_run(dagster_run),
        "spec_fingerprint": summary.fingerprint,
        "expr_hash": audit.expr_hash,
        "blackbox": dg.MetadataValue.md(_blackbox(audit)),
    }


def _plan_metadata(summary: PlanSummary, audit: PlanAudit) -> Metadata:
    counts = summary.counts
    metadata: Metadata = {
        "certificate": _certificate(summary),
        **{f"slices_{v.lower()}": summary.certificates.get(v.value, 0) for v in Verdict},
        "landed": summary.landed,
        **_instants(cursor_before=summary.cursor_before, cursor_after=summary.cursor_after),
        "slices": sum(summary.slices.values()),
        "slices_failed": summary.slices.get("FAILED", 0),
        **_counted(counts),
        "retries": counts["retryCount"],
        "throttled": counts["429Count"],
        "bytes_received": summary.bytes,
        "whole_days": len(audit.days) + audit.earlier_days,
        "whole_days_not_listed": audit.earlier_days,
    }
    if summary.promised is not None:
        metadata["promised"] = summary.promised
    if summary.seconds:
        metadata["seconds"] = round(summary.seconds, 3)
        metadata["records_per_second"] = round(counts["itemsCount"] / summary.seconds, 1)
    return metadata


def _counted(counts: dict[str, int]) -> Metadata:
    if not counts:
        return {}
    return {
        "requests": counts["reqCount"],
        "records_seen": counts["itemsCount"],
        **{f"records_{_snake(fate)}": counts[fate] for fate in FATES},
    }


def _cursor_metadata(summary: PlanSummary, audit: PlanAudit) -> Metadata:
    step = {"cursor_before": summary.cursor_before, "cursor_after": summary.cursor_after}
    moved = None
    if summary.cursor_before and summary.cursor_after:
        moved = (summary.cursor_after - summary.cursor_before).total_seconds()
    return {
        "operation": summary.operation,
        **_instants(**step, cursor_now=audit.cursor),
        **({} if moved is None else {"moved_seconds": moved}),
    }


def _quarantine_metadata(summary: PlanSummary, audit: PlanAudit) -> Metadata:
    seen, bad = summary.counts["itemsCount"], summary.counts["quarantined"]
    return {
        "dagster/row_count": audit.quarantine_open,
        "records_seen": seen,
        "records_quarantined": bad,
        "quarantine_share": round(bad / seen, 6) if seen else 0.0,
    }


def _blackbox(audit: PlanAudit) -> str:
    """Return the commands that show what was asked and answered, and that do it again."""
    lines = ["What was asked and answered, batch by batch:", ""]
    for run in audit.runs:
        box = f"`patra blackbox {run.run_id}/1`" if run.batches else "no batch"
        counted = f"{run.batches} batches" if run.batches != 1 else "1 batch"
        lines.append(f"- run {run.run_id} ({run.status}, {counted}): {box}, ")
        lines[-1] += f"`patra replay {run.run_id}`"
    if audit.more_runs:
        lines.append(f"- and {audit.more_runs} runs more, before these")
    return "\n".join(lines) if audit.runs else "No run yet."


def _certificate(summary: PlanSummary) -> str:
    verdicts = ", ".join(f"{n} {verdict}" for verdict, n in summary.certificates.items())
    promised = "no total" if summary.promised is None else f"{summary.promised} promised"
    return (
        f"{verdicts or 'none'} of {sum(summary.slices.values())} slices;"
        f" {promised}, {summary.landed} landed"
    )


def _instants(**instants: datetime | None) -> dict[str, dg.MetadataValue]:
    return {
        name: dg.MetadataValue.timestamp(instant)
        for name, instant in instants.items()
        if instant is not None
    }


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
