"""The `ing_outbox_message` table as a queue: publishers claim messages, send and settle them.

`pub_lease_owner` is new with every claim, so it is also the fencing token: whoever lost a message
to another publisher settles nothing. Order is kept within (channel, partition_key): a message
waits until every older one there is PUBLISHED or DEAD. No function here commits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, TextClause, bindparam, text

from patra_ingest.ledger.db import instant_text, read_instant
from patra_ingest.model.codes import OutboxStatus

_CODE_CHARS = 64
_REASON_CHARS = 512
_MSG_ID_CHARS = 128


@dataclass(frozen=True)
class Message:
    """One claimed message; `payload` is JSON text, `attempts` counts earlier refusals of it."""

    id: int
    channel: str
    kind: str
    partition_key: str
    dedup_key: str
    payload: str
    created_at: datetime
    attempts: int = 0


@dataclass(frozen=True)
class Settled:
    """What became of one claimed message; PENDING gives it back as it was, unsent.

    `at` is when it was published, or when it may be tried again. `counts` says that the message
    itself was refused, which is one attempt less for it.
    """

    message: Message
    status: OutboxStatus
    at: datetime | None = None
    msg_id: str | None = None
    code: str | None = None
    why: str | None = None
    counts: bool = False


# The hints are for MySQL (a comment elsewhere): when its statistics lag behind a growing outbox, it
# reads a whole channel for every message.
_IS_HEAD = """
    NOT EXISTS (SELECT /*+ INDEX(o idx_outbox_partition) */ 1 FROM ing_outbox_message o
                 WHERE o.channel = m.channel AND o.partition_key = m.partition_key
                   AND o.status_code IN ('PENDING', 'PUBLISHING', 'FAILED') AND o.id < m.id)
"""

_DUE = f"""
    SELECT /*+ INDEX(m idx_outbox_status_time, idx_outbox_lease) */
           m.id, m.channel, m.op_type, m.partition_key, m.dedup_key, m.payload_json, m.created_at,
           m.retry_count
      FROM ing_outbox_message m
     WHERE {{due}} AND {_IS_HEAD}
     ORDER BY m.id
     LIMIT :limit
"""

# One question per index range: an OR over them would sort the whole backlog.
_WAYS = (
    "m.status_code = 'PUBLISHING' AND m.pub_leased_until <= :now",
    "m.status_code = 'FAILED' AND (m.next_retry_at IS NULL OR m.next_retry_at <= :now)",
    "m.status_code = 'PENDING' AND m.not_before IS NOT NULL AND m.not_before <= :now",
    "m.status_code = 'PENDING' AND m.not_before IS NULL",
)


def _by_ids(query: str) -> TextClause:
    return text(query).bindparams(bindparam("ids", expanding=True))


_HEADS = _by_ids(f"SELECT m.id FROM ing_outbox_message m WHERE m.id IN :ids AND {_IS_HEAD}")

_TAKE = _by_ids("""
    UPDATE ing_outbox_message
       SET status_code = 'PUBLISHING', pub_lease_owner = :owner, pub_leased_until = :until,
           version = version + 1, updated_at = :now
     WHERE id IN :ids AND status_code IN ('PENDING', 'PUBLISHING', 'FAILED')
       AND (pub_leased_until IS NULL OR pub_leased_until <= :now)
""")


def claim_messages(
    tx: Connection, owner: str, limit: int, now: datetime, term: timedelta
) -> list[Message]:
    """Lease up to `limit` due messages that nobody holds, oldest first, one per partition."""
    due = _list_due(tx, limit, now)
    if not due:
        return []
    # On MySQL a locking read sees rows newer than what its subquery sees: look once more.
    heads = set(tx.execute(_HEADS, {"ids": [message.id for message in due]}).scalars())
    taken = [message for message in due if message.id in heads]
    if taken:
        times = {"now": instant_text(now), "until": instant_text(now + term)}
        ids = [message.id for message in taken]
        tx.execute(_TAKE, {**times, "ids": ids, "owner": owner})
    return sorted(taken, key=lambda message: message.id)


def _list_due(tx: Connection, limit: int, now: datetime) -> list[Message]:
    tail = " FOR UPDATE OF m SKIP LOCKED" if tx.dialect.name == "mysql" else ""
    found: list[Message] = []
    for way in _WAYS:
        if len(found) < limit:
            query = text(_DUE.format(due=way) + tail)
            values = {"now": instant_text(now), "limit": limit - len(found)}
            found += [_message(row) for row in tx.execute(query, values)]
    return found


def _message(row: Any) -> Message:
    key, channel, kind, partition, dedup, payload, created, attempts = row
    return Message(key, channel, kind, partition, dedup, payload, read_instant(created), attempts)


_HELD = """
    SELECT id FROM ing_outbox_message
     WHERE id IN :ids AND pub_lease_owner = :owner AND status_code = 'PUBLISHING'
"""

_RENEW = _by_ids("UPDATE ing_outbox_message SET pub_leased_until = :until WHERE id IN :ids")


def renew_claim(
    tx: Connection, owner: str, ids: Iterable[int], now: datetime, term: timedelta
) -> set[int]:
    """Prolong the leases of a claim; return the messages that are still its own."""
    held = _lock_held(tx, owner, ids)
    if held:
        tx.execute(_RENEW, {"ids": sorted(held), "until": instant_text(now + term)})
    return held


def _lock_held(tx: Connection, owner: str, ids: Iterable[int]) -> set[int]:
    query = _HELD + (" FOR UPDATE" if tx.dialect.name == "mysql" else "")
    return set(tx.execute(_by_ids(query), {"ids": list(ids), "owner": owner}).scalars())


_SETTLE = _by_ids("""
    UPDATE ing_outbox_message
       SET status_code = :status, pub_lease_owner = NULL, pub_leased_until = NULL,
           retry_count = retry_count + :counts, next_retry_at = :retry_at, msg_id = :msg_id,
           published_at = :published_at, error_code = :code, error_msg = :why,
           version = version + 1, updated_at = :now
     WHERE id IN :ids
""")

_GIVE_BACK = _by_ids("""
    UPDATE ing_outbox_message
       SET status_code = CASE WHEN error_code IS NULL THEN 'PENDING' ELSE 'FAILED' END,
           pub_lease_owner = NULL, pub_leased_until = NULL, version = version + 1, updated_at = :now
     WHERE id IN :ids
""")


def settle(tx: Connection, owner: str, ends: Sequence[Settled], now: datetime) -> list[Settled]:
    """Write what became of a claim's messages; return those that were still its own."""
    held = _lock_held(tx, owner, [end.message.id for end in ends])
    own = [end for end in ends if end.message.id in held]
    # Those that ended alike are one statement: after a webhook, usually all of them.
    alike: dict[tuple[tuple[str, Any], ...], list[int]] = {}
    for end in own:
        alike.setdefault(_ending(end), []).append(end.message.id)
    for ending, ids in alike.items():
        values = {"ids": ids, "now": instant_text(now), **dict(ending)}
        tx.execute(_SETTLE if ending else _GIVE_BACK, values)
    return own


def _ending(end: Settled) -> tuple[tuple[str, Any], ...]:
    """Return the columns of an end; none for a message that is given back."""
    if end.status == OutboxStatus.PENDING:
        return ()
    at = end.at and instant_text(end.at)
    return (
        ("status", end.status.value),
        ("counts", int(end.counts)),
        ("retry_at", at if end.status == OutboxStatus.FAILED else None),
        ("published_at", at if end.status == OutboxStatus.PUBLISHED else None),
        ("msg_id", end.msg_id and end.msg_id[:_MSG_ID_CHARS]),
        ("code", end.code and end.code[:_CODE_CHARS]),
        ("why", end.why and end.why[:_REASON_CHARS]),
    )


_REVIVE = text("""
    UPDATE ing_outbox_message
       SET status_code = 'PENDING', retry_count = 0, next_retry_at = NULL, version = version + 1,
           updated_at = :now
     WHERE status_code = 'DEAD'
""")


def revive_dead(tx: Connection, now: datetime) -> int:
    """Put every DEAD message back into the queue with all its attempts; return how many."""
    return tx.execute(_REVIVE, {"now": instant_text(now)}).rowcount
