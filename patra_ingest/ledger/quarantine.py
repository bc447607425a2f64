"""The `ing_quarantine` table: items that could not be mapped, with what is needed to see why."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from patra_ingest.ledger.db import insert_missing
from patra_ingest.model import keys
from patra_ingest.model.codes import QuarantineKind, QuarantineStatus
from patra_ingest.model.lineage import Lineage
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.records import BadItem


def quarantine_ids(
    tx: Connection, namespace: Namespace, lineage: Lineage, reasons: Mapping[str, str]
) -> None:
    """Keep the ids of a batch that the source cannot resolve, each with its reason."""
    rows = [
        {
            **_row(namespace, lineage, QuarantineKind.BAD_ID, {"id": one}),
            "provider_id": one[:512],
            "reason": reason[:512],
        }
        for one, reason in reasons.items()
    ]
    insert_missing(tx, "ing_quarantine", rows)


def quarantine_items(
    tx: Connection, namespace: Namespace, lineage: Lineage, items: Sequence[BadItem]
) -> None:
    """Keep the bad items of a batch, each under its number; writing them again changes nothing."""
    if len({item.item_no for item in items}) != len(items):
        raise AssertionError("two bad items of one batch have the same number")  # one would be lost
    rows = [
        {
            **_row(namespace, lineage, QuarantineKind.ITEM, {"item": item.item_no}),
            "provider_id": item.provider_id and item.provider_id[:512],
            "item_no": item.item_no,
            "path": item.path[:512],
            "reason": item.reason[:512],
            "value_text": item.value and item.value[:256],
            "fragment": item.fragment,
        }
        for item in items
    ]
    insert_missing(tx, "ing_quarantine", rows)


def _row(
    namespace: Namespace, lineage: Lineage, kind: QuarantineKind, place: dict[str, Any]
) -> dict[str, Any]:
    """Return what every row has; `place` tells it apart from the others of its batch."""
    return {
        **lineage.columns(),
        "provenance_code": namespace.provenance,
        "endpoint_name": namespace.endpoint,
        "operation_code": namespace.operation.value,
        "kind_code": kind.value,
        "status_code": QuarantineStatus.OPEN.value,
        "idempotent_key": keys.digest({"kind": "quarantine", "batch": lineage.batch_id, **place}),
    }
