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
from patra_ingest.views.health_plan import PlanAudit, audit_plan
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
    proof = _proof(summary, audit, dagster_run)

    def event(
        key: dg.AssetKey, told: Metadata, why: str | None = None, day: str | None = None
    ) -> dg.AssetMaterialization:
        metadata = {**_what(summary), **told, **proof}
        return dg.AssetMaterialization(key, why, metadata, partition=day)

    whole, said = _plan_metadata(summary, audit), _certificate(summary)
    yield event(plans_key(*own), whole, said)
    for day in audit.days:
        why = f"{day.day} is whole: every part of it was harvested with its proof."
        yield event(records_key(*own), _counted(day.counts or {}), why, day.day.isoformat())
    yield event(records_key(*own), {"dagster/row_count": records, **whole}, said)
    yield event(cursors_key(*own), _cursor_metadata(summary, audit))
    yield event(quarantine_key(*own), _quarantine_metadata(summary, audit))


def _what(summary: PlanSummary) -> Metadata:
    """Return what an event speaks of; the plan's number is a name, nothing to plot."""
    return {
        "plan": f"{summary.plan_id} ({summary.operation}, {summary.status})",
        "plan_id": str(summary.plan_id),
        "window": str(summary.window),
    }


def _proof(summary: PlanSummary, audit: PlanAudit, dagster_run: str) -> Metadata:
    """Return what leads from any event back to what was asked and answered."""
    return {
        "dagster_run": dg.MetadataValue.dagster_run(dagster_run),
        "blackbox": dg.MetadataValue.md(_blackbox(audit)),
        "spec_fingerprint": summary.fingerprint,
        "expr_hash": audit.expr_hash,
    }


def _plan_metadata(summary: PlanSummary, audit: PlanAudit) -> Metadata:
    counts = summary.counts
    metadata: Metadata = {"certificate": _certificate(summary), "landed": summary.landed}
    if summary.promised is not None:
        metadata["promised"] = summary.promised
    metadata |= {
        **_counted(counts),
        **_instants(cursor_before=summary.cursor_before, cursor_after=summary.cursor_after),
        "slices": sum(summary.slices.values()),
        **{f"slices_{v.lower()}": summary.certificates.get(v.value, 0) for v in Verdict},
        "slices_failed": summary.slices.get("FAILED", 0),
        "whole_days": len(audit.days) + audit.earlier_days,
        "whole_days_not_listed": audit.earlier_days,
        "retries": counts["retryCount"],
        "throttled": counts["429Count"],
        "bytes_received": summary.bytes,
    }
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
    """Return the commands that show what was asked and answered, and that do it again.

    In short lines: the asset's page cuts what is long.
    """
    lines = ["Asked and answered, run by run:", ""]
    for run in audit.runs:
        counted = f"{run.batches} batches" if run.batches != 1 else "1 batch"
        lines.append(f"- run {run.run_id}, {run.status}, {counted}")
        if run.batches:
            lines.append(f"    - `patra blackbox {run.run_id}/1`")
        lines.append(f"    - `patra replay {run.run_id}`, or `replay_job`")
    if audit.more_runs:
        lines.append(f"- and {audit.more_runs} runs more, before these")
    return "\n".join(lines) if audit.runs else "No run yet."


def _certificate(summary: PlanSummary) -> str:
    verdicts = ", ".join(f"{n} {verdict}" for verdict, n in summary.certificates.items())
    count = sum(summary.slices.values())
    slices = f"{count} slices" if count != 1 else "1 slice"
    landed = f"{summary.landed} landed, no total was promised"
    if summary.promised is not None:
        landed = f"{summary.landed} of {summary.promised} landed"
    return f"{verdicts or 'none'} of {slices}; {landed}"


def _instants(**instants: datetime | None) -> dict[str, dg.MetadataValue]:
    return {
        name: dg.MetadataValue.timestamp(instant)
        for name, instant in instants.items()
        if instant is not None
    }


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
