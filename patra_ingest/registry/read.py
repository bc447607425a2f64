"""What the Registry says of one endpoint at one instant, as a declaration.

Per dimension exactly one row counts: bound to the endpoint before general, TASK before SOURCE,
valid at the instant asked, newest first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.errors import UnknownName
from patra_ingest.ledger.db import instant_text
from patra_ingest.model.codes import Operation
from patra_ingest.registry import rows
from patra_ingest.spec.declaration import Declaration, Layer

_VALID = (
    "deleted = 0 AND lifecycle_status_code = 'ACTIVE' AND effective_from <= :at"
    " AND (effective_to IS NULL OR effective_to > :at)"
)
_Values = Callable[[Mapping[str, Any]], dict[str, dict[str, Any]]]
_DIMENSIONS: tuple[tuple[str, _Values], ...] = (
    ("reg_prov_pagination_cfg", rows.pagination_values),
    ("reg_prov_window_offset_cfg", rows.window_values),
    ("reg_prov_http_cfg", rows.http_values),
    ("reg_prov_retry_cfg", rows.retry_values),
    ("reg_prov_rate_limit_cfg", rows.rate_values),
)


@dataclass(frozen=True)
class EndpointName:
    """One thing that can be planned."""

    provenance: str
    endpoint: str
    operation: Operation


def read_declaration(
    tx: Connection, provenance: str, endpoint: str | None, operation: Operation, at: datetime
) -> Declaration:
    """Return the declaration valid at `at`; without `endpoint`, its first by name."""
    source = _get_provenance(tx, provenance)
    row = _get_endpoint(tx, source, endpoint, operation, at)
    name = row["endpoint_name"]
    layers = [
        Layer(
            f"provenance {source['provenance_code']}",
            {
                "request": {"base_url": source["base_url_default"]},
                "window": {"zone": source["timezone_default"]},
            },
        ),
        Layer(f"endpoint {name}", rows.endpoint_values(row)),
    ]
    for table, values in _DIMENSIONS:
        chosen = _find_row(tx, table, source["id"], name, operation, at)
        if chosen is not None:
            layers.append(Layer(f"{table} #{chosen['id']}", values(chosen)))
    return Declaration(source["provenance_code"], name, operation, tuple(layers))


def list_endpoints(tx: Connection, at: datetime) -> list[EndpointName]:
    """Return everything that can be planned at `at`, in order of name."""
    found = tx.execute(
        text(
            "SELECT p.provenance_code, e.endpoint_name, e.task_type FROM reg_prov_endpoint_def e"
            " JOIN reg_provenance p ON p.id = e.provenance_id"
            " WHERE p.deleted = 0 AND p.is_active = 1 AND e.deleted = 0"
            " AND e.lifecycle_status_code = 'ACTIVE' AND e.effective_from <= :at"
            " AND (e.effective_to IS NULL OR e.effective_to > :at)"
            " ORDER BY p.provenance_code, e.id"
        ),
        {"at": instant_text(at)},
    )
    return [EndpointName(code, name, Operation(task)) for code, name, task in found]


def _get_provenance(tx: Connection, code: str) -> Mapping[str, Any]:
    found = (
        tx.execute(
            text(
                "SELECT * FROM reg_provenance"
                " WHERE provenance_code = :code AND deleted = 0 AND is_active = 1"
            ),
            {"code": code.lower()},
        )
        .mappings()
        .one_or_none()
    )
    if found is None:
        known = tx.execute(
            text("SELECT provenance_code FROM reg_provenance WHERE deleted = 0 AND is_active = 1")
        ).scalars()
        listed = ", ".join(sorted(known)) or "none yet"
        raise UnknownName(
            f"There is no source {code!r} in the Registry.",
            f"Known sources: {listed}. Add one with `patra registry apply FILE`.",
        )
    return dict(found)


def _get_endpoint(
    tx: Connection,
    source: Mapping[str, Any],
    endpoint: str | None,
    operation: Operation,
    at: datetime,
) -> Mapping[str, Any]:
    found = (
        tx.execute(
            text(
                f"SELECT * FROM reg_prov_endpoint_def WHERE provenance_id = :id AND {_VALID}"
                " AND (scope_code = 'SOURCE' OR task_type = :operation)"
                " ORDER BY endpoint_name, scope_code DESC, effective_from DESC, id DESC"
            ),
            {"id": source["id"], "at": instant_text(at), "operation": operation.value},
        )
        .mappings()
        .all()
    )
    for row in found:
        if endpoint is None or row["endpoint_name"] == endpoint:
            return dict(row)
    listed = ", ".join(row["endpoint_name"] for row in found) or "none"
    raise UnknownName(
        f"{source['provenance_code']} has no endpoint {endpoint!r} for {operation.value}.",
        f"Its endpoints for {operation.value}: {listed}.",
    )


def _find_row(
    tx: Connection,
    table: str,
    provenance_id: int,
    endpoint: str,
    operation: Operation,
    at: datetime,
) -> Mapping[str, Any] | None:
    found = (
        tx.execute(
            text(
                f"SELECT * FROM {table} WHERE provenance_id = :id AND {_VALID}"
                " AND (endpoint_name IS NULL OR endpoint_name = :endpoint)"
                " AND (scope_code = 'SOURCE' OR task_type = :operation)"
                " ORDER BY endpoint_name IS NULL, scope_code DESC, effective_from DESC, id DESC"
                " LIMIT 1"
            ),
            {
                "id": provenance_id,
                "endpoint": endpoint,
                "operation": operation.value,
                "at": instant_text(at),
            },
        )
        .mappings()
        .one_or_none()
    )
    return None if found is None else dict(found)
