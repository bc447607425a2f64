"""Which row counts: one per dimension, all dimensions in one query.

Bound to the endpoint before general, TASK before SOURCE, valid at the instant asked, newest first.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import instant_text
from patra_ingest.model.codes import Operation
from patra_ingest.registry.codecs import Layout, Row
from patra_ingest.registry.layouts import DIMENSIONS

# `{own}` and `{of}` are aliases of one table: the row that counts, and the candidates for it.
_CHOSEN = """
LEFT JOIN {table} {own} ON {own}.id = (
    SELECT {of}.id FROM {table} {of}
     WHERE {of}.provenance_id = :source AND {of}.deleted = 0
       AND {of}.lifecycle_status_code = 'ACTIVE' AND {of}.effective_from <= :at
       AND ({of}.effective_to IS NULL OR {of}.effective_to > :at)
       AND ({of}.endpoint_name IS NULL OR {of}.endpoint_name = asked.name)
       AND ({of}.scope_code = 'SOURCE' OR {of}.task_type = :operation)
     ORDER BY {of}.endpoint_name IS NULL, {of}.scope_code DESC, {of}.effective_from DESC,
              {of}.id DESC
     LIMIT 1)"""
_ALWAYS = ("id", "scope_code", "task_type", "endpoint_name")


def select_dimensions(
    tx: Connection, source: int, endpoints: Sequence[str], operation: Operation, at: datetime
) -> dict[str, dict[str, Row]]:
    """Return, for each endpoint, the row that counts in every dimension that has one."""
    names = {f"e{number}": name for number, name in enumerate(endpoints)}
    asked = " UNION ALL ".join(f"SELECT :{key} AS name" for key in names)
    columns = ", ".join(
        f"{group}_row.{column} AS {group}__{column}"
        for group, layout in DIMENSIONS.items()
        for column in _columns(layout)
    )
    joins = "".join(
        _CHOSEN.format(table=layout.table, own=f"{group}_row", of=f"{group}_of")
        for group, layout in DIMENSIONS.items()
    )
    query = text(f"SELECT asked.name, {columns} FROM ({asked}) asked{joins}")
    values = {**names, "source": source, "operation": operation.value, "at": instant_text(at)}
    found = tx.execute(query, values).mappings()
    return {row["name"]: _split(row) for row in found}


def _columns(layout: Layout) -> list[str]:
    kept = [column for codec in layout.codecs for column in codec.columns]
    return [*_ALWAYS, *kept, layout.extra]


def _split(row: Mapping[Any, Any]) -> dict[str, Row]:
    return {
        group: {column: row[f"{group}__{column}"] for column in _columns(layout)}
        for group, layout in DIMENSIONS.items()
        if row[f"{group}__id"] is not None
    }
