"""Valid by default, one keyword per difference."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import instant_text
from patra_ingest.ledger.outbox import Change
from patra_ingest.model.codes import Operation, SliceStatus, TimeUnit
from patra_ingest.model.records import NewRecord
from patra_ingest.model.window import Window, parse_instant
from patra_ingest.planner.trigger import Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.registry.pack import Pack, parse_pack
from patra_ingest.registry.pack_file import PackText
from patra_ingest.spec.compile import compile_spec
from patra_ingest.spec.declaration import GROUPS, Declaration, Layer, Overrides
from patra_ingest.spec.platform import UNITS
from patra_ingest.spec.snapshot import SpecSnapshot, WindowSpec
from patra_ingest.transport.messages import Response

START = datetime(2025, 9, 1, tzinfo=UTC)
NOON = datetime(2025, 9, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)

_DECLARED: Mapping[str, Mapping[str, Any]] = {
    "request": {
        "base_url": "https://api.example.org",
        "path": "/works",
        "query": {
            "from": "${window.from|iso}",
            "to": "${window.last|iso}",
            "cursor": "${page.token}",
        },
    },
    "paging": {
        "type": "TOKEN",
        "page_size": 50,
        "size_param": "rows",
        "next_token": "$.next",
        "total": "$.total",
        "stop": ["NO_TOKEN", "EMPTY_PAGE"],
    },
    "window": {"zone": "UTC"},
    "response": {"items": "$.items", "id": "$.id", "updated_at": "$.updated"},
    "endpoint": {"fields": [{"name": "title", "path": "$.title", "required": True}]},
    "rate": {"key": "example"},
}


def day(number: int) -> datetime:
    """Return the midnight `number` days after the first of September 2025."""
    return START + number * DAY


def days(first: int, past: int) -> Window:
    """Return the window of the days `[first, past)`."""
    return Window(day(first), day(past))


def a_declaration(**groups: Mapping[str, Any]) -> Declaration:
    """Return a declaration that compiles; a group's values replace the valid ones, None drops."""
    values = {name: {**_DECLARED.get(name, {}), **groups.get(name, {})} for name in GROUPS}
    return Declaration(
        "example",
        "works",
        Operation.HARVEST,
        (Layer("endpoint works", values, "endpoints.works."),),
    )


def a_spec(**groups: Mapping[str, Any]) -> SpecSnapshot:
    """Return a compiled spec; a group's values are laid over the valid ones."""
    return compile_spec(a_declaration(**groups), Overrides()).spec


def a_window(**values: Any) -> WindowSpec:
    """Return a window spec with these values, also ones that no pack may declare; seconds count."""
    for key in ("safety_lag", "overlap", "max_span", "min_span"):
        if key in values:
            values[key] = timedelta(seconds=values[key])
    if "granularity" in values:
        values["granularity"] = UNITS[TimeUnit(values["granularity"])]
    if "initial_from" in values:
        values["initial_from"] = parse_instant(values["initial_from"])
    return a_spec().window.model_copy(update=values)


def an_item(name: object = "a", updated: object = "2025-09-02T10:00:00Z", **more: Any) -> Any:
    """Return an item that `a_spec` can map."""
    return {"id": name, "updated": updated, "title": f"On {name}", **more}


def a_record(name: str = "a", updated: datetime | None = NOON, content: str = "1") -> NewRecord:
    """Return a mapped record; `content` stands for all it says."""
    return NewRecord(name, updated, content * 64, False, b'{"title": "x"}', b'{"id": "x"}')


def a_change(
    name: str = "a",
    kind: Literal["UPSERT", "DELETE"] = "UPSERT",
    updated: datetime | None = NOON,
    content: str = "1",
    **more: str,
) -> Change:
    """Return what became of a record, as others are told of it."""
    owner = {"provenance": "example", "endpoint": "works", **more}
    at = None if updated is None else instant_text(updated)
    return Change(
        **owner, provider_id=name, kind=kind, source_updated_at=at, content_hash=content * 64
    )


def a_response(body: bytes = b"{}", status: int = 200, **headers: str) -> Response:
    """Return an answer of the upstream; `retry_after` is the header retry-after."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, named, body, 0.1, "https://api.example.org/works", NOON)


def a_trigger(endpoint: str | None = "works", start: Any = None, end: Any = None, **more: Any):
    """Return a trigger for the source of `a_pack`."""
    overrides = Overrides(more.pop("values", {}), more.pop("params", {}))
    return Trigger("example", endpoint, asked=Asked(start, end), overrides=overrides, **more)


def pack_text(url: str = "http://127.0.0.1:9", **endpoints: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a pack file holds: `works` pages by offset, one slice a day, one day of lag."""
    return {
        "provenance": {"code": "example", "name": "Example", "base_url": url},
        "http": {"allow_insecure_http": True},
        "rate": {"key": "example", "per_second": 1000, "burst": 100},
        "retry": {"max_attempts": 2, "initial_delay": "1ms"},
        "endpoints": endpoints or {"works": an_endpoint()},
    }


def an_endpoint(**differences: Any) -> dict[str, Any]:
    """Return an endpoint of a pack; a part is laid over the valid one."""
    endpoint: dict[str, Any] = {
        "request": {
            "path": "/works",
            "query": {
                "from": "${window.from|iso}",
                "to": "${window.last|iso}",
                "offset": "${page.offset}",
            },
        },
        "paging": {
            "type": "OFFSET",
            "page_size": 10,
            "size_param": "rows",
            "total": "$.total",
            "stop": ["EMPTY_PAGE", "SHORT_PAGE"],
        },
        "window": {"safety_lag": "1d", "max_span": "1d"},
        "response": {"items": "$.items", "id": "$.id", "updated_at": "$.updated"},
        "changed": "NEWER_OR_HASH",
        "fields": {"title": {"path": "$.title", "required": True}},
    }
    for part, values in differences.items():
        known = endpoint.get(part)
        endpoint[part] = {**known, **values} if isinstance(known, dict) else values
    return endpoint


def by_token(**differences: Any) -> dict[str, Any]:
    """Return an endpoint that pages by token; `works` of the same upstream otherwise."""
    query = {
        "from": "${window.from|iso}",
        "to": "${window.last|iso}",
        "token": "${page.token}",
    }
    paging = {"type": "TOKEN", "next_token": "$.next", "stop": ["NO_TOKEN"]}
    return an_endpoint(
        request={"query": query}, paging={**paging, **differences.pop("paging", {})}, **differences
    )


def a_pack(url: str = "http://127.0.0.1:9", **endpoints: Mapping[str, Any]) -> Pack:
    """Return the pack of `pack_text`, read."""
    return parse_pack(PackText("the test's pack", pack_text(url, **endpoints), {}))


def a_task(number: int = 1, **columns: Any) -> dict[str, Any]:
    """Return the row of a queued task, the only one of its slice."""
    return {
        "schedule_instance_id": 1,
        "plan_id": 1,
        "slice_id": number,
        "provenance_code": "example",
        "endpoint_name": "works",
        "operation_code": "HARVEST",
        "params": {},
        "idempotent_key": f"{number:064d}",
        "expr_hash": "e" * 64,
        "priority": 5,
        "status_code": "QUEUED",
        "scheduled_at": None,
        **columns,
    }


def set_slice(tx: Connection, slice_id: int, status: SliceStatus) -> None:
    """Put a slice into a status, whatever its lifecycle says."""
    query = text("UPDATE ing_plan_slice SET status_code = :status WHERE id = :id")
    tx.execute(query, {"id": slice_id, "status": status.value})
