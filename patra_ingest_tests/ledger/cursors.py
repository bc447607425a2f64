"""Plans of whole days, for cursors to move over."""

from patra_ingest.cursor.advance import Evidence
from patra_ingest.ledger.cursors import CursorEvent
from patra_ingest.ledger.db import Db, insert, instant_text
from patra_ingest.model.codes import NamespaceScope, Operation, SliceStatus, direction
from patra_ingest.model.lineage import Lineage
from patra_ingest.model.namespace import Namespace
from patra_ingest_tests.builders import day, days, set_slice

HARVEST = Namespace("example", "works", Operation.HARVEST, "k", NamespaceScope.EXPR, "h" * 64)
BACKFILL = Namespace("example", "works", Operation.BACKFILL, "k", NamespaceScope.CUSTOM, "b" * 64)
TOKENS = Namespace("example", "works", Operation.HARVEST, "token", NamespaceScope.EXPR, "h" * 64)


def plan_columns(namespace: Namespace, count: int) -> dict[str, object]:
    """Return the row of a plan of so many days."""
    return {
        **namespace.columns(),
        "schedule_instance_id": 1,
        "plan_key": namespace.key,
        "direction_code": direction(namespace.operation).value,
        "expr_proto_hash": "0" * 64,
        "spec_fingerprint": "0" * 64,
        "spec_snapshot": "{}",
        "window_from": instant_text(day(0)),
        "window_to": instant_text(day(count)),
        "slice_strategy_code": "TIME",
        "status_code": "READY",
    }


def add_plan(db: Db, namespace: Namespace, count: int) -> int:
    """Write a plan of one slice a day, none of them done."""
    with db.write() as tx:
        plan = insert(tx, "ing_plan", plan_columns(namespace, count))
        for number in range(count):
            insert(tx, "ing_plan_slice", _slice(plan, namespace, number))
    return plan


def _slice(plan: int, namespace: Namespace, number: int) -> dict[str, object]:
    return {
        "id": _id(namespace, number),
        "plan_id": plan,
        "provenance_code": namespace.provenance,
        "endpoint_name": namespace.endpoint,
        "operation_code": namespace.operation.value,
        "slice_no": number,
        "slice_signature_hash": f"{number:064d}",
        "slice_spec": "{}",
        "window_from": instant_text(day(number)),
        "window_to": instant_text(day(number + 1)),
        "expr_hash": "0" * 64,
    }


def _id(namespace: Namespace, number: int) -> int:
    return 100 * (1 + list(Operation).index(namespace.operation)) + number


def finish(db: Db, namespace: Namespace, *numbers: int) -> None:
    """Let slices succeed."""
    with db.write() as tx:
        for number in numbers:
            set_slice(tx, _id(namespace, number), SliceStatus.SUCCEEDED)


def finished(number: int) -> Evidence:
    """Return what stands behind an advance: the slice of that day."""
    return Evidence(Lineage(1, 1, number + 1), None, days(number, number + 1))


def an_event(previous, reached, run=None) -> CursorEvent:
    """Return a step of HARVEST; `run` is who took it."""
    lineage = Lineage(1, 1, 1, 1, run) if run else Lineage(1)
    way = direction(Operation.HARVEST)
    return CursorEvent(HARVEST, way, previous, reached, None, days(0, 1), lineage)
