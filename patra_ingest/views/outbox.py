"""How the outbox stands: messages by status, the oldest that waits, and why some are dead."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import find_instant
from patra_ingest.model.codes import OutboxStatus


@dataclass(frozen=True)
class Trouble:
    """Messages that were refused for one reason; `example` is the id of the newest."""

    status: str
    channel: str
    code: str | None
    reason: str | None
    messages: int
    example: int


@dataclass(frozen=True)
class OutboxState:
    """Counts of every status; `oldest_pending` is when the first that was not sent was written."""

    counts: dict[str, int]
    oldest_pending: datetime | None
    next_retry_at: datetime | None
    troubles: list[Trouble]


_COUNTS = text("SELECT status_code, COUNT(*) FROM ing_outbox_message GROUP BY status_code")

# By id, which is the order of writing: the index alone answers.
_OLDEST = text("""
    SELECT created_at FROM ing_outbox_message
     WHERE id = (SELECT MIN(id) FROM ing_outbox_message
                  WHERE status_code IN ('PENDING', 'PUBLISHING', 'FAILED'))
""")

_NEXT = text("SELECT MIN(next_retry_at) FROM ing_outbox_message WHERE status_code = 'FAILED'")

_TROUBLES = text("""
    SELECT status_code, channel, error_code, error_msg, COUNT(*), MAX(id)
      FROM ing_outbox_message
     WHERE status_code IN ('FAILED', 'DEAD')
     GROUP BY status_code, channel, error_code, error_msg
     ORDER BY status_code, COUNT(*) DESC, MAX(id) DESC
     LIMIT :limit
""")


def summarize_outbox(tx: Connection, limit: int = 20) -> OutboxState:
    """Return how the outbox stands, with the most frequent reasons for what is stuck."""
    counts = {str(status): int(count) for status, count in tx.execute(_COUNTS)}
    troubles = [Trouble(*row) for row in tx.execute(_TROUBLES, {"limit": limit})]
    return OutboxState(
        {status.value: counts.get(status.value, 0) for status in OutboxStatus},
        find_instant(tx.execute(_OLDEST).scalar()),
        find_instant(tx.execute(_NEXT).scalar()),
        troubles,
    )
