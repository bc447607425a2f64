-- The Registry: the neutral query language, and how each provenance says it.
-- Instants are UTC text with microseconds, 26 characters such as 2025-09-22 21:05:00.000000, which sorts by time.
-- The unnamed CHECKs guard what MySQL guards by type (JSON, instants); text lengths are enforced by MySQL only.
-- updated_at is set by the application, because SQLite has no ON UPDATE.

-- The fields a query may speak of, the same for all provenances.
CREATE TABLE reg_expr_field_dict (
    id                INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    field_key         TEXT     NOT NULL,                   -- e.g. entrez_date, tiab
    display_name      TEXT     NULL,
    description       TEXT     NULL,
    data_type_code    TEXT     NOT NULL,                   -- reg_data_type
    cardinality_code  TEXT     NOT NULL DEFAULT 'SINGLE',  -- reg_cardinality
    exposable         INTEGER  NOT NULL DEFAULT 1,         -- 0 = internal
    is_date           INTEGER  NOT NULL DEFAULT 0,         -- repeats data_type_code for quick filters
    record_remarks    TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version           INTEGER  NOT NULL DEFAULT 0,         -- optimistic lock, raised by every guarded update
    ip_address        BLOB     NULL,                       -- of the caller, IPv4 or IPv6
    created_at        TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by        INTEGER  NULL,
    created_by_name   TEXT     NULL,
    updated_at        TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by        INTEGER  NULL,
    updated_by_name   TEXT     NULL,
    deleted           INTEGER  NOT NULL DEFAULT 0,         -- 1 = soft-deleted
    live_key          INTEGER  GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED  -- NULL once soft-deleted, so that a deleted row frees its key
);
CREATE UNIQUE INDEX uk_expr_field_key ON reg_expr_field_dict (field_key, live_key);
CREATE INDEX idx_expr_field__updated ON reg_expr_field_dict (updated_at);

-- Our parameter names to theirs.
CREATE TABLE reg_prov_api_param_map (
    id                   INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_id        INTEGER  NOT NULL,                   -- reg_provenance.id
    scope_code           TEXT     NOT NULL DEFAULT 'SOURCE',  -- SOURCE = all operations, TASK = the one in task_type
    task_type            TEXT     NULL,                       -- an ing_operation; NULL when scope_code = SOURCE
    endpoint_name        TEXT     NULL,                       -- NULL = all endpoints of the provenance
    operation_code       TEXT     NOT NULL,                   -- reg_operation: of the endpoint, not of the ingest
    std_key              TEXT     NOT NULL,                   -- our key: from, to, query, limit, ...
    provider_param_name  TEXT     NOT NULL,
    transform_code       TEXT     NULL,                       -- reg_transform
    location             TEXT     NULL,                       -- inbound_location; NULL = QUERY
    default_value        TEXT     NULL,
    is_required          INTEGER  NOT NULL DEFAULT 0,         -- 1 = no request without it
    value_expr           TEXT     NULL,                       -- template of the value
    notes                TEXT     NULL CHECK (notes IS NULL OR json_valid(notes)),
    effective_from       TEXT     NOT NULL CHECK (effective_from LIKE '____-__-__ __:__:__.______'),  -- valid from, inclusive
    effective_to         TEXT     NULL CHECK (effective_to LIKE '____-__-__ __:__:__.______'),  -- valid until, exclusive; NULL = open
    task_type_key        TEXT     GENERATED ALWAYS AS (COALESCE(task_type, 'ALL')) STORED,  -- ALL = every operation
    endpoint_name_key    TEXT     GENERATED ALWAYS AS (COALESCE(endpoint_name, '*')) STORED,  -- * = every endpoint
    record_remarks       TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version              INTEGER  NOT NULL DEFAULT 0,         -- optimistic lock, raised by every guarded update
    ip_address           BLOB     NULL,                       -- of the caller, IPv4 or IPv6
    created_at           TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by           INTEGER  NULL,
    created_by_name      TEXT     NULL,
    updated_at           TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by           INTEGER  NULL,
    updated_by_name      TEXT     NULL,
    deleted              INTEGER  NOT NULL DEFAULT 0,         -- 1 = soft-deleted
    live_key             INTEGER  GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED,  -- NULL once soft-deleted, so that a deleted row frees its key
    CONSTRAINT chk_reg_prov_api_param_map__scope CHECK ((scope_code = 'TASK') = (task_type IS NOT NULL)),
    CONSTRAINT ck_param_map_range CHECK (effective_from < effective_to)
);
CREATE UNIQUE INDEX uk_param_map__dim_from ON reg_prov_api_param_map (provenance_id, scope_code, task_type_key, endpoint_name_key, operation_code, std_key, effective_from, live_key);
CREATE INDEX idx_param_map_lookup ON reg_prov_api_param_map (provenance_id, operation_code, std_key);
CREATE INDEX idx_param_map_rev ON reg_prov_api_param_map (provenance_id, operation_code, provider_param_name);
CREATE INDEX idx_param_map_updated ON reg_prov_api_param_map (updated_at);

-- What a provenance can be asked about a field.
CREATE TABLE reg_prov_expr_capability (
    id                           INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_id                INTEGER  NOT NULL,                          -- reg_provenance.id
    scope_code                   TEXT     NOT NULL DEFAULT 'SOURCE',         -- SOURCE = all operations, TASK = the one in task_type
    task_type                    TEXT     NULL,                              -- an ing_operation; NULL when scope_code = SOURCE
    field_key                    TEXT     NOT NULL,                          -- reg_expr_field_dict.field_key
    effective_from               TEXT     NOT NULL CHECK (effective_from LIKE '____-__-__ __:__:__.______'),  -- valid from, inclusive
    effective_to                 TEXT     NULL CHECK (effective_to LIKE '____-__-__ __:__:__.______'),  -- valid until, exclusive; NULL = open
    ops                          TEXT     NOT NULL CHECK (json_valid(ops)),  -- allowed operators
    negatable_ops                TEXT     NULL CHECK (negatable_ops IS NULL OR json_valid(negatable_ops)),  -- NULL = same as ops
    supports_not                 INTEGER  NOT NULL DEFAULT 1,                -- 0 = NOT is never allowed
    term_matches                 TEXT     NULL CHECK (term_matches IS NULL OR json_valid(term_matches)),  -- allowed match types of TERM
    term_case_sensitive_allowed  INTEGER  NOT NULL DEFAULT 0,
    term_allow_blank             INTEGER  NOT NULL DEFAULT 0,
    term_min_len                 INTEGER  NOT NULL DEFAULT 0,                -- 0 = no limit
    term_max_len                 INTEGER  NOT NULL DEFAULT 0,                -- 0 = no limit
    term_pattern                 TEXT     NULL,
    in_max_size                  INTEGER  NOT NULL DEFAULT 0,                -- 0 = no limit
    in_case_sensitive_allowed    INTEGER  NOT NULL DEFAULT 0,
    range_kind_code              TEXT     NOT NULL DEFAULT 'NONE',           -- reg_range_kind
    range_allow_open_start       INTEGER  NOT NULL DEFAULT 1,
    range_allow_open_end         INTEGER  NOT NULL DEFAULT 1,
    range_allow_closed_at_infty  INTEGER  NOT NULL DEFAULT 0,
    date_min                     TEXT     NULL,
    date_max                     TEXT     NULL,
    datetime_min                 TEXT     NULL CHECK (datetime_min LIKE '____-__-__ __:__:__.______'),
    datetime_max                 TEXT     NULL CHECK (datetime_max LIKE '____-__-__ __:__:__.______'),
    number_min                   NUMERIC  NULL,
    number_max                   NUMERIC  NULL,
    exists_supported             INTEGER  NOT NULL DEFAULT 0,
    token_kinds                  TEXT     NULL CHECK (token_kinds IS NULL OR json_valid(token_kinds)),  -- lower case
    token_value_pattern          TEXT     NULL,
    task_type_key                TEXT     GENERATED ALWAYS AS (COALESCE(task_type, 'ALL')) STORED,  -- ALL = every operation
    record_remarks               TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version                      INTEGER  NOT NULL DEFAULT 0,                -- optimistic lock, raised by every guarded update
    ip_address                   BLOB     NULL,                              -- of the caller, IPv4 or IPv6
    created_at                   TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by                   INTEGER  NULL,
    created_by_name              TEXT     NULL,
    updated_at                   TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by                   INTEGER  NULL,
    updated_by_name              TEXT     NULL,
    deleted                      INTEGER  NOT NULL DEFAULT 0,                -- 1 = soft-deleted
    live_key                     INTEGER  GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED,  -- NULL once soft-deleted, so that a deleted row frees its key
    CONSTRAINT chk_reg_prov_expr_capability__scope CHECK ((scope_code = 'TASK') = (task_type IS NOT NULL)),
    CONSTRAINT ck_cap_range CHECK (effective_from < effective_to)
);
CREATE UNIQUE INDEX uk_cap__dim_from ON reg_prov_expr_capability (provenance_id, scope_code, task_type_key, field_key, effective_from, live_key);
CREATE INDEX idx_cap_updated ON reg_prov_expr_capability (updated_at);
CREATE INDEX idx_cap_lookup ON reg_prov_expr_capability (provenance_id, field_key);

-- How one atom of a query is written for a provenance.
CREATE TABLE reg_prov_expr_render_rule (
    id               INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_id    INTEGER  NOT NULL,                   -- reg_provenance.id
    scope_code       TEXT     NOT NULL DEFAULT 'SOURCE',  -- SOURCE = all operations, TASK = the one in task_type
    task_type        TEXT     NULL,                       -- an ing_operation; NULL when scope_code = SOURCE
    field_key        TEXT     NOT NULL,                   -- reg_expr_field_dict.field_key
    op_code          TEXT     NOT NULL,                   -- reg_expr_op
    match_type_code  TEXT     NULL,                       -- reg_match_type; NULL = any of them
    negated          INTEGER  NULL,                       -- NULL = both
    value_type_code  TEXT     NULL,                       -- value_type; NULL = any of them
    emit_type_code   TEXT     NOT NULL DEFAULT 'QUERY',   -- reg_emit_type
    match_type_key   TEXT     GENERATED ALWAYS AS (COALESCE(match_type_code, '*')) STORED,  -- not ANY: that is an item of reg_match_type
    negated_key      TEXT     GENERATED ALWAYS AS (CASE WHEN negated IS NULL THEN 'ANY' WHEN negated = 1 THEN 'T' ELSE 'F' END) STORED,
    value_type_key   TEXT     GENERATED ALWAYS AS (COALESCE(value_type_code, 'ANY')) STORED,  -- ANY is no value_type
    effective_from   TEXT     NOT NULL CHECK (effective_from LIKE '____-__-__ __:__:__.______'),  -- valid from, inclusive
    effective_to     TEXT     NULL CHECK (effective_to LIKE '____-__-__ __:__:__.______'),  -- valid until, exclusive; NULL = open
    template         TEXT     NULL,                       -- fragment of the query
    item_template    TEXT     NULL,                       -- one item of IN
    joiner           TEXT     NULL,                       -- between items
    wrap_group       INTEGER  NOT NULL DEFAULT 0,         -- 1 = parentheses
    params           TEXT     NULL CHECK (params IS NULL OR json_valid(params)),  -- for PARAMS: std_key = template
    fn_code          TEXT     NULL,                       -- function applied to the template
    task_type_key    TEXT     GENERATED ALWAYS AS (COALESCE(task_type, 'ALL')) STORED,  -- ALL = every operation
    record_remarks   TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version          INTEGER  NOT NULL DEFAULT 0,         -- optimistic lock, raised by every guarded update
    ip_address       BLOB     NULL,                       -- of the caller, IPv4 or IPv6
    created_at       TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by       INTEGER  NULL,
    created_by_name  TEXT     NULL,
    updated_at       TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by       INTEGER  NULL,
    updated_by_name  TEXT     NULL,
    deleted          INTEGER  NOT NULL DEFAULT 0,         -- 1 = soft-deleted
    live_key         INTEGER  GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED,  -- NULL once soft-deleted, so that a deleted row frees its key
    CONSTRAINT chk_reg_prov_expr_render_rule__scope CHECK ((scope_code = 'TASK') = (task_type IS NOT NULL)),
    CONSTRAINT ck_render_range CHECK (effective_from < effective_to)
);
CREATE UNIQUE INDEX uk_render__dim_from ON reg_prov_expr_render_rule (provenance_id, scope_code, task_type_key, field_key, op_code, match_type_key, negated_key, value_type_key, emit_type_code, effective_from, live_key);
CREATE INDEX idx_render_updated ON reg_prov_expr_render_rule (updated_at);
CREATE INDEX idx_render_lookup ON reg_prov_expr_render_rule (provenance_id, field_key, op_code);
