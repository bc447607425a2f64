"""Pack parts and `reg_*` columns: the two directions of one translation, side by side."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from patra_ingest.ledger.db import instant_text, read_instant, read_json
from patra_ingest.model.codes import (
    BackoffPolicyType,
    BucketGranularityScope,
    OffsetType,
    RetryAfterPolicy,
    TimeUnit,
    WindowMode,
)
from patra_ingest.model.window import instant_iso, parse_instant
from patra_ingest.registry.pack import EndpointPart, FieldPart, HttpPart, Pack, RatePart, RetryPart

Columns = dict[str, Any]
JSON_COLUMNS = frozenset(
    {
        "default_query_params",
        "response_paths",
        "output_mapping",
        "stop_rules",
        "default_headers_json",
        "retry_http_status_json",
    }
)


def provenance_columns(pack: Pack) -> Columns:
    """Return the `reg_provenance` columns of a pack."""
    part = pack.provenance
    return {
        "provenance_code": part.code,
        "provenance_name": part.name,
        "base_url_default": part.base_url,
        "timezone_default": part.timezone,
        "docs_url": part.docs_url,
    }


def endpoint_columns(part: EndpointPart) -> Columns:
    """Return the `reg_prov_endpoint_def` columns of an endpoint."""
    return {
        "endpoint_usage_code": part.usage.value,
        "http_method_code": part.request.method.value,
        "path_template": part.request.path,
        "default_query_params": dict(part.request.query),
        "response_paths": part.response.model_dump(exclude_none=True),
        "output_mapping": {
            "changed": part.changed.value,
            "fields": [_field(name, field) for name, field in part.fields.items()],
        },
    }


def _field(name: str, field: str | FieldPart) -> dict[str, Any]:
    if isinstance(field, str):
        return {"name": name, "path": field, "required": False}
    return {"name": name, "path": field.path, "required": field.required}


def pagination_columns(part: EndpointPart) -> Columns:
    """Return the `reg_prov_pagination_cfg` columns of an endpoint."""
    paging = part.paging
    return {
        "pagination_mode_code": paging.type,
        "page_size_value": paging.page_size,
        "max_pages_per_execution": paging.max_pages,
        "initial_cursor_value": paging.initial_token,
        "next_cursor_jsonpath": paging.next_token,
        "total_count_jsonpath": paging.total,
        "stop_rules": None if paging.stop is None else [rule.value for rule in paging.stop],
    }


def window_columns(part: EndpointPart) -> Columns:
    """Return the `reg_prov_window_offset_cfg` columns of an endpoint."""
    window = part.window
    initial = parse_instant(window.initial_from) if window.initial_from else None
    return {
        "window_mode_code": WindowMode.SLIDING.value,
        "window_size_value": _seconds(window.max_span) or 86_400,
        "window_size_unit_code": TimeUnit.SECOND.value,
        "overlap_value": _seconds(window.overlap),
        "overlap_unit_code": None if window.overlap is None else TimeUnit.SECOND.value,
        "watermark_lag_seconds": _seconds(window.safety_lag),
        "offset_type_code": OffsetType.DATE.value,
        "offset_field_name": window.watermark_key,
        "max_window_span_seconds": _seconds(window.max_span),
        "watermark_source_code": window.watermark_source.value,
        "granularity_code": window.granularity.value,
        "upper_bound_code": window.upper_bound.value,
        "initial_from": instant_text(initial) if initial else None,
    }


def http_columns(part: HttpPart) -> Columns:
    """Return the `reg_prov_http_cfg` columns."""
    return {
        "default_headers_json": dict(part.headers),
        "timeout_connect_millis": _millis(part.connect_timeout),
        "timeout_read_millis": _millis(part.read_timeout),
        "timeout_total_millis": _millis(part.total_timeout),
        "follow_redirects": int(part.follow_redirects),
        "allow_insecure_http": int(part.allow_insecure_http),
        "retry_after_policy_code": RetryAfterPolicy.RESPECT.value,
    }


def retry_columns(part: RetryPart) -> Columns:
    """Return the `reg_prov_retry_cfg` columns; the table counts retries, a pack counts attempts."""
    return {
        "max_retry_times": None if part.max_attempts is None else part.max_attempts - 1,
        "backoff_policy_type_code": BackoffPolicyType.EXP_JITTER.value,
        "initial_delay_millis": _millis(part.initial_delay),
        "max_delay_millis": _millis(part.max_delay),
        "exp_multiplier_value": part.multiplier,
        "jitter_factor_ratio": part.jitter,
        "retry_http_status_json": part.statuses,
    }


def rate_columns(part: RatePart) -> Columns:
    """Return the `reg_prov_rate_limit_cfg` columns."""
    return {
        "rate_key": part.key,
        "rate_tokens_per_second": part.per_second,
        "burst_bucket_capacity": part.burst,
        "max_concurrent_requests": part.in_flight,
        "bucket_granularity_scope_code": BucketGranularityScope.GLOBAL.value,
        "request_cost": part.cost,
    }


def endpoint_values(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what an endpoint row declares, in the words of a spec."""
    paths = read_json(row["response_paths"]) or {}
    mapping = read_json(row["output_mapping"]) or {}
    return {
        "request": {
            "method": row["http_method_code"],
            "path": row["path_template"],
            "query": read_json(row["default_query_params"]) or {},
        },
        "response": {
            "items_path": paths.get("items"),
            "id_path": paths.get("id"),
            "updated_at_path": paths.get("updated_at"),
            "deleted_path": paths.get("deleted"),
            "client_window": paths.get("client_window"),
        },
        "mapping": {"fields": mapping.get("fields", []), "changed": mapping.get("changed")},
    }


def pagination_values(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what a pagination row declares, in the words of a spec."""
    return {
        "paging": {
            "type": row["pagination_mode_code"],
            "page_size": row["page_size_value"],
            "max_pages": row["max_pages_per_execution"],
            "initial_token": row["initial_cursor_value"],
            "next_token_path": row["next_cursor_jsonpath"],
            "total_path": row["total_count_jsonpath"],
            "stop": read_json(row["stop_rules"]),
        }
    }


def window_values(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what a window row declares, in the words of a spec."""
    initial = row["initial_from"]
    return {
        "window": {
            "watermark_key": row["offset_field_name"],
            "watermark_source": row["watermark_source_code"],
            "safety_lag": row["watermark_lag_seconds"],
            "overlap": row["overlap_value"],
            "max_span": row["max_window_span_seconds"],
            "granularity": row["granularity_code"],
            "upper_bound": row["upper_bound_code"],
            "initial_from": None if initial is None else instant_iso(read_instant(initial)),
        }
    }


def http_values(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what an HTTP row declares, in the words of a spec."""
    return {
        "request": {"headers": read_json(row["default_headers_json"]) or {}},
        "http": {
            "connect_timeout_ms": row["timeout_connect_millis"],
            "read_timeout_ms": row["timeout_read_millis"],
            "total_timeout_ms": row["timeout_total_millis"],
            "follow_redirects": bool(row["follow_redirects"]),
            "allow_insecure_http": bool(row["allow_insecure_http"]),
        },
    }


def retry_values(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what a retry row declares, in the words of a spec."""
    retries = row["max_retry_times"]
    return {
        "retry": {
            "max_attempts": None if retries is None else retries + 1,
            "initial_delay_ms": row["initial_delay_millis"],
            "max_delay_ms": row["max_delay_millis"],
            "multiplier": row["exp_multiplier_value"],
            "jitter": row["jitter_factor_ratio"],
            "retry_statuses": read_json(row["retry_http_status_json"]),
        }
    }


def rate_values(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what a rate row declares, in the words of a spec."""
    return {
        "rate": {
            "key": row["rate_key"],
            "per_second": float(row["rate_tokens_per_second"]),
            "burst": float(row["burst_bucket_capacity"]),
            "in_flight": row["max_concurrent_requests"],
            "cost": float(row["request_cost"]),
        }
    }


def _seconds(duration: timedelta | None) -> int | None:
    return None if duration is None else int(duration.total_seconds())


def _millis(duration: timedelta | None) -> int | None:
    return None if duration is None else int(duration.total_seconds() * 1000)
