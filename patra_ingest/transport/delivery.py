"""What a sink is given and what it answers; the text that every sink hands on is made here.

A sink is sent a message at least once: whoever receives it drops what it has seen by `dedupKey`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Protocol

import orjson

from patra_ingest.ledger.outbox_queue import Message
from patra_ingest.model.window import instant_iso
from patra_ingest.transport.redact import redact_text

_WHY_CHARS = 512


@dataclass(frozen=True)
class Published:
    """The sink has the message, under a name of its own."""

    msg_id: str


@dataclass(frozen=True)
class Refused:
    """The sink has not taken the message, or nobody knows whether it has; `why` shows no secret."""

    code: str
    why: str
    for_good: bool = False  # the same message will be refused again
    of_all: bool = False  # nothing can be delivered now; the message is not to blame
    retry_at: datetime | None = None  # the sink wants silence until then


Answer = Published | Refused


class Sink(Protocol):
    """Where messages go."""

    @property
    def shown(self) -> str:
        """The sink's address without its secrets."""

    def publish(self, messages: Sequence[Message]) -> list[Answer]:
        """Deliver the messages in order; return one answer for each, whatever happens."""

    def close(self) -> None:
        """Let go of connections."""


def refused(
    code: str,
    why: str,
    *,
    for_good: bool = False,
    of_all: bool = False,
    retry_at: datetime | None = None,
) -> Refused:
    """Return a refusal whose reason may be stored and shown."""
    shown = redact_text(" ".join(why.split()), _WHY_CHARS)
    return Refused(code, shown, for_good, of_all, retry_at)


def envelope(message: Message) -> bytes:
    """Return a message as every sink hands it on: one line of JSON."""
    return orjson.dumps(
        {
            "dedupKey": message.dedup_key,
            "channel": message.channel,
            "kind": message.kind,
            "partitionKey": message.partition_key,
            "messageId": message.id,
            "createdAt": instant_iso(message.created_at),
            "payload": orjson.loads(message.payload),
        }
    )


def batch_name(messages: Sequence[Message]) -> str:
    """Return the same name for the same messages in the same order."""
    return sha256(" ".join(message.dedup_key for message in messages).encode()).hexdigest()[:32]
