"""When an endpoint is asked: five fields, as cron writes them."""

import re
from typing import Annotated

from pydantic import AfterValidator

_MONTHS = "JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC"
_CRON = (
    *((0, 59, ""), (0, 23, ""), (1, 31, ""), (1, 12, _MONTHS)),
    (0, 7, "SUN|MON|TUE|WED|THU|FRI|SAT"),
)


def _cron(text: str) -> str:
    """Require five fields, each with numbers or names that its part of a date can have."""
    fields = text.split()
    if len(fields) != len(_CRON):
        raise ValueError("a cron expression has five fields: minute hour day month weekday")
    for field, (lowest, highest, names) in zip(fields, _CRON, strict=True):
        known = f"\\d{{1,2}}|{names}" if names else "\\d{1,2}"
        one = rf"(?:\*|(?:{known})(?:-(?:{known}))?)(?:/[1-9]\d?)?"
        fits = re.fullmatch(rf"{one}(?:,{one})*", field, re.ASCII | re.IGNORECASE)
        numbers = [int(number) for number in re.findall(r"(?<![/\d])\d+", field)]
        if not fits or any(not lowest <= number <= highest for number in numbers):
            raise ValueError(f"{field!r:.20} is no field of a cron expression")
    return text


Cron = Annotated[str, AfterValidator(_cron)]
