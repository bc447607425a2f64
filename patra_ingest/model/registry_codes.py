"""The codes of the `reg_*` tables; import them from `codes`, which has them all.

Members and their order equal the dictionary (`registry/dictionary.yaml`).
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Scope(StrEnum):
    """Whether a Registry row is for all operations of a provenance or for one."""

    SOURCE = "SOURCE"
    TASK = "TASK"


class HttpMethod(StrEnum):
    """How an endpoint is called."""

    GET = "GET"
    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"
    HEAD = "HEAD"
    OPTIONS = "OPTIONS"


class EndpointUsage(StrEnum):
    """What an endpoint is for."""

    SEARCH = "SEARCH"
    DETAIL = "DETAIL"
    BATCH = "BATCH"
    METRICS = "METRICS"
    AUTH = "AUTH"
    HEALTH = "HEALTH"


class PaginationMode(StrEnum):
    """How an answer is continued on the next page."""

    NONE = "NONE"
    PAGE_NUMBER = "PAGE_NUMBER"
    OFFSET = "OFFSET"
    CURSOR = "CURSOR"
    TOKEN = "TOKEN"
    SCROLL = "SCROLL"
    URL = "URL"
    TIME = "TIME"


class WindowMode(StrEnum):
    """Whether windows follow the last one or the calendar."""

    SLIDING = "SLIDING"
    CALENDAR = "CALENDAR"


class TimeUnit(StrEnum):
    """A unit of window lengths and granularities."""

    MICROSECOND = "MICROSECOND"
    MILLISECOND = "MILLISECOND"
    SECOND = "SECOND"
    MINUTE = "MINUTE"
    HOUR = "HOUR"
    DAY = "DAY"


class OffsetType(StrEnum):
    """What a provenance can be filtered by."""

    DATE = "DATE"
    ID = "ID"
    COMPOSITE = "COMPOSITE"


class BucketGranularityScope(StrEnum):
    """Who shares one rate."""

    GLOBAL = "GLOBAL"
    PER_KEY = "PER_KEY"
    PER_ENDPOINT = "PER_ENDPOINT"
    PER_IP = "PER_IP"
    PER_TASK = "PER_TASK"


class RetryAfterPolicy(StrEnum):
    """What a Retry-After header is worth."""

    IGNORE = "IGNORE"
    RESPECT = "RESPECT"
    CLAMP = "CLAMP"


class BackoffPolicyType(StrEnum):
    """How delays between retries grow."""

    FIXED = "FIXED"
    EXP = "EXP"
    EXP_JITTER = "EXP_JITTER"
    DECOR_JITTER = "DECOR_JITTER"


class BackpressureStrategy(StrEnum):
    """What happens when work arrives faster than it is done."""

    BLOCK = "BLOCK"
    DROP = "DROP"
    YIELD = "YIELD"


class PayloadCompressStrategy(StrEnum):
    """How request bodies are compressed."""

    NONE = "NONE"
    GZIP = "GZIP"


class InboundLocation(StrEnum):
    """Where in a request a value travels."""

    HEADER = "HEADER"
    QUERY = "QUERY"
    BODY = "BODY"


class LifecycleStatus(StrEnum):
    """Whether a Registry row is read; only ACTIVE ones are."""

    DRAFT = "DRAFT"
    ACTIVE = "ACTIVE"
    DEPRECATED = "DEPRECATED"
    RETIRED = "RETIRED"


class ParamMergeStrategy(StrEnum):
    """How two layers of parameters become one."""

    OVERRIDE = "OVERRIDE"
    UNION = "UNION"
    REMOVE_NULLS = "REMOVE_NULLS"


class OauthGrantType(StrEnum):
    """How an OAuth token is obtained."""

    CLIENT_CREDENTIALS = "CLIENT_CREDENTIALS"
    PASSWORD = "PASSWORD"
    AUTHORIZATION_CODE = "AUTHORIZATION_CODE"
    REFRESH_TOKEN = "REFRESH_TOKEN"
    JWT_BEARER = "JWT_BEARER"


class AuthType(StrEnum):
    """How a request proves who we are."""

    NONE = "NONE"
    API_KEY = "API_KEY"
    BEARER = "BEARER"
    BASIC = "BASIC"
    OAUTH2 = "OAUTH2"
    CUSTOM = "CUSTOM"


class CalendarAlign(StrEnum):
    """What a CALENDAR window is aligned to."""

    HOUR = "HOUR"
    DAY = "DAY"
    WEEK = "WEEK"
    MONTH = "MONTH"


class SortDirection(StrEnum):
    """The order a provenance is asked to answer in."""

    ASC = "ASC"
    DESC = "DESC"


class WatermarkSource(StrEnum):
    """What a cursor advances to when a slice has succeeded."""

    WINDOW_END = "WINDOW_END"
    RECORD_MAX = "RECORD_MAX"
    SERVER_DATE = "SERVER_DATE"
    RELEASE = "RELEASE"


class UpperBound(StrEnum):
    """Whether the provenance counts the end of a window in, or is given no end at all."""

    INCLUSIVE = "INCLUSIVE"
    EXCLUSIVE = "EXCLUSIVE"
    OPEN = "OPEN"


REGISTRY_TYPES: Mapping[str, type[StrEnum]] = MappingProxyType(
    {
        "scope": Scope,
        "http_method": HttpMethod,
        "endpoint_usage": EndpointUsage,
        "pagination_mode": PaginationMode,
        "window_mode": WindowMode,
        "time_unit": TimeUnit,
        "offset_type": OffsetType,
        "bucket_granularity_scope": BucketGranularityScope,
        "retry_after_policy": RetryAfterPolicy,
        "backoff_policy_type": BackoffPolicyType,
        "backpressure_strategy": BackpressureStrategy,
        "payload_compress_strategy": PayloadCompressStrategy,
        "inbound_location": InboundLocation,
        "lifecycle_status": LifecycleStatus,
        "param_merge_strategy": ParamMergeStrategy,
        "oauth_grant_type": OauthGrantType,
        "auth_type": AuthType,
        "calendar_align": CalendarAlign,
        "sort_direction": SortDirection,
        "watermark_source": WatermarkSource,
        "upper_bound": UpperBound,
    }
)
