"""How Crossref writes values in JSON: escaped slashes, ASCII only, dates in three forms. Pure."""

import json
from datetime import UTC, datetime


def to_json(value: object) -> bytes:
    """Write any value with `/` escaped, which only a real JSON parser undoes."""
    return json.dumps(value, separators=(",", ":")).replace("/", "\\/").encode()


def members(value: dict[str, object]) -> bytes:
    """Write an object without its braces and with a comma at the end, to be joined with others."""
    return to_json(value)[1:-1] + b","


def iso_second(second: int) -> str:
    """Write a second counted from 1970 as `2025-01-31T23:59:59Z`."""
    return datetime.fromtimestamp(second, UTC).isoformat()[:19] + "Z"


def date_parts(at: datetime, precision: int) -> dict[str, object]:
    """Write a partial date of one to three parts."""
    return {"date-parts": [[at.year, at.month, at.day][:precision]]}


def stamp(at: datetime) -> dict[str, object]:
    """Write an instant as Crossref does: date parts, ISO text and milliseconds."""
    second = int(at.timestamp())
    return {**date_parts(at, 3), "date-time": iso_second(second), "timestamp": second * 1000}
