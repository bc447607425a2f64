"""A query book as rows of the expression tables, and back.

The fields of `reg_expr_field_dict` are shared by all sources: a pack may add one, or repeat one
as it is; it may not change what a field means to others.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from patra_ingest.expr.query_rules import Capability, ParamRule, QueryBook, QueryField, RenderRule
from patra_ingest.ledger.db import instant_text, read_json
from patra_ingest.model.window import parse_instant
from patra_ingest.registry.codecs import Columns, Layout, Row, as_json, flag, plain, tree
from patra_ingest.spec.policies import AuthPart

FIELD = "reg_expr_field_dict"
CAPABILITY = "reg_prov_expr_capability"
RULE = "reg_prov_expr_render_rule"
PARAM = "reg_prov_api_param_map"
_SETTINGS = ("syntax", "everything", "max_query_length")


def _limits(values: Mapping[str, Any]) -> Columns:
    """Return the limits in the columns of their kind; `extra` keeps them as they were written."""
    kinds = {"DATE": "date", "DATETIME": "datetime", "NUMBER": "number"}
    columns: Columns = {f"{kind}_{end}": None for kind in kinds.values() for end in ("min", "max")}
    kind = kinds.get(values.get("range", "NONE"))
    for end in ("min", "max"):
        if kind and end in values:
            limit = values[end]
            columns[f"{kind}_{end}"] = (
                instant_text(parse_instant(limit)) if kind == "datetime" else limit
            )
    return columns


_CAPABILITY = Layout(
    CAPABILITY,
    (
        tree("ops", "ops"),
        tree("negatable_ops", "negatable_ops"),
        flag("supports_not", "supports_not", True),
        tree("matches", "term_matches"),
        flag("case_sensitive", "term_case_sensitive_allowed", False),
        flag("allow_blank", "term_allow_blank", False),
        plain("min_length", "term_min_len", 0),
        plain("max_length", "term_max_len", 0),
        plain("pattern", "term_pattern"),
        plain("in_max", "in_max_size", 0),
        flag("in_case_sensitive", "in_case_sensitive_allowed", False),
        plain("range", "range_kind_code", "NONE"),
        flag("open_start", "range_allow_open_start", True),
        flag("open_end", "range_allow_open_end", True),
        flag("exists", "exists_supported", False),
        tree("token_kinds", "token_kinds"),
        plain("token_pattern", "token_value_pattern"),
    ),
    "extra",
    _limits,
)
_RULE = Layout(
    RULE,
    (
        plain("field", "field_key"),
        plain("op", "op_code"),
        plain("match", "match_type_code"),
        flag("negated", "negated"),
        plain("value_type", "value_type_code"),
        plain("emit", "emit_type_code", "QUERY"),
        plain("template", "template"),
        plain("item_template", "item_template"),
        plain("joiner", "joiner"),
        flag("wrap_group", "wrap_group", False),
        tree("params", "params"),
        plain("function", "fn_code"),
    ),
    "extra",
)
_PARAM = Layout(
    PARAM,
    (
        plain("key", "std_key"),
        plain("name", "provider_param_name"),
        plain("operation", "operation_code", "SEARCH"),
        plain("endpoint", "endpoint_name"),
        plain("transform", "transform_code"),
        plain("location", "location"),
        plain("default", "default_value"),
        flag("required", "is_required", False),
        plain("value", "value_expr"),
        tree("notes", "notes"),
    ),
    "extra",
)
_RULE_KEY = (
    *("field_key", "op_code", "match_type_code", "negated"),
    *("value_type_code", "emit_type_code"),
)


def book_rows(book: QueryBook) -> Iterator[tuple[str, tuple[Any, ...], Columns]]:
    """Yield table, key and columns of everything in the book but its fields."""
    for field, capability in book.capabilities.items():
        yield CAPABILITY, (field,), _CAPABILITY.write(_form(capability))
    for number, rule in enumerate(book.rules):
        columns = _RULE.write({**_form(rule), "place": number})
        yield RULE, tuple(columns.pop(name) for name in _RULE_KEY), columns
    for number, param in enumerate(book.params):
        columns = _PARAM.write({**_form(param), "place": number})
        names = ("endpoint_name", "operation_code", "std_key")
        yield PARAM, tuple(columns.pop(name) for name in names), columns


def read_book(
    settings: dict[str, Any],
    fields: dict[str, QueryField],
    capabilities: Iterable[Row],
    rules: Iterable[Row],
    params: Iterable[Row],
) -> QueryBook | None:
    """Return the book that the rows of one source hold, with the fields it speaks of."""
    able = {row["field_key"]: _CAPABILITY.read(row) for row in capabilities}
    written = sorted((_RULE.read(row) for row in rules), key=_place)
    named = sorted((_PARAM.read(row) for row in params), key=_place)
    if not (able or written or named or settings):
        return None
    used = able.keys() | {rule["field"] for rule in written}
    return QueryBook.model_validate(
        {
            **settings,
            "fields": {key: field for key, field in fields.items() if key in used},
            "capabilities": able,
            "rules": [_without_place(rule) for rule in written],
            "params": [_without_place(param) for param in named],
        }
    )


def field_columns(key: str, field: QueryField) -> Columns:
    """Return the columns of one field of the shared dictionary."""
    return {
        "field_key": key,
        "display_name": field.name,
        "description": field.description,
        "data_type_code": field.type.value,
        "cardinality_code": field.cardinality.value,
        "exposable": int(field.exposable),
        "is_date": int(field.is_date),
    }


def field_of(row: Row) -> QueryField:
    """Return the field that a row holds."""
    return QueryField(
        type=row["data_type_code"],
        name=row["display_name"],
        description=row["description"],
        cardinality=row["cardinality_code"],
        exposable=bool(row["exposable"]),
    )


def settings_column(
    book: QueryBook | None, auth: AuthPart | None, evidence: dict[str, Any] | None = None
) -> str | None:
    """Return what `reg_provenance.extra` keeps: settings of book and credentials, evidence."""
    kept: dict[str, Any] = {"evidence": evidence} if evidence else {}
    if book is not None:
        form = _form(book)
        kept["expressions"] = {key: form[key] for key in _SETTINGS if key in form}
    if auth is not None:
        kept["auth"] = auth.model_dump(mode="json", exclude_none=True, exclude={"credentials"})
    return as_json(kept) if kept else None


def settings_of(row: Row) -> dict[str, Any]:
    """Return what `reg_provenance.extra` keeps."""
    kept: dict[str, Any] = read_json(row["extra"]) or {}
    return kept


def _form(part: Capability | RenderRule | ParamRule | QueryBook) -> dict[str, Any]:
    return part.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


def _place(form: dict[str, Any]) -> int:
    return int(form.get("place", 0))


def _without_place(form: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in form.items() if key != "place"}
