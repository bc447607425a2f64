"""The `planning` part of the pack language: how slices are cut, queued and paid for."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from patra_ingest.model.codes import Operation, SliceStrategy, default_priority
from patra_ingest.spec.policies import Share
from patra_ingest.spec.words import Duration, Instant, Period, Positive, Word, Zone, coded

Clock = Annotated[str, Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$")]
Priority = Annotated[int, Field(strict=True, ge=1, le=9)]
Order = Literal["OLDEST_FIRST", "NEWEST_FIRST"]


class Courtesy(Word):
    """When a source wants large jobs to run; smaller ones run at any time."""

    zone: Zone = Field(description="Whose clock counts.")
    hours: Clock = Field(description="From-to on weekdays; may pass midnight, as 21:00-05:00.")
    weekends: bool = Field(False, description="All of Saturday and Sunday, too.")
    from_requests: Positive = Field(100, description="A BACKFILL with fewer requests is not large.")

    @model_validator(mode="after")
    def _has_hours(self) -> Self:
        start, _, end = self.hours.partition("-")
        if start == end:
            raise ValueError("the hours begin and end at the same time")
        return self


class PlanningPart(Word):
    """How a window becomes slices and tasks."""

    strategy: Annotated[SliceStrategy, coded("ing_slice_strategy")] | None = Field(
        None, description="What slices are cut by; else the operation and the source decide."
    )
    order: Order | None = Field(None, description="Which slice is queued first.")
    records_per_slice: Positive | None = Field(
        None, description="A slice that is expected to hold more is cut finer."
    )
    records_per_day: Annotated[float, Field(strict=True, gt=0, le=1_000_000_000)] | None = Field(
        None, description="Expected density, used before there is history."
    )
    total_records: Positive | None = Field(
        None, description="Expected size of the whole source, for PAGE_RANGE."
    )
    pages_per_slice: Positive | None = Field(None, description="For PAGE_RANGE.")
    ids_per_slice: Annotated[int, Field(strict=True, ge=1, le=1000)] | None = Field(
        None, description="For UPDATE by ids."
    )
    buckets: Positive | None = Field(
        None, description="Cut the ids of an UPDATE by hash into so many buckets, not by range."
    )
    refresh_days: Positive | None = Field(
        None, description="UPDATE asks for every record once in so many days."
    )
    slice_requests: Positive | None = Field(
        None,
        description="Requests a slice may take before its rest is cut again;"
        " of one attempt, if it cannot be.",
    )
    slice_time: Period | None = Field(
        None,
        description="How long a slice may take before its rest is cut again;"
        " one attempt, if it cannot be.",
    )
    max_queued: Positive | None = Field(
        None, description="Tasks that may wait per endpoint and operation; the plan keeps the rest."
    )
    priority: Priority | None = Field(None, description="1 is leased first, 9 last.")
    quota_margin: Share | None = Field(None, description="Part of a quota that is never planned.")
    update_share: Share | None = Field(None, description="Most of a quota that UPDATE may fill.")
    backfill_share: Share | None = Field(
        None, description="Most of a quota that BACKFILL may fill."
    )
    earliest: Instant | None = Field(None, description="The source has nothing older.")
    courtesy: Courtesy | None = Field(None, description="When large BACKFILLs may run.")


class PlanningSpec(Word):
    """How this endpoint's windows become slices and tasks."""

    strategy: SliceStrategy | None = None
    order: Order | None = None
    records_per_slice: int | None = None
    records_per_day: float | None = None
    total_records: int | None = None
    pages_per_slice: int = 200
    ids_per_slice: int = 200
    buckets: int | None = None
    slice_requests: int | None = None
    slice_time: Duration | None = None
    refresh_days: int = 30
    max_queued: int = 50
    priority: int | None = None
    quota_margin: float = 0.1
    update_share: float = 0.8
    backfill_share: float = 0.6
    earliest: Instant | None = None
    courtesy: Courtesy | None = None

    def priority_of(self, operation: Operation) -> int:
        """Return the priority of an operation's tasks."""
        return self.priority or default_priority(operation)

    def share_of(self, operation: Operation) -> float:
        """Return how much of a quota an operation may fill: HARVEST all, the others less."""
        shares: Mapping[Operation, float] = {
            Operation.UPDATE: self.update_share,
            Operation.BACKFILL: self.backfill_share,
        }
        return shares.get(operation, 1.0)
