"""How long ago and how long still, in the two largest units that matter."""

from datetime import datetime, timedelta

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def ago(at: datetime, now: datetime) -> str:
    """Return how long ago an instant was."""
    return f"{_span(now - at)} ago"


def still(until: datetime, now: datetime) -> str:
    """Return how long it is until an instant; rounded up, so that nobody comes too early."""
    return _span(until - now + timedelta(microseconds=999_999))


def _span(span: timedelta) -> str:
    seconds = max(0, span // timedelta(seconds=1))
    for position, (size, unit) in enumerate(_UNITS):
        if seconds >= size:
            smaller, name = _UNITS[min(position + 1, len(_UNITS) - 1)]
            rest = seconds % size // smaller
            return f"{seconds // size} {unit}" + (f" {rest} {name}" if rest else "")
    return "0 s"
