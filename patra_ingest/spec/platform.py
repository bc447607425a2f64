"""Every default of the platform, in one table; the lowest layer of every declaration."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from patra_ingest.model.codes import (
    BackoffPolicyType,
    EndpointUsage,
    HttpMethod,
    RetryAfterPolicy,
    TimeUnit,
    UpperBound,
    WatermarkSource,
    WindowMode,
)
from patra_ingest.model.records import ChangeRule
from patra_ingest.spec.words import (
    BodyFormat,
    Consistency,
    Meaning,
    MissingIds,
    PagingType,
    Redirects,
    Rotation,
    Step,
    StopRule,
)

PLATFORM: Mapping[str, Mapping[str, Any]] = {
    "endpoint": {"usage": EndpointUsage.SEARCH, "fields": (), "changed": ChangeRule.NEWER},
    "request": {"method": HttpMethod.GET},
    "http": {
        "connect_timeout": timedelta(seconds=10),
        "read_timeout": timedelta(seconds=30),
        "total_timeout": timedelta(seconds=60),
        "max_body_mb": 64,
        "redirects": Redirects.REFUSE,
        "allow_insecure_http": False,
        "verify_tls": True,
        "compression": True,
        "http2": False,
        "retry_after": RetryAfterPolicy.RESPECT,
    },
    "auth": {"required": False, "rotation": Rotation.FIRST},
    "paging": {
        "page_size": 100,
        "first_page": 1,
        "first_offset": 0,
        "step": Step.PAGE_SIZE,
        "restore_params": True,
        "shrink_on_timeout": False,
        "consistency": Consistency.UNSTABLE,
    },
    "window": {
        "watermark_key": "updated_at",
        "meaning": Meaning.UPDATED,
        "watermark_source": WatermarkSource.WINDOW_END,
        "overlap": timedelta(0),
        "max_span": timedelta(days=1),
        "mode": WindowMode.SLIDING,
        "granularity": TimeUnit.SECOND,
        "lower_bound": "INCLUSIVE",
        "upper_bound": UpperBound.INCLUSIVE,
    },
    "response": {"format": BodyFormat.JSON, "null_is_empty": False, "client_window": False},
    "detail": {
        "missing": MissingIds.RETRY_THEN_GONE,
        "positional": False,
        "aliases": False,
        "isolate": True,
    },
    "batching": {"ids_per_request": 100, "join": ",", "max_url": 2000, "parallel": 1},
    "retry": {
        "max_attempts": 5,
        "backoff": BackoffPolicyType.EXP_JITTER,
        "initial_delay": timedelta(milliseconds=100),
        "max_delay": timedelta(seconds=30),
        "multiplier": 2.0,
        "jitter": 0.2,
        "statuses": (408, 425, 429, 500, 502, 503, 504),
        "network_errors": True,
    },
    "planning": {
        "pages_per_slice": 200,
        "ids_per_slice": 200,
        "refresh_days": 30,
        "max_queued": 50,
        "quota_margin": 0.1,
        "update_share": 0.8,
        "backfill_share": 0.6,
    },
    "rate": {"per_second": 1.0, "burst": 1, "cost": 1.0, "park_after": timedelta(minutes=10)},
}

# A walk by token ends where no token is handed out; one by number where a page is empty.
STOP: Mapping[PagingType, tuple[StopRule, ...]] = {
    PagingType.NONE: (StopRule.ONE_PAGE,),
    PagingType.OFFSET: (StopRule.EMPTY_PAGE,),
    PagingType.PAGE: (StopRule.EMPTY_PAGE,),
    PagingType.TOKEN: (StopRule.NO_TOKEN,),
    PagingType.URL: (StopRule.NO_TOKEN,),
    PagingType.TIME: (StopRule.SHORT_PAGE,),
}
SAFETY_LAG = timedelta(minutes=10)
UNITS: Mapping[TimeUnit, timedelta] = {
    TimeUnit.MICROSECOND: timedelta(microseconds=1),
    TimeUnit.MILLISECOND: timedelta(milliseconds=1),
    TimeUnit.SECOND: timedelta(seconds=1),
    TimeUnit.MINUTE: timedelta(minutes=1),
    TimeUnit.HOUR: timedelta(hours=1),
    TimeUnit.DAY: timedelta(days=1),
}

# What a written time must show so that two neighbouring grains differ.
LETTERS: Mapping[TimeUnit, str] = {
    TimeUnit.DAY: "dd",
    TimeUnit.HOUR: "HH",
    TimeUnit.MINUTE: "mm",
    TimeUnit.SECOND: "ss",
    TimeUnit.MILLISECOND: "SSS",
    TimeUnit.MICROSECOND: "SSSSSS",
}


def stop_rules(paging: Mapping[str, Any]) -> tuple[StopRule, ...] | None:
    """Return what ends a walk when the pack does not say; a promised total counts too."""
    kind = paging.get("type")
    if kind is None:
        return None
    by_number = kind in (PagingType.OFFSET, PagingType.PAGE)
    more = (StopRule.TOTAL_REACHED,) if by_number and paging.get("total") else ()
    return STOP[PagingType(kind)] + more


def safety_lag(window: Mapping[str, Any]) -> timedelta:
    """Return how far we stay behind now: a grain of the source's filter at least."""
    unit = UNITS[TimeUnit(window["granularity"])]
    return max(SAFETY_LAG, unit, window.get("publication_delay") or timedelta(0))
