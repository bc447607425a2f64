"""What the Registry says of one endpoint at one instant, as a declaration.

Eight queries, whatever the size of the Registry; one less while the dictionary is remembered.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError
from sqlalchemy import Connection, text

from patra_ingest.errors import CompileError, UnknownName
from patra_ingest.expr.query_rules import QueryBook
from patra_ingest.ledger.db import instant_text, read_json
from patra_ingest.model.codes import Operation
from patra_ingest.registry import books, credentials
from patra_ingest.registry.code_book import CodeBook, builtin_code_book, read_code_book
from patra_ingest.registry.codecs import Row
from patra_ingest.registry.dictionary_check import checked
from patra_ingest.registry.endpoints import endpoint_form, is_silent, serves
from patra_ingest.registry.history import get_provenance, rows_at
from patra_ingest.registry.layouts import DIMENSIONS
from patra_ingest.registry.pack import EndpointPart
from patra_ingest.registry.rows import ENDPOINT
from patra_ingest.registry.select import select_dimensions
from patra_ingest.spec.declaration import (
    PARTS,
    Declaration,
    Layer,
    NamedCredential,
    said,
)
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.shapes import problem_of

_ENDPOINT_WORDS = (
    *("usage", "fields", "changed", "errors", "refreshes", "partitions", "query", "intended"),
)
_ENDPOINT_PARTS = ("request", "names", "auth", "cap", "response", "detail")


_SILENT = Operation.UPDATE  # what an endpoint that only serves others is compiled as


@dataclass(frozen=True)
class EndpointName:
    """One thing that can be planned."""

    provenance: str
    endpoint: str
    operation: Operation
    is_silent: bool = False  # it only serves other endpoints; nobody plans it


def read_declaration(
    tx: Connection,
    provenance: str,
    endpoint: str | None,
    operation: Operation,
    at: datetime,
    codes: CodeBook | None = None,
) -> Declaration:
    """Return the declaration valid at `at`; without `endpoint`, its first by name."""
    return read_named(tx, EndpointName(provenance, endpoint or "", operation), at, codes)


def require_endpoint(tx: Connection, name: EndpointName, at: datetime) -> None:
    """Raise UnknownName, which lists those there are, for what nobody can plan at `at`."""
    source = get_provenance(tx, name.provenance, at)
    rows = rows_at(tx, ENDPOINT, source["id"], at)
    _get_endpoint(source, rows, name.endpoint or None, name.operation)


def read_named(
    tx: Connection, name: EndpointName, at: datetime, codes: CodeBook | None
) -> Declaration:
    """Return the declaration of what was listed; a silent endpoint is asked for ids, as UPDATE."""
    operation, endpoint = name.operation, name.endpoint or None
    source = get_provenance(tx, name.provenance, at)
    rows = rows_at(tx, ENDPOINT, source["id"], at)
    silent = [row for row in rows if row["endpoint_name"] == endpoint and is_silent(row)]
    if name.is_silent and silent:
        chosen = silent[0]
    else:
        chosen = _get_endpoint(source, rows, endpoint, operation)
    detail = _find_detail(rows, chosen, operation)
    names = [row["endpoint_name"] for row in (chosen, detail) if row is not None]
    dimensions = select_dimensions(tx, source["id"], names, operation, at)
    known = codes or read_code_book(tx)
    if not known.types:  # a ledger that was never told its codes is held against ours
        known = builtin_code_book()
    every = rows_at(tx, credentials.TABLE, source["id"], at)
    reader = _Reader(source, operation, at, known, every, _endpoint_names(rows))
    described = None if detail is None else reader.declaration(detail, dimensions, None, None)
    book = _read_book(tx, source, at)
    return reader.declaration(chosen, dimensions, described, book)


@dataclass(frozen=True)
class _Reader:
    """What the declarations of one source and its detail endpoint have in common."""

    source: Row
    operation: Operation
    at: datetime
    codes: CodeBook
    credentials: list[Row]
    endpoints: tuple[str, ...]

    def declaration(
        self,
        row: Row,
        dimensions: Mapping[str, Mapping[str, Row]],
        detail: Declaration | None,
        book: QueryBook | None,
    ) -> Declaration:
        name, code = row["endpoint_name"], self.source["provenance_code"]
        problems: list[Problem] = []
        provenance = Layer(
            f"provenance {code}",
            {
                "request": {"base_url": self.source["base_url_default"]},
                "window": {"zone": self.source["timezone_default"]},
                "rate": {"key": code},
            },
            "provenance.",
        )
        auth = Layer(provenance.origin, {"auth": books.settings_of(self.source).get("auth", {})})
        endpoint = _endpoint_layers(checked(ENDPOINT, row, self.codes, problems))
        layers = [provenance, auth, *endpoint]
        for group, chosen in dimensions.get(name, {}).items():
            table = DIMENSIONS[group].table
            layers.append(_dimension_layer(group, checked(table, chosen, self.codes, problems)))
        return Declaration(
            code,
            name,
            self.operation,
            tuple(layers),
            tuple(self._candidates(name)),
            book,
            detail,
            self.endpoints,
            tuple(problems),
        )

    def _candidates(self, endpoint: str) -> Iterable[NamedCredential]:
        """Yield the credentials an endpoint may use, in the order in which they are tried."""
        usable = [
            row
            for row in self.credentials
            if row["endpoint_name"] in (None, endpoint)
            and row["task_type"] in (None, self.operation.value)
        ]
        usable.sort(
            key=lambda row: (
                row["endpoint_name"] is None,
                row["task_type"] is None,
                not row["is_default_preferred"],
                row["id"],
            )
        )
        for row in usable:
            bound = row["endpoint_name"]
            where = f"endpoints.{bound}.auth.credentials" if bound else "auth.credentials"
            yield NamedCredential(row["credential_name"], credentials.credential_of(row), where)


def list_endpoints(
    tx: Connection, at: datetime, operation: Operation | None = None
) -> list[EndpointName]:
    """Return everything that can be planned at `at`, in order of name."""
    found = tx.execute(
        text(
            "SELECT p.provenance_code, e.* FROM reg_prov_endpoint_def e"
            " JOIN reg_provenance p ON p.id = e.provenance_id"
            " WHERE p.deleted = 0 AND p.is_active = 1 AND e.deleted = 0"
            " AND e.lifecycle_status_code = 'ACTIVE' AND e.effective_from <= :at"
            " AND (e.effective_to IS NULL OR e.effective_to > :at)"
            " ORDER BY p.provenance_code, e.endpoint_name, e.id"
        ),
        {"at": instant_text(at)},
    ).mappings()
    rows = [dict(row) for row in found]
    return list(
        dict.fromkeys(
            EndpointName(row["provenance_code"], row["endpoint_name"], each, is_silent(row))
            for row in rows
            for each in ((operation,) if operation else Operation)
            if serves(row, each) or (operation is None and each == _SILENT and is_silent(row))
        )
    )


def _endpoint_layers(row: Row) -> tuple[Layer, Layer]:
    name, where = row["endpoint_name"], f"endpoints.{row['endpoint_name']}."
    form = {**endpoint_form(row), "operations": {}}
    try:
        part = EndpointPart.model_validate(form)
    except ValidationError as error:
        details = error.errors(include_url=False)
        reasons = [str(problem_of(detail, where[:-1], EndpointPart)) for detail in details]
        raise CompileError(f"Row #{row['id']} of {ENDPOINT}", reasons) from error
    values = {group: said(own) for group in _ENDPOINT_PARTS if (own := getattr(part, group))}
    request = {"request": values.pop("request", {})}
    values["endpoint"] = {key: getattr(part, key) for key in _ENDPOINT_WORDS}
    own = where + (f"operations.{row['task_type']}." if row["task_type"] else "")
    return Layer(f"endpoint {name}", values, where), Layer(f"endpoint {name}", request, own)


def _dimension_layer(group: str, row: Row) -> Layer:
    layout = DIMENSIONS[group]
    # A row by hand may hold what no pack could say: the compiler names it with its place.
    try:
        values = said(PARTS[group].model_validate(layout.read(row)))
    except ValidationError:
        values = layout.read(row)
    where = "" if row["endpoint_name"] is None else f"endpoints.{row['endpoint_name']}."
    where += "" if row["task_type"] is None else f"operations.{row['task_type']}."
    return Layer(f"{layout.table} #{row['id']}", {group: values}, where)


def _get_endpoint(source: Row, rows: list[Row], endpoint: str | None, operation: Operation) -> Row:
    serving = sorted(
        (row for row in rows if serves(row, operation)),
        key=lambda row: (row["endpoint_name"], row["scope_code"] != "TASK"),
    )
    for row in serving:
        if endpoint is None or row["endpoint_name"] == endpoint:
            return row
    listed = ", ".join(dict.fromkeys(row["endpoint_name"] for row in serving))
    others = [one.value for one in Operation if any(serves(row, one) for row in rows)]
    raise UnknownName(
        f"{source['provenance_code']} has no endpoint {endpoint!r} for {operation.value}."
        if endpoint
        else f"{source['provenance_code']} has no endpoint for {operation.value}.",
        f"Its endpoints for {operation.value}: {listed}."
        if listed
        else f"It can be asked for: {', '.join(others) or 'nothing'} (--op).",
    )


def _find_detail(rows: list[Row], chosen: Row, operation: Operation) -> Row | None:
    name = (read_json(chosen["two_phase"]) or {}).get("endpoint")
    own = [row for row in rows if row["endpoint_name"] == name]
    fitting = [row for row in own if row["task_type"] in (None, operation.value)]
    fitting.sort(key=lambda row: row["task_type"] is None)
    return fitting[0] if fitting else None


def _endpoint_names(rows: Iterable[Row]) -> tuple[str, ...]:
    return tuple(sorted({row["endpoint_name"] for row in rows}))


def _read_book(tx: Connection, source: Row, at: datetime) -> QueryBook | None:
    query = text(
        "SELECT f.data_type_code, f.display_name, f.description, f.cardinality_code, f.exposable,"
        f" c.* FROM {books.CAPABILITY} c LEFT JOIN {books.FIELD} f"
        " ON f.field_key = c.field_key AND f.deleted = 0"
        " WHERE c.provenance_id = :id AND c.deleted = 0 AND c.effective_from <= :at"
        " AND (c.effective_to IS NULL OR c.effective_to > :at)"
        " ORDER BY c.effective_from DESC, c.id DESC"
    )
    found = tx.execute(query, {"id": source["id"], "at": instant_text(at)}).mappings()
    able = [dict(row) for row in found]
    fields = {row["field_key"]: books.field_of(row) for row in able if row["data_type_code"]}
    rules, params = (rows_at(tx, table, source["id"], at) for table in (books.RULE, books.PARAM))
    return books.read_book(
        books.settings_of(source).get("expressions", {}), fields, able, rules, params
    )
