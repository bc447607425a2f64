"""The small words of the pack language: kinds of values and closed choices.

Packs, stored snapshots and triggers all speak these words. A choice that is also a code of the
dictionary may be written by any of its aliases; whoever reads a pack hands in the dictionary.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
)

from patra_ingest.model.window import duration_iso, instant_iso, parse_duration, parse_instant

# Under this name a reader of packs hands in `(type_code, code) -> code`, ValueError if unknown.
CODES = "codes"


class Word(BaseModel):
    """A part of the pack language: frozen, and closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PagingType(StrEnum):
    """How an endpoint hands out its next page."""

    NONE = "NONE"  # one request is the whole answer
    OFFSET = "OFFSET"
    PAGE = "PAGE"
    TOKEN = "TOKEN"
    URL = "URL"
    TIME = "TIME"  # the next page starts at the last item's update time


class StopRule(StrEnum):
    """What tells that a page was the last; a source declares the ones that hold for it."""

    NO_TOKEN = "NO_TOKEN"  # the response hands out no token, or no next URL
    SAME_TOKEN = "SAME_TOKEN"  # the response hands out the token that was sent
    EMPTY_PAGE = "EMPTY_PAGE"
    SHORT_PAGE = "SHORT_PAGE"  # fewer items than were asked for
    TOTAL_REACHED = "TOTAL_REACHED"  # position + items reach the promised total
    NO_MORE = "NO_MORE"  # the has_more flag is false
    ONE_PAGE = "ONE_PAGE"  # there is only one page; for NONE


class Step(StrEnum):
    """By how much an offset grows from page to page."""

    PAGE_SIZE = "PAGE_SIZE"
    ITEMS = "ITEMS"  # by the items that came
    REPORTED = "REPORTED"  # by the number at step_path


class SizePolicy(StrEnum):
    """What a source does with the page size it is asked for."""

    OBEYED = "OBEYED"
    FIXED = "FIXED"  # not asked for: every page but the last has page_size items
    CLAMPED = "CLAMPED"  # a larger one is silently made smaller
    SERVER = "SERVER"  # the source chooses


class Consistency(StrEnum):
    """Whether a walk over pages sees one state of the source."""

    SNAPSHOT = "SNAPSHOT"
    STABLE_SORT = "STABLE_SORT"
    UNSTABLE = "UNSTABLE"


class Meaning(StrEnum):
    """What the date that a source filters by says of a record."""

    UPDATED = "UPDATED"
    INDEXED = "INDEXED"
    CREATED = "CREATED"
    PUBLISHED = "PUBLISHED"  # does not move when a record appears or changes
    NONE = "NONE"  # the source filters by no date


class BodyFormat(StrEnum):
    """What a response body is written in; gzip is undone before."""

    JSON = "JSON"
    XML = "XML"
    NDJSON = "NDJSON"
    CSV = "CSV"


class Action(StrEnum):
    """What an answer that a rule recognises means for us."""

    RETRY = "RETRY"
    THROTTLE = "THROTTLE"
    EMPTY = "EMPTY"  # a success without items
    RESTART_SLICE = "RESTART_SLICE"
    RESLICE = "RESLICE"
    SHRINK_PAGE = "SHRINK_PAGE"
    GONE = "GONE"  # the ids asked for do not exist any more
    RENEW_TOKEN = "RENEW_TOKEN"  # fetch a new OAuth token and ask again
    REJECT = "REJECT"
    FATAL = "FATAL"


class MissingIds(StrEnum):
    """What it means when a detail answer lacks an id that was asked for."""

    GONE = "GONE"
    RETRY_THEN_GONE = "RETRY_THEN_GONE"
    FAIL = "FAIL"


class Redirects(StrEnum):
    """Where a redirect may lead; credentials never follow to another host."""

    REFUSE = "REFUSE"
    SAME_HOST = "SAME_HOST"
    LISTED = "LISTED"  # same host, and the redirect_hosts


class Rotation(StrEnum):
    """Which of several credentials a request takes; the source's terms decide."""

    FIRST = "FIRST"  # the first that works
    IN_TURN = "IN_TURN"


class RateScope(StrEnum):
    """Whom a source counts by."""

    IP = "IP"
    CREDENTIAL = "CREDENTIAL"


class QuotaKind(StrEnum):
    """Whether an amount is counted per calendar period or over the last one."""

    FIXED = "FIXED"
    SLIDING = "SLIDING"


class ResetUnit(StrEnum):
    """How a rate header says when the budget is full again."""

    SECONDS_LEFT = "SECONDS_LEFT"
    EPOCH_SECONDS = "EPOCH_SECONDS"
    EPOCH_MILLIS = "EPOCH_MILLIS"
    HTTP_DATE = "HTTP_DATE"


def coded(type_code: str, aliases: dict[str, str] | None = None) -> BeforeValidator:
    """Return the validator of a dictionary code: any case, any alias, known and enabled."""

    def canonical(value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str) or isinstance(value, StrEnum):
            return value
        code = value.strip().upper()
        code = (aliases or {}).get(code, code)
        find: Callable[[str, str], str] | None = (info.context or {}).get(CODES)
        return find(type_code, code) if find else code

    return BeforeValidator(canonical)


def duration_text(duration: timedelta) -> str:
    """Write a duration the way people do, such as `1d12h`; parse_duration reads it."""
    if duration.microseconds % 1000:
        return duration_iso(duration)
    millis = duration.microseconds // 1000
    hours, rest = divmod(duration.seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    parts = ((duration.days, "d"), (hours, "h"), (minutes, "m"), (seconds, "s"), (millis, "ms"))
    return "".join(f"{n}{unit}" for n, unit in parts if n) or "0s"


def shown_instant(instant: datetime) -> str:
    """Write an instant as short as it is exact, such as `2025-01-01T00:00:00Z`."""
    return instant_iso(instant).replace(".000000Z", "Z")


def _duration(value: Any) -> Any:
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, timedelta):
        return value
    raise ValueError("write a duration with its unit, such as 30s, 10m, 36h or 2d")


def _more_than_nothing(duration: timedelta) -> timedelta:
    if duration <= timedelta(0):
        raise ValueError("is no length of time")
    return duration


def _instant(value: Any) -> Any:
    return shown_instant(parse_instant(value)) if isinstance(value, str) else value


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is no IANA time zone, for example Europe/Berlin") from None
    return name


def _said_as_text(value: Any) -> Any:
    if isinstance(value, bool | float):
        raise ValueError("write it in quotes, so that it is sent exactly as it stands here")
    return str(value) if isinstance(value, int) else value


Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    PlainSerializer(duration_text, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["30s", "10m", "36h", "2d"]}),
]
# A length of time that is longer than nothing.
Period = Annotated[Duration, AfterValidator(_more_than_nothing)]
Instant = Annotated[str, BeforeValidator(_instant)]
Zone = Annotated[str, AfterValidator(_zone)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
RateKey = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.:-]{0,127}$")]
Text = Annotated[str, BeforeValidator(_said_as_text, json_schema_input_type=str | int)]
Positive = Annotated[int, Field(strict=True, ge=1, le=1_000_000_000)]
HttpStatus = Annotated[int, Field(strict=True, ge=100, le=599)]
# A reference, never a secret: where the transport finds it when a request leaves.
SecretRef = Annotated[
    str,
    Field(
        pattern=r"^(env:[A-Za-z_][A-Za-z0-9_]{0,127}|file:[A-Za-z0-9_./-]{1,255})$",
        description="Where the secret is kept: env:NAME or file:PATH. Never the secret itself.",
    ),
]
# How a value is found in an item: a path, a path with functions, a template, or a list of those.
ValueText = str | tuple[str, ...]


class Downgrade(StrEnum):
    """What a source cannot give, and what is done instead; a pack may say that it is meant."""

    NO_TOTAL = "NO_TOTAL"
    ESTIMATED_TOTAL = "ESTIMATED_TOTAL"
    EXTRA_PAGE = "EXTRA_PAGE"
    NO_UPDATE_TIME = "NO_UPDATE_TIME"
    NO_UPDATE_FILTER = "NO_UPDATE_FILTER"
    NEW_ONLY = "NEW_ONLY"
    UNSTABLE_WALK = "UNSTABLE_WALK"
    UNREPEATABLE = "UNREPEATABLE"
    ANONYMOUS = "ANONYMOUS"
    NO_SECOND_SPLIT = "NO_SECOND_SPLIT"
