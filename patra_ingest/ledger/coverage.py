"""Which windows of a namespace are done, in work, or failed: what coverage is decided from.

Beside slices this knows plans that claim a window before their slices are written, and plans whose
slices have no window of their own (pages, ids): those are done when all of their slices are.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import find_instant, instant_text, read_instant, read_json
from patra_ingest.model.codes import SliceStatus
from patra_ingest.model.lineage import SliceId
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.slices import CoveredWindow
from patra_ingest.model.window import Window, parse_instant

_IN_NAMESPACE = """
       p.provenance_code = :provenance_code AND p.endpoint_name = :endpoint_name
       AND p.operation_code = :operation_code AND p.cursor_key = :cursor_key
       AND p.namespace_scope_code = :namespace_scope_code AND p.namespace_key = :namespace_key
"""

_SLICES = text(f"""
    SELECT s.id, s.plan_id, s.parent_slice_id, s.window_from, s.window_to, s.status_code,
           s.done_to, JSON_EXTRACT(s.slice_spec, '$.split') IS NOT NULL AS is_split
      FROM ing_plan p JOIN ing_plan_slice s ON s.plan_id = p.id
     WHERE {_IN_NAMESPACE} AND p.window_to > :after AND p.window_from < :before
       AND s.window_to > :after AND s.window_from < :before
     ORDER BY s.window_from, s.id
""")
_UNCUT = text(f"""
    SELECT p.slice_params FROM ing_plan p
     WHERE {_IN_NAMESPACE} AND p.window_to > :after AND p.window_from < :before
       AND p.status_code IN ('DRAFT', 'SLICING')
     ORDER BY p.id
""")
_WHOLE = text(f"""
    SELECT p.window_from, p.window_to, p.status_code,
           EXISTS (SELECT 1 FROM ing_plan_slice s
                    WHERE s.plan_id = p.id AND s.status_code <> 'SUCCEEDED'
                      AND NOT EXISTS (SELECT 1 FROM ing_plan_slice c
                                       WHERE c.plan_id = p.id AND c.parent_slice_id = s.id)) AS bad
      FROM ing_plan p
     WHERE {_IN_NAMESPACE} AND p.window_to > :after AND p.window_from < :before
       AND p.slice_strategy_code IN ('ID_RANGE', 'PAGE_RANGE')
     ORDER BY p.window_from, p.id
""")


# Plans whose own window counts: their slices have none, or are not all written yet.
_WITHOUT_SLICES = """
    (p.slice_strategy_code IN ('ID_RANGE', 'PAGE_RANGE') OR p.status_code IN ('DRAFT', 'SLICING'))
"""
_ENDS = text(f"""
    SELECT MIN(first), MAX(past) FROM (
        SELECT MIN(s.window_from) AS first, MAX(s.window_to) AS past
          FROM ing_plan p JOIN ing_plan_slice s ON s.plan_id = p.id WHERE {_IN_NAMESPACE}
        UNION ALL
        SELECT MIN(p.window_from), MAX(p.window_to) FROM ing_plan p
         WHERE {_IN_NAMESPACE} AND {_WITHOUT_SLICES}) AS ends
""")
_PLANS = text(f"""
    SELECT p.id, CASE WHEN {_WITHOUT_SLICES} THEN p.window_from END AS own
      FROM ing_plan p WHERE {_IN_NAMESPACE}
""")
_FIRST = text("SELECT MIN(window_from) FROM ing_plan_slice WHERE plan_id = :plan")
LAST = datetime(9999, 12, 31, tzinfo=UTC)


def find_ends(tx: Connection, namespace: Namespace) -> Window | None:
    """Return the span from the first to the last window of a namespace; None without any."""
    start, end = tx.execute(_ENDS, namespace.columns()).one()
    return None if start is None else Window(read_instant(start), read_instant(end))


def find_start(tx: Connection, namespace: Namespace) -> datetime | None:
    """Return where `find_ends` begins, without reading the slices of a plan.

    Plan by plan: so the first slice of each is one step into an index, on every engine.
    """
    plans = tx.execute(_PLANS, namespace.columns()).all()
    firsts = (tx.execute(_FIRST, {"plan": plan.id}).scalar() for plan in plans)
    starts = [start for start in (*firsts, *(plan.own for plan in plans)) if start is not None]
    return min(map(read_instant, starts), default=None)


def list_windows(
    tx: Connection, namespace: Namespace, after: datetime, before: datetime = LAST
) -> list[CoveredWindow]:
    """Return the windows of a namespace that end after `after` and begin before `before`."""
    bounds = {"after": instant_text(after), "before": instant_text(before)}
    values = {**namespace.columns(), **bounds}
    # Claims first: a plan that is cut between the two questions is seen by the second one.
    claims = [read_json(written) for written in tx.execute(_UNCUT, values).scalars()]
    rows = tx.execute(_SLICES, values).all()
    superseded = {row.parent_slice_id for row in rows}
    plain = (row for row in rows if not row.is_split)
    found = [part for row in plain for part in _of_slice(row, row.id in superseded)]
    found.extend(_of_families(rows))
    for claim in claims:
        found.extend(_claimed(claim))
    found.extend(_of_plan(row) for row in tx.execute(_WHOLE, values))
    return sorted(found, key=lambda one: (one.window, one.slice_id or 0))


def _of_slice(row: Any, is_superseded: bool) -> Iterator[CoveredWindow]:
    """Yield what a slice stands for; one that was cut again, only what it had finished itself."""
    window = Window(read_instant(row.window_from), read_instant(row.window_to))
    done = find_instant(row.done_to)
    if done is not None:
        yield CoveredWindow(SliceId(row.id), Window(window.start, done), SliceStatus.SUCCEEDED)
    if is_superseded:
        return
    yield CoveredWindow(SliceId(row.id), window, SliceStatus(row.status_code))


_OPEN = frozenset({"PENDING", "READY", "DISPATCHED", "EXECUTING"})


def _of_families(rows: Sequence[Any]) -> Iterator[CoveredWindow]:
    """Yield one window for all slices that share it, cut by a second dimension.

    It is done when every one of them is: a part of its records is in each.
    """
    superseded = {row.parent_slice_id for row in rows}
    families: dict[Any, list[Any]] = {}
    for row in rows:
        if row.is_split and row.id not in superseded:
            key = (row.plan_id, row.window_from, row.window_to)
            families.setdefault(key, []).append(row)
    for family in families.values():
        first = family[0]
        states = {row.status_code for row in family}
        status = SliceStatus.SUCCEEDED if states == {"SUCCEEDED"} else SliceStatus.FAILED
        if states & _OPEN:
            status = SliceStatus.EXECUTING
        window = Window(read_instant(first.window_from), read_instant(first.window_to))
        worst = [row.id for row in family if row.status_code not in ("SUCCEEDED", *_OPEN)]
        yield CoveredWindow(SliceId(min(worst or [row.id for row in family])), window, status)


def _claimed(params: dict[str, Any]) -> Iterator[CoveredWindow]:
    """Yield the holes of a plan that is not cut yet: it stands for them already."""
    if params.get("slices") is None:
        for start, end in params.get("holes", ()):
            window = Window(parse_instant(start), parse_instant(end))
            yield CoveredWindow(None, window, SliceStatus.PENDING)


def _of_plan(row: Any) -> CoveredWindow:
    window = Window(read_instant(row.window_from), read_instant(row.window_to))
    status = SliceStatus.EXECUTING
    if row.status_code in ("COMPLETED", "FAILED", "CANCELLED"):
        failed = row.bad or row.status_code != "COMPLETED"
        status = SliceStatus.FAILED if failed else SliceStatus.SUCCEEDED
    return CoveredWindow(None, window, status)
