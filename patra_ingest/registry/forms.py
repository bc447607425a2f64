"""The parts of a pack as people write them: short where short says all, and without defaults."""

from typing import Any

from patra_ingest.spec.words import Word

# Keys whose value may be written as its path alone.
_PLACES = frozenset({"next_token", "next_url", "total", "server_date", "release"})


def json_form(part: Word) -> dict[str, Any]:
    """Return a part as plain JSON; reading it again gives an equal part."""
    values: dict[str, Any] = part.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return {key: _short(key, value) for key, value in values.items()}


def fields_form(fields: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a list of fields as the mapping that a pack has: name, then path or more."""
    return {field["name"]: _field(field) for field in fields}


def _field(field: dict[str, Any]) -> Any:
    rest = {key: value for key, value in field.items() if key != "name"}
    return rest["path"] if set(rest) == {"path"} else rest


def _short(key: str, value: Any) -> Any:
    if key in _PLACES and isinstance(value, dict) and set(value) == {"path"}:
        return value["path"]
    if key in ("query", "first", "next", "form") and isinstance(value, dict):
        return {name: _param(param) for name, param in value.items()}
    return value


def _param(param: Any) -> Any:
    is_plain = isinstance(param, dict) and set(param) == {"value"}
    return param["value"] if is_plain else param


def pack_form(pack: Any) -> dict[str, Any]:
    """Return a whole pack as the mapping that its file would hold."""
    form = json_form(pack)
    form.pop("effective_from", None)
    shown = {key: _part(key, form[key]) for key in _ORDER if key in form}
    shown["endpoints"] = {name: _endpoint(part) for name, part in form["endpoints"].items()}
    plain: dict[str, Any] = _whole(shown)
    return plain


_ORDER = (
    *("provenance", "auth", "http", "rate", "retry", "batching", "paging", "window"),
    *("planning", "operations", "expressions"),
)
# As a person explains an endpoint: what it is, what is asked, how it pages, what comes back.
_ENDPOINT_ORDER = (
    *("usage", "operations", "request", "names", "paging", "window", "cap", "partitions"),
    *("response", "changed", "fields", "errors", "detail", "refreshes", "batching", "auth", "http"),
    *("rate", "retry", "planning", "query", "schedule", "intended"),
)
_DEFAULT_OPERATIONS: dict[str, Any] = {"HARVEST": {}, "BACKFILL": {}}


def _endpoint(part: dict[str, Any]) -> dict[str, Any]:
    form = {key: _part(key, value) for key, value in part.items()}
    operations = form.get("operations", {})
    if operations == _DEFAULT_OPERATIONS and form.get("usage", "SEARCH") == "SEARCH":
        form.pop("operations")
    elif operations and not any(operations.values()):
        form["operations"] = list(operations)
    if "fields" in form:
        form["fields"] = fields_form(form["fields"])
    return {key: form[key] for key in _ENDPOINT_ORDER if key in form}


def _part(key: str, value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if key == "operations":
        return {
            name: {group: _part(group, own) for group, own in (parts or {}).items()}
            for name, parts in value.items()
        }
    if key == "schedule":
        return {name: own["cron"] if set(own) == {"cron"} else own for name, own in value.items()}
    if key == "expressions":
        return _book(value)
    if key == "auth":
        return {**value, **_typed_first(value.get("credentials", {}))}
    return {inner: _short(inner, own) for inner, own in value.items()}


def _typed_first(credentials: dict[str, Any]) -> dict[str, Any]:
    typed = {name: {"type": own["type"], **own} for name, own in credentials.items()}
    return {"credentials": typed} if typed else {}


def _whole(tree: Any) -> Any:
    """Write 3.0 as 3: it reads better, and it is the same."""
    if isinstance(tree, dict):
        return {key: _whole(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_whole(value) for value in tree]
    return int(tree) if isinstance(tree, float) and tree.is_integer() else tree


def _book(book: dict[str, Any]) -> dict[str, Any]:
    params = book.get("params", [])
    if len({param["key"] for param in params}) != len(params):
        return book
    named = {}
    for param in params:
        rest = {key: value for key, value in param.items() if key != "key"}
        named[param["key"]] = rest["name"] if set(rest) == {"name"} else rest
    return {**book, **({"params": named} if named else {})}
