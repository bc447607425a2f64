"""An endpoint as columns of `reg_prov_endpoint_def`, and back. Its policies have their own rows."""

from collections.abc import Mapping
from typing import Any

from patra_ingest.ledger.db import read_json
from patra_ingest.model.codes import Operation
from patra_ingest.registry.codecs import Columns, Row, as_json
from patra_ingest.registry.forms import fields_form, json_form
from patra_ingest.registry.pack import EndpointPart, OperationPart
from patra_ingest.spec.parts import RequestPart

_IN_COLUMNS = ("method", "path", "query", "body")
_NAMES = {
    "page": "page_param_name",
    "size": "page_size_param_name",
    "token": "cursor_param_name",
    "ids": "ids_param_name",
}
_REST = ("partitions", "query", "intended", "changed", "refreshes")


def endpoint_columns(part: EndpointPart, request: RequestPart) -> Columns:
    """Return the columns of an endpoint with the request of one of its operations."""
    said = json_form(part)
    asked = json_form(request)
    names = said.get("names", {})
    auth = said.get("auth", {})
    return {
        "endpoint_usage_code": part.usage.value,
        "http_method_code": asked.get("method", "GET"),
        "path_template": asked.get("path", ""),
        "default_query_params": _tree(asked.get("query")),
        "default_body_payload": _tree(asked.get("body")),
        "request_content_type": _content_type(asked),
        "is_auth_required": int(bool(auth.get("required"))),
        "credential_hint_name": auth.get("use"),
        **{column: names.get(name) for name, column in _NAMES.items()},
        "response_paths": _tree(said["response"]),
        "output_mapping": _tree(said.get("fields")),
        "two_phase": _tree(said.get("detail")),
        "error_rules": _tree(said.get("errors")),
        "partitions": _tree(said.get("cap")),
        "identity": _tree(_identity(said)),
        "extra": _tree(_extra(part, said, asked)),
    }


def _identity(said: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("id", "version", "updated_at")
    found = {key: said["response"][key] for key in keys if key in said["response"]}
    return {**found, **({"changed": said["changed"]} if "changed" in said else {})}


def _extra(part: EndpointPart, said: Mapping[str, Any], asked: Mapping[str, Any]) -> Any:
    rest: dict[str, Any] = {key: said[key] for key in _REST if key in said}
    rest["operations"] = [operation.value for operation in part.operations]
    rest["request"] = {key: value for key, value in asked.items() if key not in _IN_COLUMNS}
    unsaid = [key for key in ("method", "path") if key not in asked]
    offset = said.get("names", {}).get("offset")
    own = said.get("auth", {})
    auth = {key: own[key] for key in ("required", "rotation") if key in own}
    empty = [key for key in ("names", "auth") if key in said and not said[key]]
    listed = {"unsaid": unsaid, "offset": offset, "auth": auth, "empty": empty}
    return {**rest, **{key: value for key, value in listed.items() if value not in (None, [], {})}}


def _content_type(asked: Mapping[str, Any]) -> str | None:
    if "body" in asked:
        return "application/json"
    return "application/x-www-form-urlencoded" if "form" in asked else None


def endpoint_form(row: Row) -> dict[str, Any]:
    """Return the JSON form of the endpoint that a row holds, with its request."""
    extra = read_json(row["extra"]) or {}
    form: dict[str, Any] = {
        "usage": row["endpoint_usage_code"],
        "request": request_form(row),
        "response": read_json(row["response_paths"]),
        "operations": extra.get("operations", [row["task_type"]]),
        **{key: extra[key] for key in _REST if key in extra},
    }
    for key, column in (
        ("fields", "output_mapping"),
        ("detail", "two_phase"),
        ("errors", "error_rules"),
        ("cap", "partitions"),
    ):
        if (found := read_json(row[column])) is not None:
            form[key] = found
    if "fields" in form:
        form["fields"] = fields_form(form["fields"])
    return {**form, **_named(row, extra), **_auth(row, extra)}


def request_form(row: Row) -> dict[str, Any]:
    """Return the JSON form of a row's request."""
    extra = read_json(row["extra"]) or {}
    unsaid = extra.get("unsaid", ())
    form = {
        "method": row["http_method_code"],
        "path": row["path_template"],
        "query": read_json(row["default_query_params"]),
        "body": read_json(row["default_body_payload"]),
    }
    kept = {key: value for key, value in form.items() if value is not None and key not in unsaid}
    return {**kept, **extra.get("request", {})}


def _named(row: Row, extra: Mapping[str, Any]) -> dict[str, Any]:
    names = {name: row[column] for name, column in _NAMES.items() if row[column] is not None}
    if "offset" in extra:
        names["offset"] = extra["offset"]
    return {"names": names} if names or "names" in extra.get("empty", ()) else {}


def _auth(row: Row, extra: Mapping[str, Any]) -> dict[str, Any]:
    auth: dict[str, Any] = dict(extra.get("auth", {}))
    if "required" in auth or row["is_auth_required"]:
        auth["required"] = bool(row["is_auth_required"])
    if row["credential_hint_name"] is not None:
        auth["use"] = row["credential_hint_name"]
    return {"auth": auth} if auth or "auth" in extra.get("empty", ()) else {}


def operation_request(own: OperationPart, part: EndpointPart) -> RequestPart:
    """Return what an operation asks: its own request, or the endpoint's."""
    return own.request or part.request


def serves(row: Row, operation: Operation) -> bool:
    """Return whether an endpoint row is for an operation."""
    if row["scope_code"] == "TASK":
        return bool(row["task_type"] == operation.value)
    return operation.value in (read_json(row["extra"]) or {}).get("operations", ())


def is_silent(row: Row) -> bool:
    """Return whether an endpoint is a DETAIL that only serves others."""
    extra = read_json(row["extra"]) or {}
    return row["endpoint_usage_code"] == "DETAIL" and extra.get("operations") == []


def _tree(value: Any) -> str | None:
    return None if value is None else as_json(value)
