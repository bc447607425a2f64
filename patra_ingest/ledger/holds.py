"""The `ing_hold` table: endpoints stopped by an L4 error or by a person."""

from datetime import datetime

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import insert_missing, instant_text


def place_hold(  # noqa: PLR0913 - a hold without its reason and its author explains nothing
    tx: Connection,
    provenance: str,
    endpoint: str | None,
    reason_code: str,
    reason: str,
    by: str,
    now: datetime,
) -> None:
    """Hold an endpoint (or, without one, the whole provenance); a held one stays as it is."""
    row = {
        "provenance_code": provenance,
        "endpoint_name": endpoint,
        "reason_code": reason_code,
        "reason": reason[:512],
        "held_at": instant_text(now),
        "held_by": by,
    }
    insert_missing(tx, "ing_hold", [row])


_RESUME = text("""
    UPDATE ing_hold SET resumed_at = :now, resumed_by = :by, updated_at = :now
     WHERE provenance_code = :provenance AND resumed_at IS NULL
       AND (:endpoint IS NULL OR endpoint_name = :endpoint)
""")


def resume(tx: Connection, provenance: str, endpoint: str | None, by: str, now: datetime) -> int:
    """Lift the holds of an endpoint, or all of a provenance; return how many there were."""
    done = tx.execute(
        _RESUME,
        {"provenance": provenance, "endpoint": endpoint, "by": by, "now": instant_text(now)},
    )
    return done.rowcount
