"""The query book: which questions one endpoint understands, and how each is written for it.

These models are the `expressions:` part of the pack language and, one for one, the rows of
`reg_expr_field_dict`, `reg_prov_expr_capability`, `reg_prov_expr_render_rule` and
`reg_prov_api_param_map`. A range is half-open, `[from, to)`, in every book; a rule that writes for
a source with inclusive ends says `function: TO_EXCLUSIVE_MINUS_1D` or gives its parameter that
transform.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from patra_ingest.expr.query_bounds import plain_text, read_bound
from patra_ingest.model.codes import (
    Cardinality,
    DataType,
    EmitType,
    EndpointOperation,
    ExprOp,
    InboundLocation,
    MatchType,
    RangeKind,
    ValueType,
)

QUERY_KEY = "query"  # the std key that carries the aggregated boolean text


class Syntax(StrEnum):
    """How a value is kept inside its clause, and how clauses are combined."""

    PUBMED = "PUBMED"  # no escape character: what could break out becomes a blank; `a NOT b`
    LUCENE = "LUCENE"  # backslash before every special; `a AND NOT b`
    CROSSREF_FILTER = "CROSSREF_FILTER"  # `name:value,name:value`: a comma cannot be written
    NONE = "NONE"  # the value is a parameter of its own; only control characters are blanked


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from error
    return text


def _keyed(value: object) -> object:
    """Read `{query: term, to: {name: maxdate}}` as the list of rules it stands for."""
    if not isinstance(value, Mapping):
        return value
    return [
        {"key": key, **(rule if isinstance(rule, Mapping) else {"name": rule})}
        for key, rule in value.items()
    ]


Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Pattern = Annotated[str, AfterValidator(_pattern)]
Limit = Annotated[int, Field(ge=0)]  # 0 = no limit
Plain = Annotated[str, BeforeValidator(plain_text)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class QueryField(_Part):
    """A field a query may speak of, the same for all provenances."""

    type: DataType
    name: str | None = None
    description: str | None = None
    cardinality: Cardinality = Cardinality.SINGLE
    exposable: bool = True  # false = internal, a query may not use it

    @property
    def is_date(self) -> bool:
        """Whether the field holds days or instants."""
        return self.type in (DataType.DATE, DataType.DATETIME)

    @property
    def value_type(self) -> ValueType:
        """What a render rule calls a value of this field."""
        known = self.type in (DataType.DATE, DataType.DATETIME, DataType.NUMBER)
        return ValueType(self.type) if known else ValueType.STRING


class Capability(_Part):
    """What the provenance can be asked about one field."""

    ops: Annotated[tuple[ExprOp, ...], Field(min_length=1)]
    negatable_ops: tuple[ExprOp, ...] | None = None  # absent = same as ops
    supports_not: bool = True
    matches: tuple[MatchType, ...] | None = None  # absent = all of them
    case_sensitive: bool = False
    allow_blank: bool = False
    min_length: Limit = 0
    max_length: Limit = 0
    pattern: Pattern | None = None  # the whole value must fit
    in_max: Limit = 0
    in_case_sensitive: bool = False
    range: RangeKind = RangeKind.NONE
    open_start: bool = True
    open_end: bool = True
    closed_at_infinity: bool = False  # whether a bound may be written as `*`
    min: Plain | None = None  # of the kind that `range` says
    max: Plain | None = None
    exists: bool = False
    token_kinds: tuple[str, ...] | None = None  # lower case; absent = any
    token_pattern: Pattern | None = None

    @model_validator(mode="after")
    def _limits_are_of_the_kind(self) -> Self:
        for key, text in (("min", self.min), ("max", self.max)):
            if text is None:
                continue
            if self.range is RangeKind.NONE:
                raise ValueError(f"{key} needs a range: DATE, DATETIME or NUMBER")
            read_bound(self.range, text)
        return self

    def negates(self, op: ExprOp) -> bool:
        """Return whether NOT may stand before this operator."""
        listed = self.ops if self.negatable_ops is None else self.negatable_ops
        return self.supports_not and op in listed


class RenderRule(_Part):
    """How one kind of atom is written: a piece of the query, or parameters under our own keys.

    With `negated: true` the rule writes the whole negated form itself. `open_from` and `open_to`
    stand in for a bound the query leaves open.
    """

    field: Name
    op: ExprOp
    match: MatchType | None = None  # absent = any of them
    negated: bool | None = None  # absent = both
    value_type: ValueType | None = None  # absent = any of them
    emit: EmitType = EmitType.QUERY
    template: str | None = None
    item_template: str | None = None
    joiner: str | None = None  # absent = ` OR ` in a query, a comma in parameters
    wrap_group: bool = False
    params: dict[Name, str | tuple[str, ...]] = {}  # std key: one clause, or several
    function: str | None = None
    escape: Syntax | None = None  # absent = the book's syntax
    open_from: Plain | None = None
    open_to: Plain | None = None


class ParamRule(_Part):
    """How one of our keys is called by the provenance, and what is done to its value."""

    key: Name
    name: Annotated[str, Field(min_length=1)]
    operation: EndpointOperation = EndpointOperation.SEARCH
    endpoint: str | None = None  # absent = all endpoints
    transform: str | None = None
    location: InboundLocation = InboundLocation.QUERY
    default: Plain | None = None  # used as it is, without transform
    required: bool = False
    value: str | None = None  # a template such as ${value|format(yyyy/MM/dd)}
    repeat: bool = False  # whether the parameter may be sent several times
    notes: Any = None


class QueryBook(_Part):
    """Everything one endpoint may be asked: fields, capabilities, render rules, parameters."""

    syntax: Syntax = Syntax.LUCENE
    everything: str | None = None  # the clause that matches all, for a NOT that stands alone
    max_query_length: Limit = 0
    fields: dict[Name, QueryField] = {}
    capabilities: dict[Name, Capability] = {}
    rules: tuple[RenderRule, ...] = ()
    params: Annotated[
        tuple[ParamRule, ...],
        BeforeValidator(
            _keyed, json_schema_input_type=dict[str, str | dict[str, Any]] | tuple[ParamRule, ...]
        ),
    ] = ()

    def escape_of(self, rule: RenderRule) -> Syntax:
        """Return how the rule's values are kept inside their clause."""
        return self.syntax if rule.escape is None else rule.escape

    def narrowed(self, operation: EndpointOperation, endpoint: str | None = None) -> Self:
        """Return the book with the parameters of one endpoint; its own beat those for all."""
        chosen: dict[str, ParamRule] = {}
        for rule in self.params:
            if rule.operation is not operation or rule.endpoint not in (None, endpoint):
                continue
            if rule.endpoint is not None or rule.key not in chosen:
                chosen[rule.key] = rule
        return self.model_copy(update={"params": tuple(chosen.values())})
