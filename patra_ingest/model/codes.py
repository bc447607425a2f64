"""Every code the ledger stores, as enums that equal the dictionary and the CHECKs in `sql/`.

`DICTIONARY` says which enum is which dictionary type.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from patra_ingest.model.query_codes import QUERY_TYPES
from patra_ingest.model.query_codes import Cardinality as Cardinality
from patra_ingest.model.query_codes import DataType as DataType
from patra_ingest.model.query_codes import EmitType as EmitType
from patra_ingest.model.query_codes import EndpointOperation as EndpointOperation
from patra_ingest.model.query_codes import ExprOp as ExprOp
from patra_ingest.model.query_codes import MatchType as MatchType
from patra_ingest.model.query_codes import RangeKind as RangeKind
from patra_ingest.model.query_codes import Transform as Transform
from patra_ingest.model.query_codes import ValueType as ValueType
from patra_ingest.model.registry_codes import REGISTRY_TYPES
from patra_ingest.model.registry_codes import AuthType as AuthType
from patra_ingest.model.registry_codes import BackoffPolicyType as BackoffPolicyType
from patra_ingest.model.registry_codes import BackpressureStrategy as BackpressureStrategy
from patra_ingest.model.registry_codes import BucketGranularityScope as BucketGranularityScope
from patra_ingest.model.registry_codes import CalendarAlign as CalendarAlign
from patra_ingest.model.registry_codes import EndpointUsage as EndpointUsage
from patra_ingest.model.registry_codes import HttpMethod as HttpMethod
from patra_ingest.model.registry_codes import InboundLocation as InboundLocation
from patra_ingest.model.registry_codes import LifecycleStatus as LifecycleStatus
from patra_ingest.model.registry_codes import OauthGrantType as OauthGrantType
from patra_ingest.model.registry_codes import OffsetType as OffsetType
from patra_ingest.model.registry_codes import PaginationMode as PaginationMode
from patra_ingest.model.registry_codes import ParamMergeStrategy as ParamMergeStrategy
from patra_ingest.model.registry_codes import PayloadCompressStrategy as PayloadCompressStrategy
from patra_ingest.model.registry_codes import RetryAfterPolicy as RetryAfterPolicy
from patra_ingest.model.registry_codes import Scope as Scope
from patra_ingest.model.registry_codes import SortDirection as SortDirection
from patra_ingest.model.registry_codes import TimeUnit as TimeUnit
from patra_ingest.model.registry_codes import UpperBound as UpperBound
from patra_ingest.model.registry_codes import WatermarkSource as WatermarkSource
from patra_ingest.model.registry_codes import WindowMode as WindowMode


class Operation(StrEnum):
    """What a plan is for; METRICS is known but disabled, the planner refuses it."""

    HARVEST = "HARVEST"
    BACKFILL = "BACKFILL"
    UPDATE = "UPDATE"
    METRICS = "METRICS"


class PlanStatus(StrEnum):
    """The life of a plan."""

    DRAFT = "DRAFT"
    SLICING = "SLICING"
    READY = "READY"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"


class SliceStatus(StrEnum):
    """The life of a slice; from DISPATCHED on, that of its only task."""

    PENDING = "PENDING"
    READY = "READY"
    DISPATCHED = "DISPATCHED"
    EXECUTING = "EXECUTING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    PARTIAL = "PARTIAL"
    CANCELLED = "CANCELLED"


class TaskStatus(StrEnum):
    """The life of a task in the queue."""

    QUEUED = "QUEUED"
    DISPATCHED = "DISPATCHED"
    EXECUTING = "EXECUTING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    PARTIAL = "PARTIAL"
    CANCELLED = "CANCELLED"


class RunStatus(StrEnum):
    """The life of one attempt at a task."""

    PLANNED = "PLANNED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    PARTIAL = "PARTIAL"
    CANCELLED = "CANCELLED"


class BatchStatus(StrEnum):
    """The life of a batch."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"


class SliceStrategy(StrEnum):
    """What a plan's window is cut by."""

    TIME = "TIME"
    DATE = "DATE"
    ID_RANGE = "ID_RANGE"
    PAGE_RANGE = "PAGE_RANGE"
    CURSOR_LANDMARK = "CURSOR_LANDMARK"
    VOLUME_BUDGET = "VOLUME_BUDGET"
    HYBRID = "HYBRID"
    SINGLE = "SINGLE"


class NamespaceScope(StrEnum):
    """What separates one cursor from another of the same endpoint and operation."""

    GLOBAL = "GLOBAL"
    EXPR = "EXPR"
    CUSTOM = "CUSTOM"


class CursorType(StrEnum):
    """How the values of a cursor compare."""

    TIME = "TIME"
    ID = "ID"
    TOKEN = "TOKEN"


class CursorDirection(StrEnum):
    """Which way a cursor works through time."""

    FORWARD = "FORWARD"
    BACKFILL = "BACKFILL"


class CursorReason(StrEnum):
    """Why a cursor event was written."""

    ADVANCE = "ADVANCE"
    NO_FORWARD = "NO_FORWARD"
    FORCE_FORWARD = "FORCE_FORWARD"
    COMPENSATE = "COMPENSATE"


class Scheduler(StrEnum):
    """Who fired a trigger."""

    DAGSTER = "DAGSTER"
    XXL = "XXL"
    QUARTZ = "QUARTZ"
    SPRING = "SPRING"
    INTERNAL = "INTERNAL"


class TriggerType(StrEnum):
    """How a trigger was fired."""

    SCHEDULE = "SCHEDULE"
    MANUAL = "MANUAL"
    API = "API"
    RETRY = "RETRY"


class OutboxStatus(StrEnum):
    """The life of a message to publish."""

    PENDING = "PENDING"
    PUBLISHING = "PUBLISHING"
    PUBLISHED = "PUBLISHED"
    FAILED = "FAILED"
    DEAD = "DEAD"


class QuarantineKind(StrEnum):
    """What was quarantined: an item, or an id nothing was found for."""

    ITEM = "ITEM"
    BAD_ID = "BAD_ID"


class QuarantineStatus(StrEnum):
    """What became of a quarantined item."""

    OPEN = "OPEN"
    RETRIED = "RETRIED"
    RESOLVED = "RESOLVED"
    DISCARDED = "DISCARDED"


class Signal(StrEnum):
    """Why a record should be asked for again."""

    RETRACTION = "RETRACTION"
    CORRECTION = "CORRECTION"
    MERGE = "MERGE"
    MISSING_FIELD = "MISSING_FIELD"
    QUARANTINED = "QUARANTINED"


class SignalStatus(StrEnum):
    """What became of a signal."""

    PENDING = "PENDING"
    CONSUMED = "CONSUMED"
    DISCARDED = "DISCARDED"


class ResliceReason(StrEnum):
    """Why the rest of a slice should be cut finer."""

    RESULT_CAP = "RESULT_CAP"
    PAGE_DEPTH = "PAGE_DEPTH"
    THROTTLED = "THROTTLED"
    TOKEN_EXPIRED = "TOKEN_EXPIRED"
    BUDGET = "BUDGET"
    RESPONSE_SIZE = "RESPONSE_SIZE"


class ResliceStatus(StrEnum):
    """What became of a re-slice request."""

    PENDING = "PENDING"
    CONSUMED = "CONSUMED"
    REJECTED = "REJECTED"


class HoldReason(StrEnum):
    """Who stopped an endpoint: an L4 error, or a person."""

    L4 = "L4"
    OPERATOR = "OPERATOR"


DICTIONARY: Mapping[str, type[StrEnum]] = MappingProxyType(
    {
        **REGISTRY_TYPES,
        **QUERY_TYPES,
        "ing_operation": Operation,
        "ing_plan_status": PlanStatus,
        "ing_slice_status": SliceStatus,
        "ing_task_status": TaskStatus,
        "ing_task_run_status": RunStatus,
        "ing_batch_status": BatchStatus,
        "ing_slice_strategy": SliceStrategy,
        "ing_namespace_scope": NamespaceScope,
        "ing_cursor_type": CursorType,
        "ing_cursor_direction": CursorDirection,
        "ing_cursor_reason": CursorReason,
        "ing_scheduler": Scheduler,
        "ing_trigger_type": TriggerType,
        "ing_outbox_status": OutboxStatus,
        "ing_quarantine_kind": QuarantineKind,
        "ing_quarantine_status": QuarantineStatus,
        "ing_signal": Signal,
        "ing_signal_status": SignalStatus,
        "ing_reslice_reason": ResliceReason,
        "ing_reslice_status": ResliceStatus,
        "ing_hold_reason": HoldReason,
    }
)


def namespace_scope(operation: Operation) -> NamespaceScope:
    """Return the namespace scope an operation uses unless its endpoint says otherwise."""
    return NamespaceScope.EXPR if operation is Operation.HARVEST else NamespaceScope.CUSTOM


def direction(operation: Operation) -> CursorDirection:
    """Return the way an operation works through time."""
    past = operation is Operation.BACKFILL
    return CursorDirection.BACKFILL if past else CursorDirection.FORWARD


def default_priority(operation: Operation) -> int:
    """Return the priority of an operation's tasks: 1 is leased first, 9 last."""
    return {Operation.HARVEST: 3, Operation.BACKFILL: 7}.get(operation, 5)
