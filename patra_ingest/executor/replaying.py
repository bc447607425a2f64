"""A batch told once more, held against what the ledger has of it. Pure.

Every record of a replay has one of the words of `Match`. Only what nobody can explain by a later
batch counts as a difference.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

from patra_ingest.executor.certificate import unpack_ids
from patra_ingest.model.evidence import KeptBadItem, KeptBatch, KeptRecord
from patra_ingest.model.records import BadItem, ChangeRule, Known, NewRecord, change_of

_FATES = ("inserted", "updated", "unchanged", "stale", "deleted")
_KEPT_CHARS = 512  # of a path or a reason in quarantine


class Match(StrEnum):
    """How a record of a replay stands to the one it is held against."""

    SAME = "SAME"
    KEPT = "KEPT"  # an earlier batch had brought a newer version, which stayed
    CHANGED_SINCE = "CHANGED_SINCE"  # a later batch has brought another version
    DIFFERS = "DIFFERS"
    LOST = "LOST"  # it is not in the ledger; live: the source does not send it any more
    ADDED = "ADDED"  # only the ledger says that the batch brought it; live: it is new there


class Outcome(StrEnum):
    """What a replay found, from best to worst."""

    EQUAL = "EQUAL"
    CHANGED_SINCE = "CHANGED_SINCE"
    DIFFERS = "DIFFERS"
    UNREADABLE = "UNREADABLE"  # what it would need is not there any more


_HARMLESS = frozenset({Match.SAME, Match.KEPT})
_WORDS_OF = {Match.CHANGED_SINCE: Outcome.CHANGED_SINCE}


@dataclass(frozen=True)
class Check:
    """One thing that should be now as it was then."""

    name: str
    then: Any
    now: Any

    @property
    def is_equal(self) -> bool:
        """Whether it is."""
        return bool(self.then == self.now)


@dataclass(frozen=True)
class RecordMatch:
    """One record that is not simply the same, and why."""

    provider_id: str
    match: Match
    why: str


@dataclass(frozen=True)
class BatchReplay:
    """One batch, replayed; `problem` says why it could not be, or how it ended otherwise."""

    run_id: int
    batch_no: int
    batch_id: int
    position: str
    checks: tuple[Check, ...] = ()
    counts: Mapping[Match, int] | None = None
    matches: tuple[RecordMatch, ...] = ()  # all but the same ones
    notes: tuple[str, ...] = ()
    problem: str | None = None
    is_readable: bool = True

    @property
    def outcome(self) -> Outcome:
        """Return the worst of what was found."""
        if not self.is_readable:
            return Outcome.UNREADABLE
        unequal = any(not check.is_equal for check in self.checks)
        if self.problem is not None or unequal:
            return Outcome.DIFFERS
        found = [
            _WORDS_OF.get(match, Outcome.DIFFERS)
            for match, count in (self.counts or {}).items()
            if count and match not in _HARMLESS
        ]
        return worst(found)


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the worst of some outcomes; nothing at all is equal."""
    order = list(Outcome)
    return max(outcomes, key=order.index, default=Outcome.EQUAL)


@dataclass(frozen=True)
class Told:
    """What a batch brings when it is told again."""

    records: Sequence[NewRecord]
    gone: Sequence[str]  # ids that the source has no more, or that have become others
    merged: Collection[str]
    bad: Sequence[BadItem]
    bad_ids: Collection[str]
    numbers: Mapping[str, Any]
    out_of_window: int
    following: str | None


@dataclass(frozen=True)
class Stored:
    """What the ledger has of a batch now."""

    batch: KeptBatch
    records: Mapping[str, KeptRecord]  # by id: all that the replay brings
    brought: Sequence[str]  # ids whose present version is from this batch
    quarantined: Sequence[KeptBadItem]


def check_batch(told: Told, stored: Stored, unlike: Sequence[str], unasked: int) -> list[Check]:
    """Hold the numbers of a batch against those of its replay."""
    stats, numbers = stored.batch.stats, told.numbers
    checks = [
        Check("request", [], list(unlike)),
        Check("answers left over", 0, unasked),
        Check("items", stats.get("itemsCount"), numbers["itemsCount"]),
        Check("ids", _ids(stats.get("idKeys", "")), _ids(numbers["idKeys"])),
        Check("total", stats.get("total"), numbers["total"]),
        Check("records", sum(stats.get(fate, 0) for fate in _FATES), len(told.records)),
        Check("out of window", stats.get("outOfWindow"), told.out_of_window),
        Check("quarantined items", _items(stored.quarantined), _bad_items(told.bad)),
        Check("next position", stored.batch.after_position, told.following),
    ]
    strange = _strange_ids(told, stored)
    return [*checks, Check("quarantined ids", strange[0], strange[1])]


def _ids(packed: str) -> str:
    """Return what tells some ids from others, in whatever order they came."""
    return sha256(b"".join(sorted(unpack_ids(packed)))).hexdigest()[:16]


def _items(quarantined: Sequence[KeptBadItem]) -> list[list[Any]]:
    found = [one for one in quarantined if one.kind == "ITEM"]
    return sorted(([one.item_no, one.path, one.reason] for one in found), key=str)


def _bad_items(bad: Sequence[BadItem]) -> list[list[Any]]:
    found = {one.item_no: one for one in bad}.values()
    cut = ([one.item_no, one.path[:_KEPT_CHARS], one.reason[:_KEPT_CHARS]] for one in found)
    return sorted(cut, key=str)


def _strange_ids(told: Told, stored: Stored) -> tuple[list[str], list[str]]:
    """Return the ids in quarantine, and those that belong there.

    An id that the source has no more is there if we had no record of it: who knows that now?
    """
    there = {one.provider_id or "" for one in stored.quarantined if one.kind == "BAD_ID"}
    may = {one[:_KEPT_CHARS] for one in told.gone if one not in told.merged}
    must = {one[:_KEPT_CHARS] for one in told.bad_ids}
    return sorted(there), sorted(must | (there & may))


def match_records(told: Told, stored: Stored, rule: ChangeRule) -> list[RecordMatch]:
    """Hold every record that a batch brings against the ledger, and the other way round."""
    latest = _latest(told.records, rule)
    unknown = {one.provider_id for one in stored.quarantined if one.kind == "BAD_ID"}
    found = [_match(one, stored.records.get(one.provider_id), stored.batch, rule) for one in latest]
    for one in dict.fromkeys(told.gone):
        is_known = one in unknown or one in told.merged
        found.append(_match_gone(one, stored.records.get(one), stored.batch, is_known))
    expected = {one.provider_id for one in latest} | set(told.gone)
    why = "the ledger says that this batch brought it, the replay does not"
    extra = (one for one in stored.brought if one not in expected)
    return [*found, *(RecordMatch(one, Match.ADDED, why) for one in extra)]


def _latest(records: Sequence[NewRecord], rule: ChangeRule) -> list[NewRecord]:
    """Return what is left of a batch that brings a record more than once."""
    kept: dict[str, NewRecord] = {}
    for record in records:
        before = kept.get(record.provider_id)
        if before is None or change_of(_known(before), record, rule) not in ("stale", "unchanged"):
            kept[record.provider_id] = record
    return list(kept.values())


def _known(record: NewRecord | KeptRecord) -> Known:
    return Known(record.source_updated_at, record.content_hash, record.is_deleted)


def _match(
    record: NewRecord, row: KeptRecord | None, batch: KeptBatch, rule: ChangeRule
) -> RecordMatch:
    one = record.provider_id
    if row is None:
        return RecordMatch(one, Match.LOST, "it is not in the ledger")
    if _is_same(record, row):
        return RecordMatch(one, Match.SAME, "")
    if row.batch_id == batch.id:
        return RecordMatch(one, Match.DIFFERS, _difference(record, row))
    if is_later(row, batch):
        return RecordMatch(one, Match.CHANGED_SINCE, f"by batch {row.brought_by or row.batch_id}")
    if change_of(_known(row), record, rule) in ("stale", "unchanged"):
        return RecordMatch(one, Match.KEPT, f"batch {row.brought_by} had brought a newer version")
    return RecordMatch(one, Match.DIFFERS, f"{_difference(record, row)}, of batch {row.brought_by}")


def _is_same(record: NewRecord, row: KeptRecord) -> bool:
    if record.is_tombstone:
        return row.is_deleted
    is_version = record.source_updated_at in (None, row.source_updated_at)
    is_content = record.content_hash == row.content_hash
    return is_version and is_content and record.is_deleted == row.is_deleted


def _difference(record: NewRecord, row: KeptRecord) -> str:
    if record.is_deleted != row.is_deleted:
        return "the ledger has it " + ("deleted" if row.is_deleted else "undeleted")
    if record.content_hash != row.content_hash:
        return f"the ledger has the content {row.content_hash[:12]}, not {record.content_hash[:12]}"
    return f"the ledger has the version of {_at(row.source_updated_at)}"


def _at(instant: datetime | None) -> str:
    return instant.isoformat() if instant else "no time"


def _match_gone(one: str, row: KeptRecord | None, batch: KeptBatch, is_known: bool) -> RecordMatch:
    if row is None:
        match = Match.SAME if is_known else Match.LOST
        return RecordMatch(one, match, "gone at the source, and not in the ledger")
    if row.is_deleted:
        return RecordMatch(one, Match.SAME, "")
    if is_later(row, batch):
        return RecordMatch(one, Match.CHANGED_SINCE, f"by batch {row.brought_by or row.batch_id}")
    return RecordMatch(one, Match.DIFFERS, "gone at the source, and not deleted in the ledger")


def is_later(row: KeptRecord, batch: KeptBatch) -> bool:
    """Return whether a record's present version was written after a batch."""
    if row.brought_at is not None and batch.committed_at is not None:
        return (row.brought_at, row.batch_id or 0) > (batch.committed_at, batch.id)
    return (row.batch_id or 0) > batch.id


def match_contents(then: Mapping[str, str], now: Mapping[str, str]) -> list[RecordMatch]:
    """Hold what a source sends now against what it sent then, by content hash."""
    found = [RecordMatch(one, *_live_word(content, now.get(one))) for one, content in then.items()]
    new = (one for one in now if one not in then)
    return [*found, *(RecordMatch(one, Match.ADDED, "the source sends it now") for one in new)]


def _live_word(then: str, now: str | None) -> tuple[Match, str]:
    if now is None:
        return Match.LOST, "the source does not send it here any more"
    if now == then:
        return Match.SAME, ""
    return Match.DIFFERS, f"its content was {then[:12]} and is {now[:12]}"


def count_matches(matches: Sequence[RecordMatch]) -> dict[Match, int]:
    """Count every word, in the order of `Match`."""
    words = [one.match for one in matches]
    return {match: words.count(match) for match in Match if match in words}
