"""What kind of value each key of a declaration takes; the checks after this may trust them.

A Registry row was checked when its pack was applied; a trigger's values come from a person.
"""

import difflib
from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, TypeAdapter, ValidationError

from patra_ingest.model.codes import HttpMethod, TimeUnit, UpperBound, WatermarkSource
from patra_ingest.model.records import ChangeRule
from patra_ingest.model.window import parse_duration, parse_instant
from patra_ingest.spec.merge import Merged
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.snapshot import FieldSpec, StopRule


def _duration_seconds(value: object) -> object:
    if isinstance(value, str):
        value = parse_duration(value)
    return value.total_seconds() if isinstance(value, timedelta) else value


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError("is no IANA time zone, for example Europe/Berlin") from None
    return name


def _instant(text: str) -> str:
    parse_instant(text)
    return text


_Seconds = Annotated[float, BeforeValidator(_duration_seconds)]
_Names = dict[str, str]

_SHAPES: dict[str, dict[str, Any]] = {
    "request": {
        "method": HttpMethod,
        "base_url": str,
        "path": str,
        "query": _Names,
        "headers": _Names,
    },
    "http": {
        "connect_timeout_ms": int,
        "read_timeout_ms": int,
        "total_timeout_ms": int,
        "follow_redirects": bool,
        "allow_insecure_http": bool,
    },
    "paging": {
        "type": Literal["OFFSET", "TOKEN"],
        "page_size": int,
        "max_pages": int,
        "initial_token": str,
        "next_token_path": str,
        "total_path": str,
        "stop": list[StopRule],
    },
    "window": {
        "watermark_key": str,
        "watermark_source": WatermarkSource,
        "safety_lag": _Seconds,
        "overlap": _Seconds,
        "max_span": _Seconds,
        "granularity": TimeUnit,
        "upper_bound": UpperBound,
        "initial_from": Annotated[str, AfterValidator(_instant)],
        "zone": Annotated[str, AfterValidator(_zone)],
    },
    "response": {
        "items_path": str,
        "id_path": str,
        "updated_at_path": str,
        "deleted_path": str,
        "client_window": bool,
    },
    "mapping": {"fields": list[FieldSpec], "changed": ChangeRule},
    "retry": {
        "max_attempts": int,
        "initial_delay_ms": int,
        "max_delay_ms": int,
        "multiplier": float,
        "jitter": float,
        "retry_statuses": list[int],
    },
    "rate": {"key": str, "per_second": float, "burst": float, "in_flight": int, "cost": float},
}
_ADAPTERS: dict[str, TypeAdapter[Any]] = {
    f"{group}.{key}": TypeAdapter(shape)
    for group, keys in _SHAPES.items()
    for key, shape in keys.items()
}


def shape(merged: Merged) -> tuple[Merged, list[Problem]]:
    """Return the values in their kinds, and a problem for every key or value that does not fit."""
    values: dict[str, dict[str, Any]] = {group: {} for group in merged.values}
    problems: list[Problem] = []
    for group, keys in merged.values.items():
        for key, value in keys.items():
            adapter = _ADAPTERS.get(f"{group}.{key}")
            if adapter is None:
                problems.append(_unknown(group, key))
                continue
            try:
                values[group][key] = adapter.validate_python(value)
            except ValidationError as error:
                problems.extend(_wrong(f"{group}.{key}", value, error))
    return Merged(values, merged.origins), problems


def _unknown(group: str, key: str) -> Problem:
    near = difflib.get_close_matches(key, _SHAPES[group], n=1)
    remedy = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(_SHAPES[group])}"
    return Problem(f"{group}.{key}", "is not a known key", remedy)


def _wrong(path: str, value: Any, error: ValidationError) -> Iterator[Problem]:
    for detail in error.errors(include_url=False):
        place = ".".join([path, *(str(part) for part in detail["loc"])])
        yield Problem(place, f"{value!r} does not fit", detail["msg"])
