"""The column `record_remarks`: who did what to a row, when and why. A remark is never taken back.

`appended` is for a statement that changes rows anyway; `append_remark` only adds the remark.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, get_args

from sqlalchemy import Connection, bindparam, text

from patra_ingest.ledger.db import instant_text, json_text, read_json

Table = Literal[
    "ing_schedule_instance",
    "ing_plan",
    "ing_plan_slice",
    "ing_task",
    "ing_task_run",
    "ing_task_run_batch",
    "ing_cursor",
    "ing_record",
    "ing_quarantine",
    "ing_signal",
    "ing_reslice_request",
    "ing_quota_window",
    "ing_quota_reservation",
    "ing_hold",
]
Remark = dict[str, Any]

_GROUP = 1000

_APPENDED = {
    "mysql": (
        "JSON_ARRAY_APPEND(COALESCE(record_remarks, JSON_ARRAY()), '$', CAST(:remark AS JSON))"
    ),
    "sqlite": "json_insert(COALESCE(record_remarks, '[]'), '$[#]', json(:remark))",
}


def appended(tx: Connection) -> str:
    """Return SQL for a row's remarks with one more at their end, which is bound as `:remark`."""
    return _APPENDED[tx.dialect.name]


def remark_text(
    by: str,
    note: str,
    now: datetime,
    *,
    kind: str | None = None,
    data: dict[str, Any] | None = None,
) -> str:
    """Write one remark as `appended` takes it; what is None is left out."""
    remark = {"time": now, "by": by, "note": note, "type": kind, "data": data}
    return json_text({key: value for key, value in remark.items() if value is not None})


def append_remark(  # noqa: PLR0913 - a remark is five things, and rows to stand on
    tx: Connection,
    table: Table,
    ids: Sequence[int],
    by: str,
    note: str,
    now: datetime,
    *,
    kind: str | None = None,
    data: dict[str, Any] | None = None,
) -> None:
    """Add the same remark to each of these rows, after those they have."""
    if table not in get_args(Table):
        raise ValueError(f"{table!r} is no table whose rows take remarks")
    query = text(
        f"UPDATE {table} SET record_remarks = {appended(tx)}, updated_at = :now WHERE id IN :ids"
    ).bindparams(bindparam("ids", expanding=True))
    remark = remark_text(by, note, now, kind=kind, data=data)
    for first in range(0, len(ids), _GROUP):
        group = list(ids[first : first + _GROUP])
        tx.execute(query, {"ids": group, "remark": remark, "now": instant_text(now)})


def read_remarks(value: str | bytes | None) -> list[Remark]:
    """Read a row's remarks, oldest first; a row without any has an empty list."""
    return read_json(value) or []
