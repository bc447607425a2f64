"""Codes in rows, held against the dictionary: an alias becomes its code, a stranger a problem."""

from collections.abc import Mapping

from patra_ingest.errors import PersonMustAct
from patra_ingest.registry.code_book import CodeBook
from patra_ingest.registry.codecs import Row
from patra_ingest.spec.problems import Problem

# Column → dictionary type; the same column means the same in every table.
CODES: Mapping[str, str] = {
    "endpoint_usage_code": "endpoint_usage",
    "http_method_code": "http_method",
    "pagination_mode_code": "pagination_mode",
    "window_mode_code": "window_mode",
    "calendar_align_to": "calendar_align",
    "granularity_code": "time_unit",
    "upper_bound_code": "upper_bound",
    "watermark_source_code": "watermark_source",
    "sort_direction": "sort_direction",
    "retry_after_policy_code": "retry_after_policy",
    "backoff_policy_type_code": "backoff_policy_type",
    "payload_compress_strategy_code": "payload_compress_strategy",
    "backpressure_strategy_code": "backpressure_strategy",
}


def checked(table: str, row: Row, codes: CodeBook, problems: list[Problem]) -> Row:
    """Return the row with canonical codes; add a problem for each the dictionary does not have."""
    canonical = dict(row)
    for column, type_code in CODES.items():
        code = row.get(column)
        if code is None:
            continue
        try:
            canonical[column] = codes.canonical(type_code, code)
        except PersonMustAct as error:
            problems.append(Problem(f"{table} #{row['id']}.{column}", error.what, error.remedy))
    return canonical
