"""The pack language: one YAML file describes one provenance.

The models below are its whole grammar; an unknown key is refused, everything else has a default.
"""

import difflib
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from patra_ingest.errors import PackError
from patra_ingest.model.codes import (
    EndpointUsage,
    HttpMethod,
    Operation,
    TimeUnit,
    UpperBound,
    WatermarkSource,
)
from patra_ingest.model.records import ChangeRule
from patra_ingest.model.window import parse_duration, parse_instant
from patra_ingest.spec.secrets import find_written_secrets
from patra_ingest.spec.snapshot import StopRule

_MAX_BYTES = 1_000_000
Duration = Annotated[
    timedelta, BeforeValidator(lambda v: parse_duration(v) if isinstance(v, str) else v)
]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ProvenancePart(_Part):
    """Who the source is."""

    code: Name
    name: str
    base_url: str
    timezone: str = "UTC"
    docs_url: str | None = None


class HttpPart(_Part):
    """How the source is spoken to."""

    headers: dict[str, str] = {}
    connect_timeout: Duration | None = None
    read_timeout: Duration | None = None
    total_timeout: Duration | None = None
    follow_redirects: bool = False
    allow_insecure_http: bool = False


class RatePart(_Part):
    """What the source allows, under a name that several endpoints may share."""

    key: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.:-]{0,127}$")]
    per_second: float
    burst: int = 1
    in_flight: int | None = None
    cost: float = 1.0


class RetryPart(_Part):
    """How often and how slowly we ask again."""

    max_attempts: int | None = None
    initial_delay: Duration | None = None
    max_delay: Duration | None = None
    multiplier: float | None = None
    jitter: float | None = None
    statuses: list[int] | None = None


class RequestPart(_Part):
    """The request template."""

    method: HttpMethod = HttpMethod.GET
    path: str
    query: dict[str, str] = {}


class PagingPart(_Part):
    """How the endpoint pages and what ends it."""

    type: Literal["OFFSET", "TOKEN"]
    page_size: int | None = None
    max_pages: int | None = None
    initial_token: str | None = None
    next_token: str | None = None
    total: str | None = None
    stop: list[StopRule] | None = None


class WindowPart(_Part):
    """How the endpoint filters by time."""

    watermark_key: str | None = None
    watermark_source: WatermarkSource = WatermarkSource.WINDOW_END
    safety_lag: Duration | None = None
    overlap: Duration | None = None
    max_span: Duration | None = None
    granularity: TimeUnit = TimeUnit.SECOND
    upper_bound: UpperBound = UpperBound.INCLUSIVE
    initial_from: Annotated[str, BeforeValidator(str)] | None = None


class ResponsePart(_Part):
    """Where things are in a response."""

    items: str
    id: str
    updated_at: str | None = None
    deleted: str | None = None
    client_window: bool = False


class FieldPart(_Part):
    """An output field that must be present."""

    path: str
    required: bool = False


class EndpointPart(_Part):
    """One callable of the source."""

    usage: EndpointUsage = EndpointUsage.SEARCH
    operations: list[Literal[Operation.HARVEST]] = [Operation.HARVEST]
    request: RequestPart
    paging: PagingPart
    window: WindowPart = WindowPart()
    response: ResponsePart
    changed: ChangeRule = ChangeRule.NEWER
    fields: dict[str, str | FieldPart] = {}


class Pack(_Part):
    """One source, whole."""

    provenance: ProvenancePart
    http: HttpPart = HttpPart()
    rate: RatePart
    retry: RetryPart = RetryPart()
    endpoints: dict[Name, EndpointPart] = Field(min_length=1)


def read_pack(path: Path) -> Pack:
    """Read and check one pack file; PackError says what is wrong, where, and the remedy."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise PackError(f"{path} is larger than {_MAX_BYTES} bytes.", "A pack is a short text.")
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PackError(
            f"The pack {path} cannot be read ({error.strerror}).", "Check the path."
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise PackError(f"{path} is not valid YAML ({reason}).", "Correct the file.") from error
    return parse_pack(loaded, str(path))


def parse_pack(loaded: Any, where: str) -> Pack:
    """Check the content of one pack."""
    if not isinstance(loaded, dict):
        raise PackError(
            f"{where} holds no mapping.", "A pack starts with `provenance:` and `endpoints:`."
        )
    try:
        pack = Pack.model_validate(loaded)
        for endpoint in pack.endpoints.values():
            if endpoint.window.initial_from:
                parse_instant(endpoint.window.initial_from)
    except ValidationError as error:
        reasons = "; ".join(_reason(detail) for detail in error.errors())
        raise PackError(f"{where} does not fit the pack language: {reasons}.", "Correct it.") from (
            error
        )
    except ValueError as error:
        raise PackError(f"{where}: {error}.", "Correct it.") from error
    for name, endpoint in pack.endpoints.items():
        request = {
            "base_url": pack.provenance.base_url,
            "query": endpoint.request.query,
            "headers": pack.http.headers,
        }
        for problem in find_written_secrets(request):
            raise PackError(
                f"{where}, endpoint {name}: {problem.path} {problem.reason}.",
                "A credential is never written into a pack.",
            )
    return pack


def _reason(detail: Any) -> str:
    path = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(detail["loc"][-1]), _known_keys(), n=1)
        hint = f", did you mean {near[0]}?" if near else ""
        return f"{path} is not a known key{hint}"
    return f"{path}: {detail['msg']}"


def _known_keys() -> list[str]:
    parts: list[type[BaseModel]] = [Pack, EndpointPart, *_Part.__subclasses__()]
    return sorted({name for part in parts for name in part.model_fields})
