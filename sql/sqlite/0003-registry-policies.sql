-- The Registry: one policy per dimension. Of the rows valid at an instant one is taken whole, TASK before SOURCE,
-- an endpoint's own before the general one; NULL in it means the platform default.
-- Instants are UTC text with microseconds, 26 characters such as 2025-09-22 21:05:00.000000, which sorts by time.
-- The unnamed CHECKs guard what MySQL guards by type (JSON, instants); text lengths are enforced by MySQL only.
-- updated_at is set by the application, because SQLite has no ON UPDATE.

-- How a window is cut from time and which field it is cut by.
CREATE TABLE reg_prov_window_offset_cfg (
    id                       INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_id            INTEGER  NOT NULL,                       -- reg_provenance.id
    scope_code               TEXT     NOT NULL,                       -- SOURCE = all operations, TASK = the one in task_type
    task_type                TEXT     NULL,                           -- an ing_operation; NULL when scope_code = SOURCE
    endpoint_name            TEXT     NULL,                           -- NULL = all endpoints of the provenance
    effective_from           TEXT     NOT NULL CHECK (effective_from LIKE '____-__-__ __:__:__.______'),  -- valid from, inclusive
    effective_to             TEXT     NULL CHECK (effective_to LIKE '____-__-__ __:__:__.______'),  -- valid until, exclusive; NULL = open
    window_mode_code         TEXT     NOT NULL,                       -- window_mode
    window_size_value        INTEGER  NOT NULL DEFAULT 1,
    window_size_unit_code    TEXT     NOT NULL,                       -- time_unit
    calendar_align_to        TEXT     NULL,                           -- calendar_align; for CALENDAR
    lookback_value           INTEGER  NULL,                           -- late data, widens the query only
    lookback_unit_code       TEXT     NULL,                           -- time_unit
    overlap_value            INTEGER  NULL,                           -- widens the query only, never the slice
    overlap_unit_code        TEXT     NULL,                           -- time_unit
    watermark_lag_seconds    INTEGER  NULL,                           -- safety lag: distance kept from now
    offset_type_code         TEXT     NOT NULL,                       -- offset_type
    offset_field_name        TEXT     NULL,                           -- watermark key; else default_date_field_name
    offset_date_format       TEXT     NULL,
    default_date_field_name  TEXT     NULL,
    max_ids_per_window       INTEGER  NULL,                           -- more ids: split
    max_window_span_seconds  INTEGER  NULL,                           -- longer: split
    min_window_span_seconds  INTEGER  NULL,                           -- the floor: never split below
    supports_updated_since   INTEGER  NOT NULL DEFAULT 1,             -- 0 = only publication dates, HARVEST is refused
    watermark_source_code    TEXT     NOT NULL DEFAULT 'WINDOW_END',  -- watermark_source
    granularity_code         TEXT     NULL,                           -- time_unit the provenance can filter by
    upper_bound_code         TEXT     NOT NULL DEFAULT 'INCLUSIVE',   -- upper_bound: how the provenance reads its own end
    initial_from             TEXT     NULL CHECK (initial_from LIKE '____-__-__ __:__:__.______'),  -- where the first HARVEST window starts
    extra                    TEXT     NULL CHECK (extra IS NULL OR json_valid(extra)),  -- what no column holds
    task_type_key            TEXT     GENERATED ALWAYS AS (COALESCE(task_type, 'ALL')) STORED,  -- ALL = every operation
    endpoint_name_key        TEXT     GENERATED ALWAYS AS (COALESCE(endpoint_name, '*')) STORED,  -- * = every endpoint
    lifecycle_status_code    TEXT     NOT NULL DEFAULT 'ACTIVE',      -- lifecycle_status; only ACTIVE rows are read
    record_remarks           TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version                  INTEGER  NOT NULL DEFAULT 0,             -- optimistic lock, raised by every guarded update
    ip_address               BLOB     NULL,                           -- of the caller, IPv4 or IPv6
    created_at               TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by               INTEGER  NULL,
    created_by_name          TEXT     NULL,
    updated_at               TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by               INTEGER  NULL,
    updated_by_name          TEXT     NULL,
    deleted                  INTEGER  NOT NULL DEFAULT 0,             -- 1 = soft-deleted
    live_key                 INTEGER  GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED,  -- NULL once soft-deleted, so that a deleted row frees its key
    CONSTRAINT chk_reg_prov_window_offset_cfg__scope CHECK ((scope_code = 'TASK') = (task_type IS NOT NULL)),
    CONSTRAINT chk_reg_prov_window_offset_cfg__range CHECK (effective_from < effective_to)
);
CREATE UNIQUE INDEX uk_reg_prov_window_offset_cfg__dim_from ON reg_prov_window_offset_cfg (provenance_id, scope_code, task_type_key, endpoint_name_key, effective_from, live_key);
CREATE INDEX idx_reg_prov_window_offset_cfg__dim_to ON reg_prov_window_offset_cfg (provenance_id, scope_code, task_type_key, effective_to);
CREATE INDEX idx_reg_prov_window_offset_cfg__active ON reg_prov_window_offset_cfg (provenance_id, scope_code, task_type_key, effective_from DESC, id DESC);

-- How an answer is continued on the next page, and when it ends.
CREATE TABLE reg_prov_pagination_cfg (
    id                       INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_id            INTEGER  NOT NULL,                   -- reg_provenance.id
    scope_code               TEXT     NOT NULL,                   -- SOURCE = all operations, TASK = the one in task_type
    task_type                TEXT     NULL,                       -- an ing_operation; NULL when scope_code = SOURCE
    endpoint_name            TEXT     NULL,                       -- NULL = all endpoints of the provenance
    effective_from           TEXT     NOT NULL CHECK (effective_from LIKE '____-__-__ __:__:__.______'),  -- valid from, inclusive
    effective_to             TEXT     NULL CHECK (effective_to LIKE '____-__-__ __:__:__.______'),  -- valid until, exclusive; NULL = open
    pagination_mode_code     TEXT     NOT NULL,                   -- pagination_mode
    page_size_value          INTEGER  NULL,
    max_pages_per_execution  INTEGER  NULL,
    page_number_param_name   TEXT     NULL,
    page_size_param_name     TEXT     NULL,
    offset_param_name        TEXT     NULL,
    start_page_number        INTEGER  NOT NULL DEFAULT 1,
    sort_field_param_name    TEXT     NULL,
    sort_direction           TEXT     NULL,                       -- sort_direction
    cursor_param_name        TEXT     NULL,                       -- carries the page token
    initial_cursor_value     TEXT     NULL,
    next_cursor_jsonpath     TEXT     NULL,
    has_more_jsonpath        TEXT     NULL,
    total_count_jsonpath     TEXT     NULL,
    next_cursor_xpath        TEXT     NULL,
    has_more_xpath           TEXT     NULL,
    total_count_xpath        TEXT     NULL,
    stop_rules               TEXT     NULL CHECK (stop_rules IS NULL OR json_valid(stop_rules)),  -- ordered list: what ends the pages
    max_reachable            INTEGER  NULL,                       -- result cap: more than this is never served
    token_life_seconds       INTEGER  NULL,                       -- an older page token is not resumed
    paging                   TEXT     NULL CHECK (paging IS NULL OR json_valid(paging)),  -- what no column holds
    task_type_key            TEXT     GENERATED ALWAYS AS (COALESCE(task_type, 'ALL')) STORED,  -- ALL = every operation
    endpoint_name_key        TEXT     GENERATED ALWAYS AS (COALESCE(endpoint_name, '*')) STORED,  -- * = every endpoint
    lifecycle_status_code    TEXT     NOT NULL DEFAULT 'ACTIVE',  -- lifecycle_status; only ACTIVE rows are read
    record_remarks           TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version                  INTEGER  NOT NULL DEFAULT 0,         -- optimistic lock, raised by every guarded update
    ip_address               BLOB     NULL,                       -- of the caller, IPv4 or IPv6
    created_at               TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by               INTEGER  NULL,
    created_by_name          TEXT     NULL,
    updated_at               TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by               INTEGER  NULL,
    updated_by_name          TEXT     NULL,
    deleted                  INTEGER  NOT NULL DEFAULT 0,         -- 1 = soft-deleted
    live_key                 INTEGER  GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED,  -- NULL once soft-deleted, so that a deleted row frees its key
    CONSTRAINT chk_reg_prov_pagination_cfg__scope CHECK ((scope_code = 'TASK') = (task_type IS NOT NULL)),
    CONSTRAINT chk_reg_prov_pagination_cfg__range CHECK (effective_from < effective_to)
);
CREATE UNIQUE INDEX uk_reg_prov_pagination_cfg__dim_from ON reg_prov_pagination_cfg (provenance_id, scope_code, task_type_key, endpoint_name_key, effective_from, live_key);
CREATE INDEX idx_reg_prov_pagination_cfg__dim_to ON reg_prov_pagination_cfg (provenance_id, scope_code, task_type_key, effective_to);
CREATE INDEX idx_reg_prov_pagination_cfg__active ON reg_prov_pagination_cfg (provenance_id, scope_code, task_type_key, effective_from DESC, id DESC);

-- How requests are sent.
CREATE TABLE reg_prov_http_cfg (
    id                       INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_id            INTEGER  NOT NULL,                   -- reg_provenance.id
    scope_code               TEXT     NOT NULL,                   -- SOURCE = all operations, TASK = the one in task_type
    task_type                TEXT     NULL,                       -- an ing_operation; NULL when scope_code = SOURCE
    endpoint_name            TEXT     NULL,                       -- NULL = all endpoints of the provenance
    effective_from           TEXT     NOT NULL CHECK (effective_from LIKE '____-__-__ __:__:__.______'),  -- valid from, inclusive
    effective_to             TEXT     NULL CHECK (effective_to LIKE '____-__-__ __:__:__.______'),  -- valid until, exclusive; NULL = open
    base_url_override        TEXT     NULL,                       -- wins over reg_provenance.base_url_default
    default_headers_json     TEXT     NULL CHECK (default_headers_json IS NULL OR json_valid(default_headers_json)),
    timeout_connect_millis   INTEGER  NULL,
    timeout_read_millis      INTEGER  NULL,
    timeout_total_millis     INTEGER  NULL,                       -- the whole request
    tls_verify_enabled       INTEGER  NOT NULL DEFAULT 1,         -- 0 only in tests
    proxy_url_value          TEXT     NULL,
    accept_compress_enabled  INTEGER  NOT NULL DEFAULT 1,
    prefer_http2_enabled     INTEGER  NOT NULL DEFAULT 0,
    allow_insecure_http      INTEGER  NOT NULL DEFAULT 0,         -- 1 = plain http is allowed
    follow_redirects         INTEGER  NOT NULL DEFAULT 0,         -- credentials never follow to another host
    retry_after_policy_code  TEXT     NOT NULL,                   -- retry_after_policy
    retry_after_cap_millis   INTEGER  NULL,
    idempotency_header_name  TEXT     NULL,
    idempotency_ttl_seconds  INTEGER  NULL,
    signing_hook             TEXT     NULL,                       -- name of a registered signing function
    extra                    TEXT     NULL CHECK (extra IS NULL OR json_valid(extra)),  -- what no column holds
    task_type_key            TEXT     GENERATED ALWAYS AS (COALESCE(task_type, 'ALL')) STORED,  -- ALL = every operation
    endpoint_name_key        TEXT     GENERATED ALWAYS AS (COALESCE(endpoint_name, '*')) STORED,  -- * = every endpoint
    lifecycle_status_code    TEXT     NOT NULL DEFAULT 'ACTIVE',  -- lifecycle_status; only ACTIVE rows are read
    record_remarks           TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version                  INTEGER  NOT NULL DEFAULT 0,         -- optimistic lock, raised by every guarded update
    ip_address               BLOB     NULL,                       -- of the caller, IPv4 or IPv6
    created_at               TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by               INTEGER  NULL,
    created_by_name          TEXT     NULL,
    updated_at               TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by               INTEGER  NULL,
    updated_by_name          TEXT     NULL,
    deleted                  INTEGER  NOT NULL DEFAULT 0,         -- 1 = soft-deleted
    live_key                 INTEGER  GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED,  -- NULL once soft-deleted, so that a deleted row frees its key
    CONSTRAINT chk_reg_prov_http_cfg__scope CHECK ((scope_code = 'TASK') = (task_type IS NOT NULL)),
    CONSTRAINT chk_reg_prov_http_cfg__range CHECK (effective_from < effective_to)
);
CREATE UNIQUE INDEX uk_reg_prov_http_cfg__dim_from ON reg_prov_http_cfg (provenance_id, scope_code, task_type_key, endpoint_name_key, effective_from, live_key);
CREATE INDEX idx_reg_prov_http_cfg__dim_to ON reg_prov_http_cfg (provenance_id, scope_code, task_type_key, effective_to);
CREATE INDEX idx_reg_prov_http_cfg__active ON reg_prov_http_cfg (provenance_id, scope_code, task_type_key, effective_from DESC, id DESC);

-- How many ids and bytes travel together, and how many requests at once.
CREATE TABLE reg_prov_batching_cfg (
    id                              INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_id                   INTEGER  NOT NULL,                   -- reg_provenance.id
    scope_code                      TEXT     NOT NULL,                   -- SOURCE = all operations, TASK = the one in task_type
    task_type                       TEXT     NULL,                       -- an ing_operation; NULL when scope_code = SOURCE
    endpoint_name                   TEXT     NULL,                       -- NULL = all endpoints of the provenance
    effective_from                  TEXT     NOT NULL CHECK (effective_from LIKE '____-__-__ __:__:__.______'),  -- valid from, inclusive
    effective_to                    TEXT     NULL CHECK (effective_to LIKE '____-__-__ __:__:__.______'),  -- valid until, exclusive; NULL = open
    detail_fetch_batch_size         INTEGER  NULL,                       -- ids per DETAIL batch
    endpoint_id                     INTEGER  NULL,                       -- reg_prov_endpoint_def.id
    credential_name                 TEXT     NULL,                       -- NULL = any credential
    ids_param_name                  TEXT     NULL,
    ids_join_delimiter              TEXT     NULL DEFAULT ',',
    max_ids_per_request             INTEGER  NULL,                       -- hard cap
    prefer_compact_payload          INTEGER  NOT NULL DEFAULT 1,
    payload_compress_strategy_code  TEXT     NOT NULL,                   -- payload_compress_strategy
    app_parallelism_degree          INTEGER  NULL,
    per_host_concurrency_limit      INTEGER  NULL,
    http_conn_pool_size             INTEGER  NULL,
    backpressure_strategy_code      TEXT     NOT NULL,                   -- backpressure_strategy
    request_template_json           TEXT     NULL CHECK (request_template_json IS NULL OR json_valid(request_template_json)),  -- internal field = query or body
    two_phase_enabled               INTEGER  NULL,                       -- ids first, details after; NULL = as the endpoint says
    two_phase_threshold             INTEGER  NULL,                       -- fewer ids: stay in one phase
    combine_threshold               INTEGER  NULL,                       -- fewer ids: join with the next batch
    extra                           TEXT     NULL CHECK (extra IS NULL OR json_valid(extra)),  -- what no column holds
    task_type_key                   TEXT     GENERATED ALWAYS AS (COALESCE(task_type, 'ALL')) STORED,  -- ALL = every operation
    endpoint_name_key               TEXT     GENERATED ALWAYS AS (COALESCE(endpoint_name, '*')) STORED,  -- * = every endpoint
    credential_name_key             TEXT     GENERATED ALWAYS AS (COALESCE(credential_name, '*')) STORED,  -- * = every credential
    lifecycle_status_code           TEXT     NOT NULL DEFAULT 'ACTIVE',  -- lifecycle_status; only ACTIVE rows are read
    record_remarks                  TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version                         INTEGER  NOT NULL DEFAULT 0,         -- optimistic lock, raised by every guarded update
    ip_address                      BLOB     NULL,                       -- of the caller, IPv4 or IPv6
    created_at                      TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by                      INTEGER  NULL,
    created_by_name                 TEXT     NULL,
    updated_at                      TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by                      INTEGER  NULL,
    updated_by_name                 TEXT     NULL,
    deleted                         INTEGER  NOT NULL DEFAULT 0,         -- 1 = soft-deleted
    live_key                        INTEGER  GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED,  -- NULL once soft-deleted, so that a deleted row frees its key
    CONSTRAINT chk_reg_prov_batching_cfg__scope CHECK ((scope_code = 'TASK') = (task_type IS NOT NULL)),
    CONSTRAINT chk_reg_prov_batching_cfg__range CHECK (effective_from < effective_to)
);
CREATE UNIQUE INDEX uk_reg_prov_batching_cfg__dim_from ON reg_prov_batching_cfg (provenance_id, scope_code, task_type_key, endpoint_name_key, credential_name_key, effective_from, live_key);
CREATE INDEX idx_reg_prov_batching_cfg__dim_to ON reg_prov_batching_cfg (provenance_id, scope_code, task_type_key, effective_to);
CREATE INDEX idx_reg_prov_batching_cfg__active ON reg_prov_batching_cfg (provenance_id, scope_code, task_type_key, effective_from DESC, id DESC);
CREATE INDEX idx_reg_prov_batching_cfg__by_ep_cred ON reg_prov_batching_cfg (provenance_id, scope_code, task_type_key, endpoint_id, credential_name);

-- What is tried again, how often and how slowly.
CREATE TABLE reg_prov_retry_cfg (
    id                        INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_id             INTEGER  NOT NULL,                   -- reg_provenance.id
    scope_code                TEXT     NOT NULL,                   -- SOURCE = all operations, TASK = the one in task_type
    task_type                 TEXT     NULL,                       -- an ing_operation; NULL when scope_code = SOURCE
    endpoint_name             TEXT     NULL,                       -- NULL = all endpoints of the provenance
    effective_from            TEXT     NOT NULL CHECK (effective_from LIKE '____-__-__ __:__:__.______'),  -- valid from, inclusive
    effective_to              TEXT     NULL CHECK (effective_to LIKE '____-__-__ __:__:__.______'),  -- valid until, exclusive; NULL = open
    max_retry_times           INTEGER  NULL,                       -- after the first try; 0 = never
    backoff_policy_type_code  TEXT     NOT NULL,                   -- backoff_policy_type
    initial_delay_millis      INTEGER  NULL,
    max_delay_millis          INTEGER  NULL,
    exp_multiplier_value      REAL     NULL,
    jitter_factor_ratio       REAL     NULL,                       -- 0 to 1
    retry_http_status_json    TEXT     NULL CHECK (retry_http_status_json IS NULL OR json_valid(retry_http_status_json)),
    giveup_http_status_json   TEXT     NULL CHECK (giveup_http_status_json IS NULL OR json_valid(giveup_http_status_json)),
    retry_on_network_error    INTEGER  NOT NULL DEFAULT 1,
    circuit_break_threshold   INTEGER  NULL,                       -- failures in a row that open the breaker
    circuit_cooldown_millis   INTEGER  NULL,
    extra                     TEXT     NULL CHECK (extra IS NULL OR json_valid(extra)),  -- what no column holds
    task_type_key             TEXT     GENERATED ALWAYS AS (COALESCE(task_type, 'ALL')) STORED,  -- ALL = every operation
    endpoint_name_key         TEXT     GENERATED ALWAYS AS (COALESCE(endpoint_name, '*')) STORED,  -- * = every endpoint
    lifecycle_status_code     TEXT     NOT NULL DEFAULT 'ACTIVE',  -- lifecycle_status; only ACTIVE rows are read
    record_remarks            TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version                   INTEGER  NOT NULL DEFAULT 0,         -- optimistic lock, raised by every guarded update
    ip_address                BLOB     NULL,                       -- of the caller, IPv4 or IPv6
    created_at                TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by                INTEGER  NULL,
    created_by_name           TEXT     NULL,
    updated_at                TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by                INTEGER  NULL,
    updated_by_name           TEXT     NULL,
    deleted                   INTEGER  NOT NULL DEFAULT 0,         -- 1 = soft-deleted
    live_key                  INTEGER  GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED,  -- NULL once soft-deleted, so that a deleted row frees its key
    CONSTRAINT chk_reg_prov_retry_cfg__scope CHECK ((scope_code = 'TASK') = (task_type IS NOT NULL)),
    CONSTRAINT chk_reg_prov_retry_cfg__range CHECK (effective_from < effective_to)
);
CREATE UNIQUE INDEX uk_reg_prov_retry_cfg__dim_from ON reg_prov_retry_cfg (provenance_id, scope_code, task_type_key, endpoint_name_key, effective_from, live_key);
CREATE INDEX idx_reg_prov_retry_cfg__dim_to ON reg_prov_retry_cfg (provenance_id, scope_code, task_type_key, effective_to);
CREATE INDEX idx_reg_prov_retry_cfg__active ON reg_prov_retry_cfg (provenance_id, scope_code, task_type_key, effective_from DESC, id DESC);

-- How fast we may be. Endpoints and provenances that share an allowance name the same rate_key.
CREATE TABLE reg_prov_rate_limit_cfg (
    id                             INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_id                  INTEGER  NOT NULL,                   -- reg_provenance.id
    scope_code                     TEXT     NOT NULL,                   -- SOURCE = all operations, TASK = the one in task_type
    task_type                      TEXT     NULL,                       -- an ing_operation; NULL when scope_code = SOURCE
    endpoint_name                  TEXT     NULL,                       -- NULL = all endpoints of the provenance
    effective_from                 TEXT     NOT NULL CHECK (effective_from LIKE '____-__-__ __:__:__.______'),  -- valid from, inclusive
    effective_to                   TEXT     NULL CHECK (effective_to LIKE '____-__-__ __:__:__.______'),  -- valid until, exclusive; NULL = open
    rate_tokens_per_second         NUMERIC  NULL,                       -- refill; below 1 is allowed
    burst_bucket_capacity          INTEGER  NULL,
    max_concurrent_requests        INTEGER  NULL,                       -- in flight at once
    per_credential_qps_limit       NUMERIC  NULL,
    bucket_granularity_scope_code  TEXT     NOT NULL,                   -- bucket_granularity_scope
    smoothing_window_millis        INTEGER  NULL,
    respect_server_rate_header     INTEGER  NOT NULL DEFAULT 1,
    endpoint_id                    INTEGER  NULL,                       -- reg_prov_endpoint_def.id
    credential_name                TEXT     NULL,                       -- NULL = any credential
    rate_key                       TEXT     NULL,                       -- shared name; NULL = one per provenance
    request_cost                   NUMERIC  NULL,                       -- tokens one request takes; NULL = 1
    quota_json                     TEXT     NULL CHECK (quota_json IS NULL OR json_valid(quota_json)),  -- amounts per hour, day, ...
    adaptive_json                  TEXT     NULL CHECK (adaptive_json IS NULL OR json_valid(adaptive_json)),  -- warm-up, demote rate, floor, cool-down
    task_type_key                  TEXT     GENERATED ALWAYS AS (COALESCE(task_type, 'ALL')) STORED,  -- ALL = every operation
    endpoint_name_key              TEXT     GENERATED ALWAYS AS (COALESCE(endpoint_name, '*')) STORED,  -- * = every endpoint
    credential_name_key            TEXT     GENERATED ALWAYS AS (COALESCE(credential_name, '*')) STORED,  -- * = every credential
    lifecycle_status_code          TEXT     NOT NULL DEFAULT 'ACTIVE',  -- lifecycle_status; only ACTIVE rows are read
    record_remarks                 TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version                        INTEGER  NOT NULL DEFAULT 0,         -- optimistic lock, raised by every guarded update
    ip_address                     BLOB     NULL,                       -- of the caller, IPv4 or IPv6
    created_at                     TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by                     INTEGER  NULL,
    created_by_name                TEXT     NULL,
    updated_at                     TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by                     INTEGER  NULL,
    updated_by_name                TEXT     NULL,
    deleted                        INTEGER  NOT NULL DEFAULT 0,         -- 1 = soft-deleted
    live_key                       INTEGER  GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED,  -- NULL once soft-deleted, so that a deleted row frees its key
    CONSTRAINT chk_reg_prov_rate_limit_cfg__scope CHECK ((scope_code = 'TASK') = (task_type IS NOT NULL)),
    CONSTRAINT chk_reg_prov_rate_limit_cfg__range CHECK (effective_from < effective_to)
);
CREATE UNIQUE INDEX uk_reg_prov_rate_limit_cfg__dim_from ON reg_prov_rate_limit_cfg (provenance_id, scope_code, task_type_key, endpoint_name_key, credential_name_key, effective_from, live_key);
CREATE INDEX idx_reg_prov_rate_limit_cfg__dim_to ON reg_prov_rate_limit_cfg (provenance_id, scope_code, task_type_key, effective_to);
CREATE INDEX idx_reg_prov_rate_limit_cfg__active ON reg_prov_rate_limit_cfg (provenance_id, scope_code, task_type_key, effective_from DESC, id DESC);
CREATE INDEX idx_reg_prov_rate_limit_cfg__by_ep_cred ON reg_prov_rate_limit_cfg (provenance_id, scope_code, task_type_key, endpoint_id, credential_name);
