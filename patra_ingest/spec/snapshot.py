"""The spec snapshot: everything an executor needs to know of one endpoint, frozen.

A snapshot is stored with its plan and read back from there; nothing else decides how a plan runs.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from patra_ingest.model.codes import HttpMethod, Operation, UpperBound, WatermarkSource
from patra_ingest.model.records import ChangeRule


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StopRule(StrEnum):
    """What tells that a page was the last; a source declares the ones that hold for it."""

    NO_TOKEN = "NO_TOKEN"  # the response hands out no token
    SAME_TOKEN = "SAME_TOKEN"  # the response hands out the token that was sent
    EMPTY_PAGE = "EMPTY_PAGE"
    SHORT_PAGE = "SHORT_PAGE"  # fewer items than were asked for
    TOTAL_REACHED = "TOTAL_REACHED"  # position + items reach the promised total


class RequestSpec(_Frozen):
    """The request template; `${…}` is filled per batch."""

    method: HttpMethod
    base_url: str
    path: str
    query: dict[str, str] = {}
    headers: dict[str, str] = {}


class HttpSpec(_Frozen):
    """How patient the transport is."""

    connect_timeout_ms: int
    read_timeout_ms: int
    total_timeout_ms: int
    follow_redirects: bool = False
    allow_insecure_http: bool = False


class OffsetPaging(_Frozen):
    """`offset += page_size` until a stop rule holds."""

    type: Literal["OFFSET"] = "OFFSET"
    page_size: int
    max_pages: int | None = None
    total_path: str | None = None
    stop: tuple[StopRule, ...]


class TokenPaging(_Frozen):
    """Follow the opaque token that each response hands out."""

    type: Literal["TOKEN"] = "TOKEN"
    page_size: int
    max_pages: int | None = None
    initial_token: str | None = None
    next_token_path: str
    total_path: str | None = None
    stop: tuple[StopRule, ...]


Paging = Annotated[OffsetPaging | TokenPaging, Field(discriminator="type")]


class WindowSpec(_Frozen):
    """How time is cut for this endpoint and what its cursor measures."""

    watermark_key: str
    watermark_source: WatermarkSource
    safety_lag: timedelta
    overlap: timedelta = timedelta(0)
    max_span: timedelta
    granularity: timedelta
    zone: str
    upper_bound: UpperBound
    initial_from: datetime | None = None


class ResponseSpec(_Frozen):
    """Where the parts of a response are."""

    items_path: str
    id_path: str
    updated_at_path: str | None = None
    deleted_path: str | None = None
    client_window: bool = False  # the source's filter is coarser than a slice: we drop the rest


class FieldSpec(_Frozen):
    """One output field and where its value is in an item."""

    name: str
    path: str
    required: bool = False


class RetrySpec(_Frozen):
    """How often and how slowly the same batch is sent again."""

    max_attempts: int
    initial_delay_ms: int
    max_delay_ms: int
    multiplier: float
    jitter: float
    retry_statuses: tuple[int, ...]


class RateSpec(_Frozen):
    """The rate key this endpoint spends from, and the limits of that key."""

    key: str
    per_second: float
    burst: float
    in_flight: int | None = None
    cost: float = 1.0


class SpecSnapshot(_Frozen):
    """One endpoint, one operation: compiled, checked, never changed again."""

    provenance: str
    endpoint: str
    operation: Operation
    request: RequestSpec
    http: HttpSpec
    paging: Paging
    window: WindowSpec
    response: ResponseSpec
    fields: tuple[FieldSpec, ...]
    changed: ChangeRule
    retry: RetrySpec
    rate: RateSpec
    params: dict[str, str] = {}
    warnings: tuple[str, ...] = ()
