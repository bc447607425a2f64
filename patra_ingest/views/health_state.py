"""What stands in the ledger now: proofs, cursors beside their events, the outbox, holds."""

from datetime import datetime
from typing import Any

from sqlalchemy import text

from patra_ingest.cursor.replay import replay
from patra_ingest.ledger.cursor_events import find_newest_event
from patra_ingest.ledger.cursors import find_any_cursor, write_value
from patra_ingest.ledger.db import instant_text, read_instant
from patra_ingest.ledger.holds import find_hold
from patra_ingest.ledger.outbox import channel_of
from patra_ingest.model.codes import CursorType, HoldReason
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.window import instant_iso
from patra_ingest.views.health_finding import Finding, Look, Severity

_PROVED = frozenset({"COMPLETE", "DRIFTED"})  # DRIFTED: what is missing is within the tolerance

# From the plans of late down to their runs, by index at every step.
_PROOFS = text("""
    SELECT s.id, r.id, JSON_EXTRACT(r.certificate, '$.verdict')
      FROM ing_plan p JOIN ing_plan_slice s ON s.plan_id = p.id
      LEFT JOIN ing_task t ON t.slice_id = s.id
      LEFT JOIN ing_task_run r ON r.task_id = t.id AND r.status_code = 'SUCCEEDED'
     WHERE p.provenance_code = :provenance
       AND p.operation_code IN ('HARVEST', 'BACKFILL', 'UPDATE') AND p.created_at >= :since
       AND p.endpoint_name = :endpoint AND s.status_code = 'SUCCEEDED'
""")


def judge_completeness(look: Look) -> Finding:
    """Say whether every slice that succeeded carries its proof; of the plans of the last days."""
    name, days = "completeness", look.lines.completeness_days
    values = {**look.place, "since": instant_text(look.before(days=days))}
    verdicts: dict[int, Any] = {}
    for slice_id, _, verdict in look.tx.execute(_PROOFS, values):
        told = str(verdict).strip('"')
        if told in _PROVED or slice_id not in verdicts:
            verdicts[slice_id] = told
    bare = sorted(one for one, verdict in verdicts.items() if verdict not in _PROVED)
    told = f"{len(verdicts)} slices succeeded in plans of the last {days:g} days"
    if not bare:
        return look.fine(name, f"{told}; each has its certificate.", 0, 0)
    listed = ", ".join(map(str, bare[:5]))
    why = f"{told}; {len(bare)} of them lack their certificate, first slices {listed}."
    return look.bad(name, Severity.ERROR, why, len(bare), 0, slices=bare[:100])


_CURSORS = text("""
    SELECT provenance_code, endpoint_name, operation_code, cursor_key, namespace_scope_code,
           namespace_key, cursor_type_code
      FROM ing_cursor WHERE provenance_code = :provenance AND endpoint_name = :endpoint
     ORDER BY updated_at DESC LIMIT 200
""")


def judge_fold(look: Look, planned: list[Namespace]) -> Finding:
    """Say whether the events of every cursor lead where it stands, without a gap."""
    rows = look.tx.execute(_CURSORS, look.place).mappings().all()
    kinds = {Namespace.of(row): CursorType(row["cursor_type_code"]) for row in rows}
    kinds |= {one: CursorType.TIME for one in planned if one not in kinds}
    problems = []
    for namespace, kind in kinds.items():
        if problem := _fold_problem(look, namespace, kind):
            problems.append(f"{namespace.operation} {namespace.key[:12]}: {problem}")
    if not problems:
        why = f"{len(kinds)} cursors stand where their events lead."
        return look.fine("cursor_fold", why, 0, 0)
    why = f"{problems[0]}. `patra cursor verify` shows all, `patra cursor rebuild` mends."
    return look.bad("cursor_fold", Severity.ERROR, why, len(problems), 0, problems=problems[:20])


_COUNT = text("""
    SELECT COUNT(*) FROM (SELECT id FROM ing_cursor_event
     WHERE provenance_code = :provenance_code AND endpoint_name = :endpoint_name
       AND operation_code = :operation_code AND cursor_key = :cursor_key
       AND namespace_scope_code = :namespace_scope_code AND namespace_key = :namespace_key
     LIMIT :most) AS some
""")


def _fold_problem(look: Look, namespace: Namespace, kind: CursorType) -> str | None:
    """Fold the chain; of a long one first look at its newest event, which nearly always settles it.

    A gap far back in a long chain is left to `patra cursor verify` and the nightly upkeep.
    """
    cursor = find_any_cursor(look.tx, namespace)
    value = cursor.value if cursor else None
    most = int(look.lines.fold_events)
    events = look.tx.execute(_COUNT, {**namespace.columns(), "most": most + 1}).scalar_one()
    if events > most:
        newest = find_newest_event(look.tx, namespace)
        if newest is not None and newest.reached == value:
            return None
    folded = replay(look.tx, namespace, kind)
    if folded.gaps:
        return f"something is missing before event {folded.gaps[0]}"
    if folded.value == value or (folded.last is not None and _is_young(look, folded.last)):
        return None
    return _differs(folded.value, value)


def _differs(told: Any, value: Any) -> str:
    return f"its events lead to {write_value(told)}, the cursor is at {write_value(value)}"


_WRITTEN = text("SELECT created_at FROM ing_cursor_event WHERE id = :id")


def _is_young(look: Look, event: int) -> bool:
    """Say whether the cursor may be on its way: the event is written a moment before it moves."""
    written = read_instant(look.tx.execute(_WRITTEN, {"id": event}).scalar_one())
    return (look.now - written).total_seconds() < look.lines.fold_grace


_MINE = "channel = :channel AND SUBSTR(partition_key, 1, :length) = :prefix"
_DEAD = text(f"SELECT COUNT(*) FROM ing_outbox_message WHERE status_code = 'DEAD' AND {_MINE}")
# The index on (status, not before, id) is walked from its oldest and left at the first hit.
_WAITING = text(f"""
    SELECT created_at FROM ing_outbox_message
     WHERE status_code = :status AND (not_before IS NULL OR not_before <= :now)
       AND created_at < :line AND {_MINE}
     ORDER BY not_before, id LIMIT 1
""")


def judge_outbox(look: Look) -> Finding:
    """Say whether messages about this endpoint's records wait too long, or are given up."""
    prefix = f"{look.endpoint}/"
    mine = {"channel": channel_of(look.provenance), "prefix": prefix, "length": len(prefix)}
    name, line = "outbox_backlog", look.lines.outbox_age
    if dead := int(look.tx.execute(_DEAD, mine).scalar_one()):
        why = f"{dead} messages are given up. `patra outbox status` says why."
        return look.bad(name, Severity.ERROR, why, None, line, dead=dead)
    since = _oldest(look, mine)
    if since is None:
        return look.fine(name, f"No message waits longer than {line:.0f} s.", 0.0, line)
    age = (look.now - since).total_seconds()
    why = f"A message waits since {instant_iso(since)}. Is publish_outbox_job running?"
    return look.bad(name, Severity.WARN, why, age, line)


def _oldest(look: Look, mine: dict[str, Any]) -> datetime | None:
    values = {
        **mine,
        "now": instant_text(look.now),
        "line": instant_text(look.before(seconds=look.lines.outbox_age)),
    }
    asked = ({**values, "status": status} for status in ("PENDING", "PUBLISHING", "FAILED"))
    found = (look.tx.execute(_WAITING, one).scalar() for one in asked)
    return min((read_instant(at) for at in found if at is not None), default=None)


def judge_hold(look: Look) -> Finding:
    """Say whether an error or a person has stopped the endpoint."""
    hold = find_hold(look.tx, look.provenance, look.endpoint)
    if hold is None:
        return look.fine("no_hold", "Nobody holds it.", 0, 0)
    by_error = hold.reason_code == HoldReason.L4
    why = (
        f"Held since {instant_iso(hold.held_at)} by {hold.held_by} ({hold.reason_code}:"
        f" {hold.reason}). Mend it, then `patra resume {hold.place}`."
    )
    severity = Severity.ERROR if by_error else Severity.WARN
    return look.bad("no_hold", severity, why, 1, 0, reason_code=str(hold.reason_code))
