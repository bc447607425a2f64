"""The codes of the query language (`reg_expr_*`, `reg_prov_expr_*`); import them from `codes`."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class DataType(StrEnum):
    """What kind of value a query field holds."""

    DATE = "DATE"
    DATETIME = "DATETIME"
    NUMBER = "NUMBER"
    TEXT = "TEXT"
    KEYWORD = "KEYWORD"
    BOOLEAN = "BOOLEAN"
    TOKEN = "TOKEN"


class Cardinality(StrEnum):
    """Whether a query field holds one value or several."""

    SINGLE = "SINGLE"
    MULTI = "MULTI"


class EndpointOperation(StrEnum):
    """What a parameter map is for; not an ingest operation."""

    SEARCH = "SEARCH"
    DETAIL = "DETAIL"
    LOOKUP = "LOOKUP"


class ExprOp(StrEnum):
    """An operator of the query language."""

    TERM = "TERM"
    IN = "IN"
    RANGE = "RANGE"
    EXISTS = "EXISTS"
    TOKEN = "TOKEN"


class RangeKind(StrEnum):
    """What a RANGE may range over."""

    NONE = "NONE"
    DATE = "DATE"
    DATETIME = "DATETIME"
    NUMBER = "NUMBER"


class MatchType(StrEnum):
    """How a TERM is matched."""

    PHRASE = "PHRASE"
    EXACT = "EXACT"
    ANY = "ANY"


class EmitType(StrEnum):
    """What a render rule writes: a piece of the query, or parameters."""

    QUERY = "QUERY"
    PARAMS = "PARAMS"


class Transform(StrEnum):
    """What is done to a value before it is sent."""

    IDENTITY = "IDENTITY"
    TO_EXCLUSIVE_MINUS_1D = "TO_EXCLUSIVE_MINUS_1D"
    PUBMED_DATETYPE = "PUBMED_DATETYPE"
    LIST_JOIN = "LIST_JOIN"
    FILTER_JOIN = "FILTER_JOIN"


class ValueType(StrEnum):
    """The type of a value in a render rule."""

    STRING = "STRING"
    DATE = "DATE"
    DATETIME = "DATETIME"
    NUMBER = "NUMBER"


QUERY_TYPES: Mapping[str, type[StrEnum]] = MappingProxyType(
    {
        "reg_data_type": DataType,
        "reg_cardinality": Cardinality,
        "reg_operation": EndpointOperation,
        "reg_expr_op": ExprOp,
        "reg_range_kind": RangeKind,
        "reg_match_type": MatchType,
        "reg_emit_type": EmitType,
        "reg_transform": Transform,
        "value_type": ValueType,
    }
)
