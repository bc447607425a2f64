"""The Retry-After header: seconds or a date, and nothing else. Pure."""

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"\d+(?:\.\d+)?(?:\s*,\s*\d+(?:\.\d+)?)*", re.ASCII)
_LONGEST = 365 * 86_400.0  # seconds; whoever says more cannot be added to a date


def read_retry_after(value: str, received_at: datetime) -> datetime | None:
    """Return the instant a Retry-After names; None when there is none or it cannot be read.

    A header that came twice arrives as one text with a comma: the longer pause counts.
    """
    text = value.strip()
    try:
        if _SECONDS.fullmatch(text):
            seconds = max(map(float, text.split(",")))
            return received_at + timedelta(seconds=min(seconds, _LONGEST))
        at = parsedate_to_datetime(text)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
