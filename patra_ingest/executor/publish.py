"""Publishing the outbox: claim, deliver, settle, again and again.

At least once: a publisher that dies between delivery and settling leaves messages that the next
one delivers again, under the same dedup key. In order per record. One bad message never stops the
others: a batch that is refused is halved until the one to blame stands alone.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from patra_ingest.clock import Clock
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.outbox_queue import (
    Message,
    Settled,
    claim_messages,
    renew_claim,
    settle,
)
from patra_ingest.model.codes import OutboxStatus
from patra_ingest.transport.delivery import Answer, Published, Refused, Sink
from patra_ingest.transport.sinks import open_sink

MAX_ATTEMPTS = 10
FIRST_DELAY = timedelta(seconds=5)
LONGEST_DELAY = timedelta(hours=1)
_FIRST_IDLE_SECONDS = 0.5
_LONGEST_IDLE_SECONDS = 10.0
_PATIENCE = 3  # deliveries in a row without any success; the rest is given back


@dataclass(frozen=True)
class PublishOrder:
    """What a publisher is asked to do; `limit` ends it after so many messages, 0 never does."""

    to: str = field(repr=False)
    until_empty: bool = False
    limit: int = 0
    batch: int = 100
    lease: timedelta = timedelta(seconds=60)
    max_attempts: int = MAX_ATTEMPTS


@dataclass
class Tally:
    """What became of the messages of one call, and why some of them stayed."""

    sink: str
    published: int = 0
    failed: int = 0  # will be tried again
    dead: int = 0
    lost: int = 0  # another publisher took them over; nothing was written
    reasons: Counter[str] = field(default_factory=Counter)
    retry_at: datetime | None = None  # when the sink may be asked again

    @property
    def is_clean(self) -> bool:
        """Whether everything that was sent is published."""
        return not (self.failed or self.dead)

    @property
    def ended(self) -> int:
        """How many messages need nobody any more, or are somebody else's."""
        return self.published + self.dead + self.lost

    def as_json(self) -> dict[str, Any]:
        """Return the numbers for scripts and for Dagster."""
        counts = {name: getattr(self, name) for name in ("published", "failed", "dead", "lost")}
        return {"sink": self.sink, **counts, "reasons": dict(self.reasons)}


def publish_outbox(
    db: Db, clock: Clock, name: str, user_agent: str, order: PublishOrder, stop: threading.Event
) -> Tally:
    """Publish what is due until `stop` is set, or as far as the order says; return the numbers."""
    with closing(open_sink(order.to, clock, user_agent)) as sink:
        return Publisher(db, clock, sink, name, order).publish(stop)


def delay_after(attempt: int) -> timedelta:
    """Return how long a message waits after its n-th refusal: 5 s × 2^(n − 1), at most an hour."""
    return min(FIRST_DELAY * (1 << min(attempt - 1, 20)), LONGEST_DELAY)


class Publisher:
    """One publisher; `name` and a nonce per claim own the leases of its messages."""

    def __init__(self, db: Db, clock: Clock, sink: Sink, name: str, order: PublishOrder) -> None:
        self._db = db
        self._clock = clock
        self._sink = sink
        self._name = name[:100]
        self._order = order

    def publish(self, stop: threading.Event) -> Tally:
        """Run rounds until told to stop; a batch that is on its way is brought to its end."""
        tally = Tally(self._sink.shown)
        idle = _FIRST_IDLE_SECONDS
        while not stop.is_set() and (wanted := self._wanted(tally)):
            ended = tally.ended
            self._round(wanted, stop, tally)
            if tally.ended > ended:
                idle = _FIRST_IDLE_SECONDS
                continue
            if self._order.until_empty:
                break  # nothing is due, or nothing gets through
            self._pause(stop, idle, tally)
            idle = min(idle * 2, _LONGEST_IDLE_SECONDS)
        return tally

    def _wanted(self, tally: Tally) -> int:
        left = (
            self._order.limit - tally.ended - tally.failed
            if self._order.limit
            else self._order.batch
        )
        return max(0, min(left, self._order.batch))

    def _pause(self, stop: threading.Event, idle: float, tally: Tally) -> None:
        asked = 0.0
        if tally.retry_at is not None:
            asked = (tally.retry_at - self._clock.now()).total_seconds()
        self._clock.wait(stop, max(idle, asked))

    def _round(self, limit: int, stop: threading.Event, tally: Tally) -> None:
        owner = f"{self._name}#{uuid4().hex[:12]}"
        tally.retry_at = None
        with self._db.write() as tx:
            claimed = claim_messages(tx, owner, limit, self._db.now(tx), self._order.lease)
        if not claimed:
            return
        claim = _Claim(self._db, owner, self._order.lease, {m.id for m in claimed})
        answers = dict(self._deliver(claim, claimed, stop))
        with self._db.write() as tx:
            now = self._db.now(tx)
            ends = [self._end(message, answers.get(message.id), now) for message in claimed]
            kept = settle(tx, owner, ends, now)
        _count(tally, ends, kept)
        pauses = [a.retry_at for a in answers.values() if isinstance(a, Refused) and a.retry_at]
        tally.retry_at = max(pauses, default=None)

    def _deliver(
        self, claim: "_Claim", messages: Sequence[Message], stop: threading.Event
    ) -> Iterator[tuple[int, Answer]]:
        """Yield the answers of the sink; a message without one was not sent."""
        waiting = _lots(messages)
        failures = 0
        while waiting and failures < _PATIENCE and not stop.is_set():
            lot = claim.still_held(waiting.pop(0))
            if not lot:
                continue
            answers = self._sink.publish(lot)
            if len(lot) > 1 and _is_for_good(answers):
                middle = len(lot) // 2
                waiting[:0] = [lot[:middle], lot[middle:]]
                continue
            yield from ((message.id, answer) for message, answer in zip(lot, answers, strict=True))
            if any(isinstance(answer, Refused) and answer.of_all for answer in answers):
                return
            through = any(isinstance(answer, Published) for answer in answers)
            failures = 0 if through or _is_for_good(answers) else failures + 1

    def _end(self, message: Message, answer: Answer | None, now: datetime) -> Settled:
        if answer is None:
            return Settled(message, OutboxStatus.PENDING)
        if isinstance(answer, Published):
            return Settled(message, OutboxStatus.PUBLISHED, now, answer.msg_id)
        attempt = message.attempts + 1
        used_up = attempt >= self._order.max_attempts and not answer.of_all
        dead = answer.for_good or used_up
        again = max(now + delay_after(attempt), answer.retry_at or now)
        return Settled(
            message,
            OutboxStatus.DEAD if dead else OutboxStatus.FAILED,
            None if dead else again,
            code=answer.code,
            why=answer.why,
            counts=not answer.of_all,
        )


@dataclass
class _Claim:
    """The messages of one claim; every delivery after the first begins by renewing it."""

    db: Db
    owner: str
    term: timedelta
    held: set[int]
    is_fresh: bool = True

    def still_held(self, lot: Sequence[Message]) -> list[Message]:
        """Return those of `lot` that are still ours, for another term."""
        if not self.is_fresh:
            with self.db.write() as tx:
                self.held = renew_claim(tx, self.owner, self.held, self.db.now(tx), self.term)
        self.is_fresh = False
        return [message for message in lot if message.id in self.held]


def _lots(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """Return what is sent together: all that is new; what was refused before goes alone."""
    new = [message for message in messages if not message.attempts]
    alone = [[message] for message in messages if message.attempts]
    return [new, *alone] if new else [*alone]


def _is_for_good(answers: Sequence[Answer]) -> bool:
    return all(isinstance(answer, Refused) and answer.for_good for answer in answers)


def _count(tally: Tally, ends: Sequence[Settled], kept: Sequence[Settled]) -> None:
    tally.lost += len(ends) - len(kept)
    for end in kept:
        tally.published += end.status == OutboxStatus.PUBLISHED
        tally.failed += end.status == OutboxStatus.FAILED
        tally.dead += end.status == OutboxStatus.DEAD
        if end.code:
            tally.reasons[f"{end.code}: {end.why}"] += 1
