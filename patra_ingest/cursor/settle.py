"""The cursor over the signals of an endpoint: the id up to which every one of them is settled."""

from typing import Any

from patra_ingest.ledger.cursors import Cursor, CursorEvent, find_any_cursor
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.settled_signals import find_settled
from patra_ingest.model import keys
from patra_ingest.model.codes import CursorDirection, CursorType, NamespaceScope, Operation
from patra_ingest.model.lineage import Lineage
from patra_ingest.model.namespace import Namespace

SIGNALS = "signal_id"  # what the cursor over signals measures


def signals_of(provenance: str, endpoint: str) -> Namespace:
    """Return the namespace of an endpoint's signals."""
    key = keys.namespace_key(NamespaceScope.CUSTOM, campaign="UPDATE:signals")
    return Namespace(provenance, endpoint, Operation.UPDATE, SIGNALS, NamespaceScope.CUSTOM, key)


def see_signals(
    db: Db, namespace: Namespace, lineage: Lineage
) -> tuple[Cursor[Any] | None, CursorEvent | None]:
    """Return the cursor over signals, and the step that it may take now."""
    with db.read() as tx:
        cursor = find_any_cursor(tx, namespace)
        before = cursor.value if cursor else 0
        settled = find_settled(tx, namespace.provenance, namespace.endpoint, before)
    if settled == before:
        return cursor, None
    event = CursorEvent(
        namespace,
        CursorDirection.FORWARD,
        cursor.value if cursor else None,
        settled,
        None,
        None,
        lineage,
        kind=CursorType.ID,
    )
    return cursor, event
