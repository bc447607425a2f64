"""The rows of a source become a pack again: what `show` prints and `diff` compares with."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import yaml
from sqlalchemy import Connection, text

from patra_ingest.errors import UnknownName
from patra_ingest.registry import books, credentials
from patra_ingest.registry.codecs import Row
from patra_ingest.registry.endpoints import endpoint_form, request_form
from patra_ingest.registry.forms import pack_form
from patra_ingest.registry.history import get_provenance, rows_at
from patra_ingest.registry.layouts import DIMENSIONS
from patra_ingest.registry.pack import Pack
from patra_ingest.registry.rows import ENDPOINT, KEYS, SCHEDULE
from patra_ingest.spec.words import shown_instant


def read_source(tx: Connection, code: str, at: datetime) -> Pack:
    """Return the pack that says what the Registry says of a source at `at`."""
    source = get_provenance(tx, code, at)
    form: dict[str, Any] = {"provenance": _provenance(source)}
    kept = books.settings_of(source)
    if "auth" in kept:
        form["auth"] = dict(kept["auth"])
    endpoints = _endpoints(_chosen(tx, ENDPOINT, source["id"], at))
    if not endpoints:
        raise UnknownName(
            f"{source['provenance_code']} was not in the Registry at {shown_instant(at)}.",
            "Choose another instant, or apply its pack.",
        )
    form["endpoints"] = endpoints
    for group, layout in DIMENSIONS.items():
        for row in _chosen(tx, layout.table, source["id"], at):
            _home(form, row)[group] = layout.read(row)
    for row in _chosen(tx, SCHEDULE, source["id"], at):
        endpoints[row["endpoint_name"]].setdefault("schedule", {})[row["task_type"]] = _cron(row)
    for row in _chosen(tx, credentials.TABLE, source["id"], at):
        auth = _home(form, row).setdefault("auth", {})
        found = credentials.credential_of(row).model_dump(mode="json", exclude_none=True)
        auth.setdefault("credentials", {})[row["credential_name"]] = found
    book = books.read_book(
        kept.get("expressions", {}),
        read_fields(tx),
        *(
            _chosen(tx, table, source["id"], at)
            for table in (books.CAPABILITY, books.RULE, books.PARAM)
        ),
    )
    if book is not None:
        form["expressions"] = book
    return Pack.model_validate(form)


def pack_text(pack: Pack) -> str:
    """Write a pack as the YAML that people edit."""
    return yaml.dump(
        pack_form(pack),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=100,
        default_flow_style=False,
    )


class _Dumper(yaml.SafeDumper):
    """Writes what our reader reads, the way people write it.

    Text that looks like a number stands in quotes, a list of plain values on one line.
    """

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists, too."""
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: object) -> bool:
        """Write everything out: what is shown is read by people."""
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    try:
        float(text)
    except ValueError:
        return dumper.represent_str(text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'")


def _list(dumper: _Dumper, items: list[Any]) -> yaml.SequenceNode:
    short = not any(isinstance(item, dict | list) for item in items)
    few = sum(len(str(item)) for item in items) < _ONE_LINE
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=short and few)


_ONE_LINE = 60
_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)


def read_fields(tx: Connection) -> dict[str, Any]:
    """Return every field of the shared dictionary, by key."""
    query = text(f"SELECT * FROM {books.FIELD} WHERE deleted = 0 ORDER BY field_key")
    return {row["field_key"]: books.field_of(dict(row)) for row in tx.execute(query).mappings()}


def _chosen(tx: Connection, table: str, source: int, at: datetime) -> list[Row]:
    """Return one row per dimension, in the order in which they were written."""
    newest: dict[tuple[Any, ...], Row] = {}
    for row in rows_at(tx, table, source, at):
        newest.setdefault(tuple(row[name] for name in KEYS[table]), row)
    return sorted(newest.values(), key=lambda row: int(row["id"]))


def _provenance(row: Row) -> dict[str, Any]:
    form = {
        "code": row["provenance_code"],
        "name": row["provenance_name"],
        "base_url": row["base_url_default"],
        "timezone": row["timezone_default"],
        "docs_url": row["docs_url"],
        "evidence": books.settings_of(row).get("evidence"),
    }
    return {key: value for key, value in form.items() if value is not None}


def _endpoints(rows: Iterable[Row]) -> dict[str, dict[str, Any]]:
    endpoints: dict[str, dict[str, Any]] = {}
    ordered = sorted(rows, key=lambda row: (row["scope_code"] != "SOURCE", row["id"]))
    for row in ordered:
        name = row["endpoint_name"]
        if name not in endpoints:
            form = endpoint_form(row)
            form["operations"] = {operation: {} for operation in form["operations"]}
            endpoints[name] = form
        elif row["task_type"]:
            own = endpoints[name]["operations"].setdefault(row["task_type"], {})
            own["request"] = request_form(row)
    return endpoints


def _home(form: dict[str, Any], row: Row) -> dict[str, Any]:
    """Return the part of the pack that a row belongs to."""
    endpoint, operation = row["endpoint_name"], row["task_type"]
    home: dict[str, Any] = form if endpoint is None else form["endpoints"].setdefault(endpoint, {})
    if operation is None:
        return home
    own: dict[str, Any] = home.setdefault("operations", {}).setdefault(operation, {})
    return own


def _cron(row: Row) -> dict[str, Any]:
    return {"cron": row["cron"], "enabled": bool(row["is_enabled"])}
