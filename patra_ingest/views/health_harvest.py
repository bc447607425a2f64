"""How far a HARVEST has come: holes in its coverage, a cursor that lags, plans that fail to come.

Judged are the namespaces that the next trigger without options would plan: per partition the one
with the newest plan. What a pack asked before it was changed, a campaign, or a person's own query
is history and lags for ever.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import text

from patra_ingest.cursor.frontier import frontier
from patra_ingest.ledger.coverage import find_start, list_windows
from patra_ingest.ledger.cursor_events import find_origin
from patra_ingest.ledger.cursors import find_any_cursor
from patra_ingest.ledger.db import find_instant, read_json
from patra_ingest.model.codes import SliceStatus
from patra_ingest.model.lineage import PlanId
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.slices import CoveredWindow
from patra_ingest.model.window import Window, instant_iso, parse_duration
from patra_ingest.views.coverage import PlanFacts
from patra_ingest.views.health_finding import Finding, Look, Severity
from patra_ingest.views.spans import ago

_HOLES = frozenset({SliceStatus.FAILED, SliceStatus.PARTIAL, SliceStatus.CANCELLED})
_OFF = "Its schedule is switched off: nobody expects it to move."
_NOTHING = "Nothing of it was harvested yet."


@dataclass(frozen=True)
class Harvest:
    """A namespace that is harvested again and again, and where it stands.

    `begins` and `cursor` are None while nothing with a window has come to an end.
    """

    namespace: Namespace
    plan: PlanFacts
    begins: datetime | None
    cursor: datetime | None

    @property
    def shown(self) -> str:
        """Return how a sentence names it, beside the endpoint."""
        return f"partition {self.plan.partition}: " if self.plan.partition else ""

    def expected(self, look: Look, grace: float) -> datetime:
        """Return where the cursor should stand if nothing took longer than `grace` seconds."""
        waits = (look.cadence.every or timedelta(0)) + timedelta(seconds=grace)
        return self.plan.settled_until(look.now - waits)


# Of every namespace its newest plan; the index alone answers.
_NEWEST = text("""
    SELECT MAX(id) FROM ing_plan
     WHERE provenance_code = :provenance AND endpoint_name = :endpoint
       AND operation_code = 'HARVEST'
     GROUP BY namespace_scope_code, namespace_key ORDER BY MAX(id) DESC LIMIT 200
""")
_PLAN = text("""
    SELECT p.id, p.provenance_code, p.endpoint_name, p.operation_code, p.cursor_key,
           p.namespace_scope_code, p.namespace_key, p.campaign, p.expr_proto_hash, p.slice_params,
           JSON_EXTRACT(p.spec_snapshot, '$.window') AS window_spec, s.trigger_params
      FROM ing_plan p LEFT JOIN ing_schedule_instance s ON s.id = p.schedule_instance_id
     WHERE p.id = :id
""")


def list_harvests(look: Look) -> list[Harvest]:
    """Return the namespaces of an endpoint that its schedule keeps going, one per partition."""
    found: dict[str | None, Harvest] = {}
    for plan in look.tx.execute(_NEWEST, look.place).scalars().all():
        row = look.tx.execute(_PLAN, {"id": plan}).mappings().one()
        facts = _facts(row)
        own_question = facts.campaign is not None or facts.overrides
        if own_question or facts.partition in found:
            continue
        found[facts.partition] = _harvest(look, Namespace.of(row), facts)
    return list(found.values())


def _facts(row: Any) -> PlanFacts:
    params, asked = read_json(row["slice_params"]) or {}, read_json(row["trigger_params"]) or {}
    window = read_json(row["window_spec"]) or {}
    return PlanFacts(
        PlanId(row["id"]),
        params.get("partition"),
        row["campaign"] or params.get("campaign"),
        parse_duration(window.get("safety_lag", "0s")),
        parse_duration(window.get("granularity", "1s")),
        window.get("zone", "UTC"),
        window.get("initial_from") is not None,
        # Another address (`set`) asks the same question; other parameters do not.
        {name: asked[name] for name in ("params", "query") if asked.get(name)},
        row["expr_proto_hash"],
    )


def _harvest(look: Look, namespace: Namespace, facts: PlanFacts) -> Harvest:
    cursor = find_any_cursor(look.tx, namespace)
    value = cursor.value if cursor and isinstance(cursor.value, datetime) else None
    begins = find_origin(look.tx, namespace) or find_start(look.tx, namespace)
    return Harvest(namespace, facts, begins, value)


def judge_coverage(look: Look, harvests: Sequence[Harvest]) -> Finding:
    """Say whether everything up to now, as far as it is settled and due, was asked for and came."""
    for harvest in harvests:
        hole = _first_hole(look, harvest)
        if hole is None:
            continue
        window, reason = hole
        why = f"{harvest.shown}the first hole is {window}: {reason}"
        ends = {"hole_from": instant_iso(window.start), "hole_to": instant_iso(window.end)}
        given_up = harvest.cursor is not None and window.end <= harvest.cursor
        severity = Severity.WARN if given_up else Severity.ERROR
        seconds = window.duration.total_seconds()
        return look.bad("coverage", severity, why, seconds, 0.0, **ends)
    known = [harvest for harvest in harvests if harvest.begins]
    return look.fine("coverage", "No hole." if known else _NOTHING, 0.0, 0.0)


def _first_hole(look: Look, harvest: Harvest) -> tuple[Window, str] | None:
    """Return the first part that nobody has and nobody works on.

    Behind the cursor there is none, unless a person has moved it: weeks of that are looked at, and
    what he gave up is only a WARN.
    """
    due = harvest.expected(look, look.lines.cursor_lag)
    if harvest.begins is None:
        return None
    back = min(harvest.cursor or harvest.begins, look.before(days=look.lines.coverage_days))
    start = max(harvest.begins, back)
    if start >= due:
        return None
    known = list_windows(look.tx, harvest.namespace, start, due)
    kept = [one.window for one in known if one.status not in _HOLES]
    reached = frontier(start, kept)
    if reached >= due or (not look.cadence.is_enabled and not _is_beyond(known, reached)):
        return None
    end = min([due, *(window.start for window in kept if window.start > reached)])
    return Window(reached, end), _reason(look, known, reached)


def _is_beyond(known: Sequence[CoveredWindow], reached: datetime) -> bool:
    return any(one.window.end > reached for one in known)


_ERROR = text("SELECT last_error_code, last_error_msg FROM ing_task WHERE slice_id = :slice")


def _reason(look: Look, known: Sequence[CoveredWindow], reached: datetime) -> str:
    there = [one for one in known if one.window.start <= reached < one.window.end]
    tried = [one for one in there if one.status in _HOLES]
    if not tried:
        return "nobody has planned it. The next plan without a start asks for it."
    error = look.tx.execute(_ERROR, {"slice": tried[-1].slice_id}).one_or_none()
    told = f" ({error[0]}: {error[1]})" if error and error[1] else ""
    return f"its slice {tried[-1].slice_id} is {tried[-1].status}{told}. The next plan asks again."


def judge_lag(look: Look, harvests: Sequence[Harvest]) -> Finding:
    """Say whether a cursor is further behind than its safety lag, grid and schedule explain."""
    name, line = "cursor_lag", look.lines.cursor_lag
    placed = [one for one in harvests if one.begins is not None]
    if not placed:
        return look.fine(name, _NOTHING, None, line)
    worst = max(placed, key=lambda one: _behind(look, one))
    behind = _behind(look, worst).total_seconds()
    at = worst.cursor or worst.begins or look.now
    told = f"{worst.shown}the cursor stands at {instant_iso(at)}"
    if not look.cadence.is_enabled:
        return look.fine(name, _OFF, behind, line)
    if at >= worst.expected(look, line):
        return look.fine(name, f"{told}.", behind, line)
    late = at < worst.expected(look, look.lines.cursor_lag_error)
    why = (
        f"{told}, {behind:.0f} s behind what is settled;"
        f" {line:.0f} s beyond its schedule are allowed. `patra status` says what holds it up."
    )
    severity = Severity.ERROR if late else Severity.WARN
    return look.bad(name, severity, why, behind, line, cursor=instant_iso(at))


def _behind(look: Look, harvest: Harvest) -> timedelta:
    at = harvest.cursor or harvest.begins or look.now
    return max(timedelta(0), look.now - harvest.plan.safety_lag - at)


# COMPLETED says that no task is open; a plan succeeded when none of its slices is a hole.
_SUCCEEDED = text("""
    SELECT p.id, p.updated_at FROM ing_plan p
     WHERE p.provenance_code = :provenance AND p.operation_code = 'HARVEST'
       AND p.endpoint_name = :endpoint AND p.status_code = 'COMPLETED'
       AND NOT EXISTS (
               SELECT 1 FROM ing_plan_slice s
                WHERE s.plan_id = p.id AND s.status_code <> 'SUCCEEDED'
                  AND NOT EXISTS (SELECT 1 FROM ing_plan_slice c
                                   WHERE c.plan_id = p.id AND c.parent_slice_id = s.id))
     ORDER BY p.created_at DESC LIMIT 1
""")


def judge_freshness(look: Look, harvests: Sequence[Harvest]) -> Finding:
    """Say whether the last plan that succeeded is older than two rounds of the schedule.

    A round without a new unit of the source's grid plans nothing, and that is fine.
    """
    every = look.cadence.every
    grid = max((one.plan.granularity for one in harvests), default=timedelta(0))
    line = (2 * every + grid).total_seconds() if every else look.lines.freshness
    if not harvests:
        return look.fine("freshness", _NOTHING, None, line)
    row = look.tx.execute(_SUCCEEDED, look.place).one_or_none()
    ended = find_instant(row[1]) if row else None
    if row is None or ended is None:
        return look.bad("freshness", Severity.WARN, "No plan has succeeded yet.", None, line)
    age = (look.now - ended).total_seconds()
    told = f"Plan {row[0]}, the last that succeeded, ended {ago(ended, look.now)}"
    if not look.cadence.is_enabled:
        return look.fine("freshness", _OFF, age, line)
    if age <= line:
        return look.fine("freshness", f"{told}.", age, line)
    why = f"{told}; {line:.0f} s are allowed. Are schedule, sensor and executors running?"
    return look.bad("freshness", Severity.WARN, why, age, line, plan=int(row[0]))
