"""What a plan's row is made of: its key, how it is cut, and how its window came about."""

from typing import Any

from patra_ingest.ledger.plans import NewPlan
from patra_ingest.model import keys
from patra_ingest.model.codes import SliceStrategy, direction
from patra_ingest.model.window import Window
from patra_ingest.planner.trigger import Part, Rooted
from patra_ingest.planner.windowing import Decision


def plan_key(rooted: Rooted, part: Part, window: Window, mark: str | None) -> str:
    """Return the plan's key; `mark` tells plans of one window apart, such as a second attempt."""
    marks = (rooted.trigger.campaign, part.partition and f"@{part.partition}", mark)
    return keys.plan_key(
        provenance=part.namespace.provenance,
        operation=part.namespace.operation,
        endpoint=part.namespace.endpoint,
        window=window,
        expr_proto_hash=rooted.compiled.proto_hash,
        campaign="/".join(mark for mark in marks if mark) or None,
    )


def plan_row(
    rooted: Rooted, part: Part, decision: Decision, params: dict[str, Any], mark: str | None
) -> NewPlan:
    """Return the row of a new plan; `params` say how it is cut."""
    if decision.window is None:
        raise ValueError("a plan needs its window")
    return NewPlan(
        rooted.root,
        plan_key(rooted, part, decision.window, mark),
        part.namespace,
        direction(part.namespace.operation),
        decision.window,
        rooted.compiled,
        SliceStrategy(params["strategy"]),
        params,
        _remarks(rooted, decision),
        rooted.trigger.campaign,
    )


def _remarks(rooted: Rooted, decision: Decision) -> list[dict[str, Any]]:
    """Return what a plan notes of itself: how its window came about, and every downgrade."""
    now = decision.facts["now"]
    data = {**decision.as_json(), "trigger": rooted.trigger.params()}
    notes = [{"time": now, "by": "planner", "note": "window decided", "data": data}]
    for warning in rooted.compiled.spec.warnings:
        notes.append({"time": now, "by": "compiler", "note": warning, "type": "downgrade"})
    return notes
