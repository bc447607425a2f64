"""Records as values, and the one rule that decides which version of a record wins."""

from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class ChangeRule(StrEnum):
    """What makes an item that we already have an update."""

    NEWER = "NEWER"  # a later update time; equal keeps
    NEWER_OR_HASH = "NEWER_OR_HASH"  # … and on equal times another content hash
    HASH = "HASH"  # the content hash alone: the source has no update time


class NewRecord(NamedTuple):
    """One mapped item, or one deletion, ready to be stored.

    Fields and payload are JSON in UTF-8, as the ledger takes them. A tombstone says no more than an
    id: both are empty, and storing it keeps those of the version we have.
    """

    provider_id: str
    source_updated_at: datetime | None
    content_hash: str
    is_deleted: bool
    fields_json: bytes
    payload: bytes

    @property
    def is_tombstone(self) -> bool:
        """Whether this is a deletion that came as an id alone."""
        return not self.payload


@dataclass(frozen=True)
class BadItem:
    """One item that could not be mapped: where it stood, what was wrong, and a redacted sample."""

    item_no: int
    provider_id: str | None
    path: str
    reason: str
    fragment: str
    value: str | None = None  # what was found at the path, redacted


class Known(NamedTuple):
    """What decides whether a new version replaces the one we have."""

    source_updated_at: datetime | None
    content_hash: str
    is_deleted: bool
    made_by: str | None = None  # the fingerprint of the spec that mapped it
    row_id: int = 0  # … and which row it is in, written how often
    revision: int = 0


@dataclass(frozen=True)
class ChangeCounts:
    """What became of the records of a batch; together they are all of them."""

    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    stale: int = 0
    deleted: int = 0

    def total(self) -> int:
        """Return how many records these counts account for."""
        return sum(getattr(self, field.name) for field in fields(self))


def change_of(known: Known | None, new: NewRecord, rule: ChangeRule) -> str:
    """Name what `new` does to `known`: inserted, updated, unchanged, stale or deleted."""
    if known is None:
        return "deleted" if new.is_deleted else "inserted"
    if new.is_tombstone:
        return "unchanged" if known.is_deleted else "deleted"
    old_time, new_time = known.source_updated_at, new.source_updated_at
    if rule != ChangeRule.HASH and old_time and new_time and old_time != new_time:
        if new_time < old_time:
            return "stale"
    elif known.is_deleted == new.is_deleted:
        equal_keeps = rule == ChangeRule.NEWER and old_time is not None and old_time == new_time
        if equal_keeps or known.content_hash == new.content_hash:
            return "unchanged"
    return "deleted" if new.is_deleted and not known.is_deleted else "updated"
