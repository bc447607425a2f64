"""Requests that are refused for how often they come, whatever they ask (18, 19). Pure."""

from patra_ingest.sandbox.answers import Answer
from patra_ingest.sandbox.habits.table import Habits

_BURST = 7
_GONE_SECONDS = 15 * 3600


def refuse(habits: Habits, number: int, in_flight: int, now: int) -> Answer | None:
    """Return the refusal of the request of this number; None when it may be answered."""
    if "one-at-a-time" in habits and in_flight > 1:
        return _refusal({"retry-after": "1"}, "Only one request at a time, please.")
    if "budget-gone" in habits:
        left = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(_GONE_SECONDS)}
        return _refusal({"retry-after": str(_GONE_SECONDS), **left}, "Your daily budget is spent.")
    if "reset-as-epoch" in habits:
        reset = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(now + _GONE_SECONDS)}
        return _refusal(reset, "Your daily budget is spent.")
    if "burst-429" in habits and number % _BURST == 0:
        return _refusal({"retry-after": "1"}, "Too many requests.")
    return None


def _refusal(headers: dict[str, str], text: str) -> Answer:
    sent = tuple((name.encode(), value.encode()) for name, value in headers.items())
    return Answer(429, "text/plain", text.encode(), sent)
