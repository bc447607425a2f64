"""Which column of `reg_prov_*_cfg` keeps which word of the pack language: one layout per table."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from patra_ingest.registry.codecs import (
    Columns,
    Layout,
    attempts,
    code,
    flag,
    instant,
    number,
    plain,
    short,
    span,
    tree,
    whole,
)
from patra_ingest.spec.words import Meaning

_SECOND = timedelta(seconds=1)
_MILLI = timedelta(milliseconds=1)


def _window(values: Mapping[str, Any]) -> Columns:
    dated = values.get("meaning") not in (Meaning.PUBLISHED, Meaning.NONE)
    size = span("size", "window_size_value", "window_size_unit_code")
    written = size.write(values.get("max_span", "1d")) or (1, "DAY")
    return {
        **dict(zip(size.columns, written, strict=True)),
        "offset_type_code": "DATE",
        "supports_updated_since": int(dated),
    }


def _http(values: Mapping[str, Any]) -> Columns:
    return {"follow_redirects": int(values.get("redirects", "REFUSE") != "REFUSE")}


def _retry(values: Mapping[str, Any]) -> Columns:
    breaker = values.get("breaker") or {}
    cooldown = whole("cooldown", "circuit_cooldown_millis", _MILLI)
    written = cooldown.write(breaker["cooldown"]) if breaker else None
    return {
        "circuit_break_threshold": breaker.get("failures"),
        "circuit_cooldown_millis": written[0] if written else None,
    }


def _rate(_values: Mapping[str, Any]) -> Columns:
    return {"bucket_granularity_scope_code": "GLOBAL"}


WINDOW = Layout(
    "reg_prov_window_offset_cfg",
    (
        plain("watermark_key", "offset_field_name"),
        plain("watermark_source", "watermark_source_code", "WINDOW_END"),
        whole("safety_lag", "watermark_lag_seconds", _SECOND),
        span("overlap", "overlap_value", "overlap_unit_code"),
        span("lookback", "lookback_value", "lookback_unit_code"),
        whole("max_span", "max_window_span_seconds", _SECOND),
        whole("min_span", "min_window_span_seconds", _SECOND),
        plain("mode", "window_mode_code", "SLIDING"),
        plain("align", "calendar_align_to"),
        plain("granularity", "granularity_code"),
        plain("format", "offset_date_format"),
        plain("upper_bound", "upper_bound_code", "INCLUSIVE"),
        instant("initial_from", "initial_from"),
    ),
    "extra",
    _window,
)

PAGINATION = Layout(
    "reg_prov_pagination_cfg",
    (
        code("type", "pagination_mode_code", {"PAGE": "PAGE_NUMBER"}, "NONE"),
        plain("page_size", "page_size_value"),
        plain("max_pages", "max_pages_per_execution"),
        plain("size_param", "page_size_param_name"),
        plain("offset_param", "offset_param_name"),
        plain("page_param", "page_number_param_name"),
        plain("token_param", "cursor_param_name"),
        plain("first_page", "start_page_number", 1),
        plain("initial_token", "initial_cursor_value"),
        short("next_token", "next_cursor_jsonpath"),
        short("total", "total_count_jsonpath"),
        plain("has_more", "has_more_jsonpath"),
        plain("order", "sort_direction"),
        tree("stop", "stop_rules"),
        whole("token_life", "token_life_seconds", _SECOND),
    ),
    "paging",
)

HTTP = Layout(
    "reg_prov_http_cfg",
    (
        plain("base_url", "base_url_override"),
        tree("headers", "default_headers_json"),
        whole("connect_timeout", "timeout_connect_millis", _MILLI),
        whole("read_timeout", "timeout_read_millis", _MILLI),
        whole("total_timeout", "timeout_total_millis", _MILLI),
        flag("allow_insecure_http", "allow_insecure_http", False),
        flag("verify_tls", "tls_verify_enabled", True),
        flag("compression", "accept_compress_enabled", True),
        flag("http2", "prefer_http2_enabled", False),
        plain("proxy", "proxy_url_value"),
        plain("retry_after", "retry_after_policy_code", "RESPECT"),
        whole("retry_after_cap", "retry_after_cap_millis", _MILLI),
        plain("idempotency_header", "idempotency_header_name"),
    ),
    "extra",
    _http,
)

RETRY = Layout(
    "reg_prov_retry_cfg",
    (
        plain("backoff", "backoff_policy_type_code", "EXP_JITTER"),
        whole("initial_delay", "initial_delay_millis", _MILLI),
        whole("max_delay", "max_delay_millis", _MILLI),
        plain("multiplier", "exp_multiplier_value"),
        plain("jitter", "jitter_factor_ratio"),
        tree("statuses", "retry_http_status_json"),
        tree("give_up", "giveup_http_status_json"),
        flag("network_errors", "retry_on_network_error", True),
        attempts("max_attempts", "max_retry_times"),
    ),
    "extra",
    _retry,
)

RATE = Layout(
    "reg_prov_rate_limit_cfg",
    (
        plain("key", "rate_key"),
        number("per_second", "rate_tokens_per_second"),
        plain("burst", "burst_bucket_capacity"),
        plain("in_flight", "max_concurrent_requests"),
        number("cost", "request_cost"),
        tree("quotas", "quota_json"),
        tree("headers", "adaptive_json"),
    ),
    "extra",
    _rate,
)

BATCHING = Layout(
    "reg_prov_batching_cfg",
    (
        plain("ids_per_request", "max_ids_per_request"),
        plain("ids_param", "ids_param_name"),
        plain("join", "ids_join_delimiter"),
        plain("compress", "payload_compress_strategy_code", "NONE"),
        plain("parallel", "app_parallelism_degree"),
        plain("per_host", "per_host_concurrency_limit"),
        plain("pool", "http_conn_pool_size"),
        plain("backpressure", "backpressure_strategy_code", "BLOCK"),
        plain("two_phase_from", "two_phase_threshold"),
        plain("combine_below", "combine_threshold"),
    ),
    "extra",
    lambda values: {"detail_fetch_batch_size": values.get("ids_per_request")},
)

PLANNING = Layout(
    "reg_prov_plan_cfg",
    (
        plain("strategy", "slice_strategy_code"),
        plain("records_per_slice", "records_per_slice"),
        number("records_per_day", "records_per_day"),
        plain("max_queued", "max_queued_tasks"),
        plain("priority", "priority"),
        tree("courtesy", "courtesy"),
    ),
    "extra",
)

# The dimensions of a source, in the order a person reads a pack.
DIMENSIONS: Mapping[str, Layout] = {
    "http": HTTP,
    "paging": PAGINATION,
    "window": WINDOW,
    "batching": BATCHING,
    "retry": RETRY,
    "rate": RATE,
    "planning": PLANNING,
}
