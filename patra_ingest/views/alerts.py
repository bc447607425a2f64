"""What a person should be told of: holds, stalled cursors, dead messages, too many errors.

Cheap enough to be asked every minute. Who was told what is not kept here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from patra_ingest.ledger.holds import list_holds
from patra_ingest.model.codes import HoldReason
from patra_ingest.views.health import Thresholds, judge_health


@dataclass(frozen=True)
class Alert:
    """One thing that is wrong now.

    `key` names what is wrong, `episode` this time of it, if the ledger can tell one from another.
    """

    key: str
    level: str  # WARN or ERROR
    what: str
    remedy: str
    episode: str = ""


def list_alerts(tx: Connection, now: datetime, lines: Thresholds) -> list[Alert]:
    """Return everything that is wrong at `now`, in order of key."""
    found = [*_held(tx), *_unhealthy(tx, now, lines), *_dead(tx)]
    return sorted(found, key=lambda alert: alert.key)


def _held(tx: Connection) -> Iterator[Alert]:
    for hold in list_holds(tx):
        if hold.reason_code == HoldReason.OPERATOR:
            continue  # whoever placed it knows
        what = f"{hold.place} is held since {hold.held_at:%F %TZ}: {hold.reason}"
        remedy = f"Mend it, then `patra resume {hold.place}`."
        yield Alert(f"hold {hold.place}", "ERROR", what, remedy, hold.held_at.isoformat())


_WORKED_ON = text("""
    SELECT DISTINCT provenance_code, endpoint_name FROM ing_lease_turn
     WHERE provenance_code <> '' ORDER BY provenance_code, endpoint_name
""")
_REMEDIES = {
    "cursor_lag": "`patra coverage {source}` shows what it waits for.",
    "error_rate": "`patra status`, then the last_error_msg of its tasks, say why.",
}


def _unhealthy(tx: Connection, now: datetime, lines: Thresholds) -> Iterator[Alert]:
    """Yield what the health checks of the same names say; see there for the lines."""
    for source, endpoint in tx.execute(_WORKED_ON).all():
        for found in judge_health(tx, now, lines, source, endpoint, _REMEDIES):
            if found.passed:
                continue
            remedy = _REMEDIES[found.check].format(source=source)
            what = f"{found.subject}: {found.why}"
            yield Alert(f"{found.check} {found.subject}", found.severity.value, what, remedy)


_DEAD = text("""
    SELECT channel, COUNT(*) AS n, MIN(id) AS first_id FROM ing_outbox_message
     WHERE status_code = 'DEAD' GROUP BY channel
""")


def _dead(tx: Connection) -> Iterator[Alert]:
    for row in tx.execute(_DEAD):
        what = f"{row.n} messages of {row.channel} are dead: nobody will be told."
        remedy = "`patra outbox status` says why; `patra outbox retry` tries again."
        yield Alert(f"outbox {row.channel}", "ERROR", what, remedy, str(row.first_id))


_SIGNALLED = text("""
    SELECT provenance_code, MAX(id) FROM ing_signal
     WHERE status_code = 'PENDING' GROUP BY provenance_code ORDER BY provenance_code
""")


def list_signalled(tx: Connection) -> dict[str, int]:
    """Return the sources for which signals wait, each with the newest of them."""
    return {source: int(newest) for source, newest in tx.execute(_SIGNALLED)}
