"""The evidence of one batch, gathered by its keys: what was asked, answered, done, and why.

Bodies are digests and a redacted sample of at most one kilobyte, unless they are asked for whole.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.errors import PersonMustAct
from patra_ingest.ledger.db import find_instant, read_json
from patra_ingest.ledger.evidence import get_batch, get_run, list_quarantined, list_steps
from patra_ingest.ledger.plans import get_plan
from patra_ingest.ledger.remarks import read_remarks
from patra_ingest.model.evidence import KeptBatch, KeptRun
from patra_ingest.model.lineage import PlanId
from patra_ingest.rawstore.store import RawStore
from patra_ingest.spec.references import secrets_of
from patra_ingest.transport.hiding import hide
from patra_ingest.transport.redact import redact_text

SAMPLE_BYTES = 1024
_VALID_FOR = timedelta(days=7)
_BULKY = ("idKeys", "foundIds", "attempts")  # told elsewhere, or too much to read

_ABOVE = text("""
    SELECT p.plan_key, p.spec_fingerprint, p.expr_proto_hash, p.provenance_config_hash,
           p.window_from AS plan_from, p.window_to AS plan_to, p.campaign,
           s.slice_no, s.slice_signature_hash, s.expr_hash, s.expr_snapshot, s.slice_spec,
           s.window_from AS slice_from, s.window_to AS slice_to,
           i.trigger_type_code, i.scheduler_code, i.triggered_at
      FROM ing_plan p JOIN ing_plan_slice s ON s.plan_id = p.id
      JOIN ing_schedule_instance i ON i.id = p.schedule_instance_id
     WHERE p.id = :plan AND s.id = :slice
""")
_REMARKS = text("SELECT record_remarks FROM ing_task_run_batch WHERE id = :id")


@dataclass(frozen=True)
class BlackBox:
    """One batch's evidence: JSON that leads from the trigger to the bytes."""

    run_id: int
    batch_no: int
    batch_id: int
    form: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return everything, as it is exported."""
        return self.form


@dataclass(frozen=True)
class Export:
    """Who takes a black box out, when, whether with whole bodies, and how secrets are known."""

    by: str
    at: datetime
    with_body: bool = False
    find_secret: Callable[[str], str | None] = field(default=lambda _: None, repr=False)


def open_blackbox(
    tx: Connection, raw: RawStore, run_id: int, batch_no: int, export: Export
) -> BlackBox:
    """Gather the evidence of a batch, whatever its status; UnknownName when there is none."""
    run, batch = get_run(tx, run_id), get_batch(tx, run_id, batch_no)
    stats, secrets = batch.stats, secrets_of_run(tx, run, export.find_secret)
    form = {
        "exported": _exported(export),
        "keys": _keys(run, batch),
        "lineage": {**run.lineage.columns(), "batch_id": batch.id},
        **_above(tx, run),
        "run": _run_form(run),
        "batch": _batch_form(batch),
        "request": batch.request,
        "response": batch.response,
        "attempts": stats.get("attempts", []),
        "gate": {name: batch.response.get(name) for name in ("rate", "quota")},
        "stats": {name: value for name, value in stats.items() if name not in _BULKY},
        "quarantined": [asdict(item) for item in list_quarantined(tx, batch.id)],
        "cursorSteps": [asdict(step) for step in list_steps(tx, run)],
        "remarks": read_remarks(tx.execute(_REMARKS, {"id": batch.id}).scalar()),
        "bodies": list(_bodies(raw, batch, export.with_body, secrets)),
    }
    return BlackBox(run_id, batch_no, batch.id, form)


def _exported(export: Export) -> dict[str, Any]:
    until = export.at + _VALID_FOR
    return {"by": export.by, "at": export.at, "validUntil": until, "withBody": export.with_body}


def _keys(run: KeptRun, batch: KeptBatch) -> dict[str, Any]:
    return {
        "run": run.id,
        "batch": batch.no,
        "provenance": run.provenance,
        "endpoint": run.endpoint,
        "operation": run.operation,
        "position": batch.position,
        "exprHash": batch.expr_hash,
    }


def _above(tx: Connection, run: KeptRun) -> dict[str, Any]:
    """Return what the batch stands on: its trigger, its plan and its slice."""
    values = {"plan": run.lineage.plan_id, "slice": run.lineage.slice_id}
    row = tx.execute(_ABOVE, values).one()
    return {
        "trigger": {
            "type": row.trigger_type_code,
            "scheduler": row.scheduler_code,
            "at": find_instant(row.triggered_at),
        },
        "plan": {
            "key": row.plan_key,
            "window": _span(row.plan_from, row.plan_to),
            "specFingerprint": row.spec_fingerprint,
            "exprProtoHash": row.expr_proto_hash,
            "configHash": row.provenance_config_hash,
            "campaign": row.campaign,
        },
        "slice": {
            "no": row.slice_no,
            "window": _span(row.slice_from, row.slice_to),
            "signature": row.slice_signature_hash,
            "exprHash": row.expr_hash,
            "spec": read_json(row.slice_spec),
        },
    }


def _span(start: Any, end: Any) -> dict[str, Any] | None:
    return {"from": find_instant(start), "to": find_instant(end)} if start and end else None


def _run_form(run: KeptRun) -> dict[str, Any]:
    return {
        "attempt": run.attempt_no,
        "status": run.status,
        "startedAt": run.started_at,
        "finishedAt": run.finished_at,
        "certificate": run.certificate,
        "error": run.error,
    }


def _batch_form(batch: KeptBatch) -> dict[str, Any]:
    return {
        "status": batch.status,
        "pageNo": batch.page_no,
        "pageSize": batch.page_size,
        "before": batch.position,
        "after": batch.after_position,
        "committedAt": batch.committed_at,
        "error": batch.error,
    }


def secrets_of_run(
    tx: Connection, run: KeptRun, find_secret: Callable[[str], str | None]
) -> frozenset[str]:
    """Return the secrets of the plan's credentials: a source may have repeated a short one."""
    spec = get_plan(tx, PlanId(run.lineage.plan_id or 0)).spec
    known = [*spec.auth.credentials, *(spec.detail.auth.credentials if spec.detail else ())]
    places = {place for each in known for place in secrets_of(each.credential)}
    return frozenset(secret for place in places if (secret := find_secret(place)))


def _bodies(
    raw: RawStore, batch: KeptBatch, with_body: bool, secrets: frozenset[str]
) -> Iterator[dict[str, Any]]:
    """Yield every raw body of a batch once, in the order they are listed."""
    listed = [batch.response, *(one["response"] for one in batch.response.get("also", ()))]
    for key in dict.fromkeys(one["body"] for one in listed if one.get("body")):
        yield {"key": key, **_body(raw, key, with_body, secrets)}


def _body(raw: RawStore, key: str, with_body: bool, secrets: frozenset[str]) -> dict[str, Any]:
    try:
        stored = raw.get(key)
    except PersonMustAct as error:
        return {"missing": str(error)}
    # Byte for byte: whatever its charset, what is no secret stays as it is.
    body = hide(stored.decode("latin-1"), secrets).encode("latin-1")
    told = {"bytes": len(stored), "sample": sample(body)}
    return {**told, **_whole(body)} if with_body else told


def _whole(body: bytes) -> dict[str, str]:
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"bodyBase64": b64encode(body).decode()}


def sample(body: bytes) -> str:
    """Return the beginning of a body without secrets, in at most a kilobyte."""
    clean = redact_text(body.decode("utf-8", "replace"), SAMPLE_BYTES)
    return clean.encode()[:SAMPLE_BYTES].decode("utf-8", "ignore")
