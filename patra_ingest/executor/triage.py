"""What a status code means for us: nothing, or an error with its level."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from patra_ingest.errors import (
    EndpointHalted,
    IngestError,
    RequestRejected,
    Throttled,
    TransientError,
)
from patra_ingest.spec.snapshot import RetrySpec
from patra_ingest.transport.messages import Response
from patra_ingest.transport.redact import redact_text

_DEFAULT_PAUSE = timedelta(seconds=1)
_SAMPLE_BYTES = 300


def judge(response: Response, retry: RetrySpec) -> IngestError | None:
    """Return the error a response stands for, or None when it is an answer."""
    status = response.status
    if 200 <= status < 300:
        return None
    seen = f"{response.url} answered {status}: {sample(response.body)}"
    retry_at = find_retry_at(response)
    if status == 429 or (status == 503 and retry_at):
        return Throttled(retry_at or response.received_at + _DEFAULT_PAUSE)
    if status in (401, 403):
        return EndpointHalted(f"{seen} (the source does not accept our credentials)")
    if status in retry.statuses or status >= 500:
        return TransientError(seen)
    return RequestRejected(seen)


def find_retry_at(response: Response) -> datetime | None:
    """Return the instant a Retry-After header names, in seconds or as a date."""
    value = response.headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        if value.isdecimal():
            return response.received_at + timedelta(seconds=int(value))
        at = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def sample(body: bytes) -> str:
    """Return the beginning of a body, redacted, on one line."""
    text = body[:_SAMPLE_BYTES].decode("utf-8", "replace")
    return redact_text(" ".join(text.split()))
