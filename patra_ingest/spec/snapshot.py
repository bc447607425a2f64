"""The spec snapshot: everything an executor needs to know of one endpoint, frozen.

A snapshot is stored with its plan and read back from there; nothing else decides how a plan runs.
Credentials stand in it by reference only.
"""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import Field

from patra_ingest.model.codes import (
    BackoffPolicyType,
    BackpressureStrategy,
    CalendarAlign,
    EndpointUsage,
    HttpMethod,
    InboundLocation,
    Operation,
    PayloadCompressStrategy,
    RetryAfterPolicy,
    UpperBound,
    WatermarkSource,
    WindowMode,
)
from patra_ingest.model.records import ChangeRule
from patra_ingest.spec.paging import Paging
from patra_ingest.spec.parts import Probe
from patra_ingest.spec.places import (
    ErrorRule,
    Expectation,
    FieldSpec,
    Freshness,
    Moment,
    Param,
    When,
)
from patra_ingest.spec.planning import PlanningSpec
from patra_ingest.spec.policies import Breaker, Credential, Quota, RateHeaders, SharedLimit
from patra_ingest.spec.splits import Split
from patra_ingest.spec.words import (
    BodyFormat,
    Duration,
    Meaning,
    MissingIds,
    Redirects,
    Rotation,
    Word,
)

SentParams = dict[str, str | Param]


class RequestSpec(Word):
    """The request template; `${…}` is filled per batch."""

    method: HttpMethod
    base_url: str
    path: str
    query: SentParams = Field({})
    first: SentParams = Field({})
    next: SentParams = Field({})
    headers: dict[str, str] = Field({})
    form: SentParams = Field({})
    body: dict[str, Any] | None = None
    post_when_longer: int | None = None
    post_path: str | None = None


class HttpSpec(Word):
    """How patient, how trusting and how recognisable the transport is."""

    headers: dict[str, str] = Field({})
    query: SentParams = Field({})
    connect_timeout: Duration
    read_timeout: Duration
    total_timeout: Duration
    max_body_mb: int
    redirects: Redirects
    redirect_hosts: tuple[str, ...] = ()
    allow_insecure_http: bool
    verify_tls: bool
    compression: bool
    http2: bool
    proxy: str | None = None
    retry_after: RetryAfterPolicy
    retry_after_cap: Duration | None = None
    idempotency_header: str | None = None


class CredentialSpec(Word):
    """One credential that may be used, by reference."""

    name: str
    credential: Credential


class AuthSpec(Word):
    """Whether we must say who we are, and with what; the first credential is tried first."""

    required: bool
    chosen: str | None = None  # the one whose secret was at hand when this was compiled
    rotation: Rotation
    credentials: tuple[CredentialSpec, ...] = ()


class WindowSpec(Word):
    """How time is cut for this endpoint and what its cursor measures."""

    watermark_key: str
    meaning: Meaning
    watermark_source: WatermarkSource
    server_date: Moment | None = None
    release: Moment | None = None
    freshness: Freshness | None = None
    safety_lag: Duration
    overlap: Duration = timedelta(0)
    lookback: Duration = timedelta(0)
    max_span: Duration
    min_span: Duration
    mode: WindowMode
    align: CalendarAlign | None = None
    granularity: Duration
    format: str | None = None
    zone: str
    lower_bound: Literal["INCLUSIVE", "EXCLUSIVE"]
    upper_bound: UpperBound
    initial_from: datetime | None = None


class CapSpec(Word):
    """The most results one question gives, how to count cheaply, and how to cut at the floor."""

    max: int | None = None
    probe: Probe | None = None
    then: tuple[Split, ...] = ()


class ResponseSpec(Word):
    """Where the parts of a response are, and what must be there."""

    format: BodyFormat
    namespaces: dict[str, str] = Field({})
    items: tuple[str, ...]
    items_order: str | None = None
    null_is_empty: bool = False
    single: bool = False
    grouped: bool = False
    asked: tuple[str, ...] | None = None
    id: tuple[str, ...]
    version: tuple[str, ...] | None = None
    updated_at: tuple[str, ...] | None = None
    deleted: str | When | None = None
    tombstones: str | None = None
    retracted: When | None = None
    skip: When | None = None
    usable: When | None = None
    require: tuple[str, ...] = ()
    expect: tuple[Expectation, ...] = ()
    client_window: bool = False


class BatchingSpec(Word):
    """How many ids travel together."""

    ids_per_request: int
    ids_param: str | None = None
    join: str
    max_url: int
    parallel: int
    # None of these is run yet: `readiness` says so of a spec that asks for one.
    two_phase_from: int | None = None
    combine_below: int | None = None
    compress: PayloadCompressStrategy | None = None
    per_host: int | None = None
    pool: int | None = None
    backpressure: BackpressureStrategy | None = None


class RetrySpec(Word):
    """How often and how slowly the same batch is sent again."""

    max_attempts: int
    backoff: BackoffPolicyType
    initial_delay: Duration
    max_delay: Duration
    multiplier: float
    jitter: float
    statuses: tuple[int, ...]
    give_up: tuple[int, ...] = ()
    network_errors: bool
    breaker: Breaker | None = None


class RateSpec(Word):
    """The rate key this endpoint spends from, and the limits of that key."""

    key: str
    per_second: float
    burst: int
    in_flight: int | None = None
    min_interval: Duration | None = None
    cost: float
    cost_path: str | None = None
    quotas: tuple[Quota, ...] = ()
    headers: RateHeaders | None = None
    also: tuple[SharedLimit, ...] = ()
    park_after: Duration
    demote: float | None = None
    cool_down: Duration | None = None
    warm_up: Duration | None = None


class CallSpec(Word):
    """One callable: how it is asked, how its answer is read, and what limits hold for it."""

    request: RequestSpec
    http: HttpSpec
    auth: AuthSpec
    response: ResponseSpec
    fields: tuple[FieldSpec, ...]
    changed: ChangeRule
    errors: tuple[ErrorRule, ...] = ()
    batching: BatchingSpec
    retry: RetrySpec
    rate: RateSpec


class ReconcileSpec(Word):
    """How the ids that came are held against those that were asked for."""

    missing: MissingIds
    positional: bool
    aliases: bool
    isolate: bool


class DetailSpec(CallSpec):
    """The endpoint that turns ids into records, and how its answers are reconciled."""

    endpoint: str
    batch: int
    reconcile: ReconcileSpec


class QuerySpec(Word):
    """The neutral query of this spec and what it became in the source's own syntax."""

    asked: dict[str, Any]
    text: str | None = None
    params: dict[str, tuple[str, ...]] = Field({})
    locations: dict[str, InboundLocation] = Field({})
    placed: dict[str, tuple[str, ...]] = Field({})  # where the request says ${asked.NAME}
    warnings: tuple[str, ...] = ()  # clauses that were let go: the question is wider than asked


class SpecSnapshot(CallSpec):
    """One endpoint, one operation: compiled, checked, never changed again."""

    format: Literal[2] = 2
    provenance: str
    endpoint: str
    operation: Operation
    usage: EndpointUsage
    paging: Annotated[Paging, Field(discriminator="type")]
    window: WindowSpec
    cap: CapSpec = CapSpec()
    planning: PlanningSpec = PlanningSpec()
    partitions: dict[str, dict[str, str | None]] = Field({})
    detail: DetailSpec | None = None
    reconcile: ReconcileSpec | None = None  # of a spec that asks for ids itself
    query: QuerySpec | None = None
    params: dict[str, str] = Field({})
    warnings: tuple[str, ...] = ()
