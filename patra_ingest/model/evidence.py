"""What is kept of a run and its batches, as values: replays and black boxes read nothing else."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from patra_ingest.model.lineage import BatchId, Lineage, RunId


@dataclass(frozen=True)
class KeptRun:
    """One attempt at a task, with where it comes from and how it ended."""

    lineage: Lineage
    attempt_no: int
    provenance: str
    endpoint: str
    operation: str
    status: str
    certificate: dict[str, Any] | None
    error: str | None
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def id(self) -> RunId:
        """The run's own id."""
        return self.lineage.run_id or RunId(0)


@dataclass(frozen=True)
class KeptBatch:
    """One batch of a run, with all that was written down of it."""

    id: BatchId
    run_id: RunId
    no: int
    status: str
    page_no: int
    page_size: int
    position: str
    after_position: str | None
    expr_hash: str
    storage_key: str | None
    stats: dict[str, Any]
    request: dict[str, Any]
    response: dict[str, Any]
    committed_at: datetime | None
    error: str | None


@dataclass(frozen=True)
class KeptRecord:
    """What decides whether a record is the one that a batch brought."""

    provider_id: str
    source_updated_at: datetime | None
    content_hash: str
    is_deleted: bool
    batch_id: BatchId | None
    brought_by: str | None  # run and number of that batch, as people write them
    brought_at: datetime | None


@dataclass(frozen=True)
class KeptBadItem:
    """One quarantined item or id of a batch."""

    kind: str
    provider_id: str | None
    item_no: int | None
    path: str | None
    reason: str
    status: str
    fragment: str | None


@dataclass(frozen=True)
class CursorStep:
    """One event of a cursor that a run has led to."""

    event_id: int
    cursor_key: str
    scope: str
    reason: str | None
    previous: str | None
    reached: str | None
    batch_id: int | None
    at: datetime
