"""The policies of a source: how it is spoken to, who we are, how often, how fast. All optional."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from patra_ingest.model.codes import (
    BackoffPolicyType,
    BackpressureStrategy,
    InboundLocation,
    OauthGrantType,
    PayloadCompressStrategy,
    RetryAfterPolicy,
)
from patra_ingest.spec.places import Params
from patra_ingest.spec.words import (
    Duration,
    HttpStatus,
    Period,
    Positive,
    QuotaKind,
    RateKey,
    RateScope,
    Redirects,
    ResetUnit,
    Rotation,
    SecretRef,
    Text,
    Word,
    Zone,
    coded,
)

Rate = Annotated[float, Field(strict=True, gt=0, le=10_000)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]


class HttpPart(Word):
    """How the source is spoken to; headers and query go with every request, also a next URL."""

    base_url: str | None = Field(None, description="Wins over the provenance's own.")
    headers: dict[str, Text | None] | None = None
    query: Params | None = Field(None, description="Who we are: mailto, tool, email.")
    connect_timeout: Duration | None = None
    read_timeout: Duration | None = None
    total_timeout: Duration | None = None
    max_body_mb: Positive | None = None
    redirects: Redirects | None = None
    redirect_hosts: tuple[str, ...] | None = None
    allow_insecure_http: bool | None = None
    verify_tls: bool | None = None
    compression: bool | None = None
    http2: bool | None = None
    proxy: str | None = None
    retry_after: Annotated[RetryAfterPolicy, coded("retry_after_policy")] | None = None
    retry_after_cap: Duration | None = None
    idempotency_header: str | None = None


class _Credential(Word):
    """What every credential has; its secret is a reference."""

    preferred: bool = False
    required_scope: str | None = Field(None, description="What it must be allowed to, for people.")
    unlocks: dict[str, dict[str, Any]] | None = Field(
        None, description="What the source allows with it: group → key → value."
    )


class ApiKey(_Credential):
    """A key in a parameter, a header or the body, with any prefix or none."""

    type: Literal["API_KEY"]
    location: Annotated[InboundLocation, coded("inbound_location")] = InboundLocation.QUERY
    field: str
    prefix: str = ""
    secret: SecretRef


class Bearer(_Credential):
    """A token in a header."""

    type: Literal["BEARER"]
    field: str = "Authorization"
    prefix: str = "Bearer "
    secret: SecretRef


class Basic(_Credential):
    """A user and a password; some sources take their key as the user."""

    type: Literal["BASIC"]
    username: SecretRef
    password: SecretRef | None = None


class OAuth2(_Credential):
    """A token that is fetched with client credentials and renewed before it ends."""

    type: Literal["OAUTH2"]
    token_url: str
    grant: Annotated[OauthGrantType, coded("oauth_grant_type")] = OauthGrantType.CLIENT_CREDENTIALS
    client_id: SecretRef
    client_secret: SecretRef
    refresh_token: SecretRef | None = None
    scope: str | None = None
    audience: str | None = None
    refresh_ahead: Duration | None = Field(None, description="Renewed this long before its end.")


class Custom(_Credential):
    """A signing function that the transport knows by name."""

    type: Literal["CUSTOM"]
    hook: str = Field(min_length=1)
    secret: SecretRef | None = None


Credential = Annotated[ApiKey | Bearer | Basic | OAuth2 | Custom, Field(discriminator="type")]


class AuthPart(Word):
    """Whether a credential is needed, and which there are."""

    required: bool | None = None
    use: str | None = Field(None, description="The credential to take, by name.")
    rotation: Rotation | None = Field(None, description="Take the first one, or all in turn.")
    credentials: dict[str, Credential] | None = None

    @model_validator(mode="after")
    def _one_is_preferred(self) -> Self:
        preferred = [name for name, own in (self.credentials or {}).items() if own.preferred]
        if len(preferred) > 1:
            raise ValueError(f"{' and '.join(preferred)} are both preferred; prefer one")
        return self


class Quota(Word):
    """An amount per period, beside the rate."""

    limit: Annotated[float, Field(strict=True, gt=0)]
    per: Period
    kind: QuotaKind = QuotaKind.FIXED
    zone: Zone = Field("UTC", description="Whose midnight begins a day.")
    scope: RateScope = RateScope.IP


class Reset(Word):
    """A header that says when the budget is full again."""

    header: str
    unit: ResetUnit


class RateHeaders(Word):
    """Which headers tell us about our budget, by name."""

    limit: str | None = None
    interval: str | None = None
    remaining: str | None = None
    used: str | None = None
    reset: Reset | None = None
    concurrency: str | None = None
    cost: str | None = None


class VendorLimit(Word):
    """What the source publishes as its limit; ours may not be above it."""

    per_second: Rate | None = None
    in_flight: Positive | None = None


class SharedLimit(Word):
    """Another budget that the same request spends from, such as one for the whole source."""

    key: RateKey = Field(description="Name of the budget.")
    per_second: Rate = Field(description="Requests per second.")
    burst: Annotated[int, Field(strict=True, ge=1, le=10_000)] = Field(
        1, description="Requests at once after a pause."
    )
    in_flight: Positive | None = Field(None, description="Requests open at the same time.")
    quotas: tuple[Quota, ...] = Field((), description="Amounts per period.")


class RatePart(Word):
    """What the source allows, under a key that several endpoints and sources may share."""

    key: RateKey | None = None
    per_second: Rate | None = None
    burst: Annotated[int, Field(strict=True, ge=1, le=10_000)] | None = None
    in_flight: Positive | None = None
    min_interval: Period | None = Field(None, description="At least this long between requests.")
    cost: Annotated[float, Field(strict=True, gt=0, le=1_000_000)] | None = None
    cost_path: str | None = Field(None, description="Where an answer says what it cost.")
    quotas: tuple[Quota, ...] | None = None
    headers: RateHeaders | None = None
    also: tuple[SharedLimit, ...] | None = Field(
        None, description="Further budgets that every request spends from."
    )
    park_after: Duration | None = Field(
        None, description="A longer Retry-After means that the budget is gone, not that we hurried."
    )
    demote: Annotated[float, Field(strict=True, ge=1, le=10)] | None = Field(
        None, description="A complaint divides the rate by this; 2 unless told otherwise."
    )
    cool_down: Period | None = Field(
        None, description="A rate is cut once in this time, and rises once in it; 10s."
    )
    warm_up: Duration | None = Field(
        None, description="A key that has rested comes to its full rate within this time."
    )
    vendor: VendorLimit | None = None


class Breaker(Word):
    """When to leave a source alone for a while."""

    failures: Positive | None = Field(None, description="In a row.")
    error_share: Share | None = Field(None, description="Of the last hundred requests.")
    cooldown: Period


class RetryPart(Word):
    """How often and how slowly we ask again."""

    max_attempts: Annotated[int, Field(strict=True, ge=1, le=20)] | None = None
    backoff: Annotated[BackoffPolicyType, coded("backoff_policy_type")] | None = None
    initial_delay: Duration | None = None
    max_delay: Duration | None = None
    multiplier: Annotated[float, Field(strict=True, ge=1, le=10)] | None = None
    jitter: Share | None = None
    statuses: tuple[HttpStatus, ...] | None = None
    give_up: tuple[HttpStatus, ...] | None = None
    network_errors: bool | None = None
    breaker: Breaker | None = None


class BatchingPart(Word):
    """How many ids travel together, and how many requests at once."""

    ids_per_request: Positive | None = Field(None, description="Hard cap of the source.")
    ids_param: str | None = Field(None, description="Carries the ids.")
    join: str | None = None
    max_url: Positive | None = Field(None, description="Characters a URL may have.")
    compress: Annotated[PayloadCompressStrategy, coded("payload_compress_strategy")] | None = None
    parallel: Positive | None = None
    per_host: Positive | None = None
    pool: Positive | None = None
    backpressure: Annotated[BackpressureStrategy, coded("backpressure_strategy")] | None = None
    two_phase_from: Positive | None = Field(None, description="Fewer ids: stay in one phase.")
    combine_below: Positive | None = Field(None, description="Fewer ids: join the next batch.")
