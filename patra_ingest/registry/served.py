"""Under which endpoints the records are stored that an endpoint brings or refreshes."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection

from patra_ingest.errors import UnknownName
from patra_ingest.ledger.db import read_json
from patra_ingest.model.codes import EndpointUsage
from patra_ingest.registry.codecs import Row
from patra_ingest.registry.history import get_provenance, rows_at
from patra_ingest.registry.rows import ENDPOINT

_BRINGING = frozenset({EndpointUsage.SEARCH, EndpointUsage.BATCH})


def list_storing_endpoints(tx: Connection, provenance: str, at: datetime) -> list[str]:
    """Return every endpoint of a source that records are stored under, sorted."""
    rows = _rows(tx, provenance, at)
    return _names(filter(_brings, rows)) or _names(filter(_is_detail, rows))


def list_record_endpoints(
    tx: Connection, provenance: str, endpoint: str, at: datetime
) -> list[str]:
    """Return the endpoints whose records an UPDATE of `endpoint` refreshes, sorted.

    An endpoint that brings records refreshes its own; a DETAIL those of the searches that name it,
    or that it names. One that neither names can only be meant for the one search that has no
    detail, if there is just one. In a source that cannot be searched a DETAIL has records of its
    own.
    """
    rows = _rows(tx, provenance, at)
    own = [row for row in rows if row["endpoint_name"] == endpoint]
    if not own:
        listed = ", ".join(_names(rows)) or "none"
        raise UnknownName(f"{provenance} has no endpoint {endpoint!r}.", f"It has: {listed}.")
    bringing = [row for row in rows if _brings(row)]
    named = {name for row in own for name in _refreshed(row)}
    chosen = (r for r in bringing if _detail(r) == endpoint or r["endpoint_name"] in named)
    served = _names([*filter(_brings, own), *chosen])
    if served or not any(map(_is_detail, own)):
        return served
    if not bringing:
        return [endpoint]
    return _only_one(row for row in bringing if _detail(row) is None)


def _rows(tx: Connection, provenance: str, at: datetime) -> list[Row]:
    return rows_at(tx, ENDPOINT, get_provenance(tx, provenance, at)["id"], at)


def _brings(row: Row) -> bool:
    return row["endpoint_usage_code"] in _BRINGING


def _is_detail(row: Row) -> bool:
    return bool(row["endpoint_usage_code"] == EndpointUsage.DETAIL)


def _detail(row: Row) -> str | None:
    found: str | None = (read_json(row["two_phase"]) or {}).get("endpoint")
    return found


def _refreshed(row: Row) -> list[str]:
    found: list[str] = (read_json(row["extra"]) or {}).get("refreshes") or []
    return found


def _names(rows: Iterable[Row]) -> list[str]:
    return sorted({row["endpoint_name"] for row in rows})


def _only_one(rows: Iterable[Row]) -> list[str]:
    names = _names(rows)
    return names if len(names) == 1 else []
