"""The `ing_hold` table: endpoints stopped by an L4 error or by a person. No function here commits.

Who placed, repeated or lifted a hold, when and why, stays in the remarks of its row.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, text

from patra_ingest.ledger.db import insert_missing, instant_text, read_instant
from patra_ingest.ledger.remarks import append_remark, appended, remark_text


@dataclass(frozen=True)
class Hold:
    """A hold in force; without an endpoint it is on the whole provenance."""

    provenance: str
    endpoint: str | None
    reason_code: str
    reason: str
    held_at: datetime
    held_by: str

    @property
    def place(self) -> str:
        """Return what `patra resume` must be given to lift it."""
        return f"{self.provenance}/{self.endpoint}" if self.endpoint else self.provenance


_PLACED = text("""
    SELECT id, record_remarks FROM ing_hold
     WHERE provenance_code = :provenance AND endpoint_name_key = :endpoint
       AND resumed_at IS NULL
""")


def place_hold(  # noqa: PLR0913 - a hold without its reason and its author explains nothing
    tx: Connection,
    provenance: str,
    endpoint: str | None,
    reason_code: str,
    reason: str,
    by: str,
    now: datetime,
) -> bool:
    """Hold an endpoint (or, without one, the whole provenance); False when it was held already.

    A hold in force stays as it is; that somebody asked for it again is remarked on it.
    """
    row = {
        "provenance_code": provenance,
        "endpoint_name": endpoint,
        "reason_code": reason_code,
        "reason": reason[:512],
        "held_at": instant_text(now),
        "held_by": by[:128],
    }
    insert_missing(tx, "ing_hold", [row])
    placed = tx.execute(_PLACED, {"provenance": provenance, "endpoint": endpoint or "*"}).one()
    append_remark(
        tx, "ing_hold", [placed.id], by, reason, now, kind="hold", data={"code": reason_code}
    )
    return placed.record_remarks is None


_RESUME = """
    UPDATE ing_hold
       SET resumed_at = :now, resumed_by = :by, updated_at = :now, record_remarks = {appended}
     WHERE provenance_code = :provenance AND resumed_at IS NULL
       AND (:endpoint IS NULL OR endpoint_name = :endpoint)
"""


def resume(
    tx: Connection,
    provenance: str,
    endpoint: str | None,
    by: str,
    now: datetime,
    reason: str = "resumed",
) -> int:
    """Lift the holds of an endpoint, or all of a provenance; return how many there were."""
    values = {
        "provenance": provenance,
        "endpoint": endpoint,
        "by": by[:128],
        "now": instant_text(now),
        "remark": remark_text(by, reason, now, kind="resume"),
    }
    return tx.execute(text(_RESUME.format(appended=appended(tx))), values).rowcount


_COLUMNS = "provenance_code, endpoint_name, reason_code, reason, held_at, held_by"

# The hold on a whole provenance first: lifting it lifts the others, too.
_FIND = text(f"""
    SELECT {_COLUMNS} FROM ing_hold
     WHERE provenance_code = :provenance AND resumed_at IS NULL
       AND (endpoint_name IS NULL OR endpoint_name = :endpoint)
     ORDER BY endpoint_name_key LIMIT 1
""")


def find_hold(tx: Connection, provenance: str, endpoint: str | None) -> Hold | None:
    """Return the hold that stops an endpoint: its own, or one on the whole provenance."""
    values = {"provenance": provenance, "endpoint": endpoint}
    row = tx.execute(_FIND, values).one_or_none()
    return None if row is None else _hold(row)


_LIST = text(f"""
    SELECT {_COLUMNS} FROM ing_hold
     WHERE resumed_at IS NULL AND (:provenance IS NULL OR provenance_code = :provenance)
     ORDER BY provenance_code, endpoint_name_key
""")


def list_holds(tx: Connection, provenance: str | None = None) -> list[Hold]:
    """Return the holds in force, of one provenance or of all, in order of name."""
    return [_hold(row) for row in tx.execute(_LIST, {"provenance": provenance})]


def _hold(row: Row[Any]) -> Hold:
    return Hold(
        row.provenance_code,
        row.endpoint_name,
        row.reason_code,
        row.reason or "",
        read_instant(row.held_at),
        row.held_by,
    )
