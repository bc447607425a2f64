-- The Registry: where a provenance is, what can be called there, with which credential and how often. Rows of
-- reg_prov_* are never edited: a change is a new row with a later effective_from. No secret is stored, only its
-- reference.
-- Instants are UTC text with microseconds, 26 characters such as 2025-09-22 21:05:00.000000, which sorts by time.
-- The unnamed CHECKs guard what MySQL guards by type (JSON, instants); text lengths are enforced by MySQL only.
-- updated_at is set by the application, because SQLite has no ON UPDATE.

-- Where data comes from.
CREATE TABLE reg_provenance (
    id                     INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_code        TEXT     NOT NULL,                   -- stable, lower case
    provenance_name        TEXT     NOT NULL,
    base_url_default       TEXT     NULL,                       -- unless the HTTP policy says otherwise
    timezone_default       TEXT     NOT NULL DEFAULT 'UTC',     -- IANA zone, for calendar alignment only
    docs_url               TEXT     NULL,
    is_active              INTEGER  NOT NULL DEFAULT 1,         -- 0 = not planned
    lifecycle_status_code  TEXT     NOT NULL DEFAULT 'ACTIVE',  -- lifecycle_status; only ACTIVE rows are read
    record_remarks         TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version                INTEGER  NOT NULL DEFAULT 0,         -- optimistic lock, raised by every guarded update
    ip_address             BLOB     NULL,                       -- of the caller, IPv4 or IPv6
    created_at             TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by             INTEGER  NULL,
    created_by_name        TEXT     NULL,
    updated_at             TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by             INTEGER  NULL,
    updated_by_name        TEXT     NULL,
    deleted                INTEGER  NOT NULL DEFAULT 0,         -- 1 = soft-deleted
    live_key               INTEGER  GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED  -- NULL once soft-deleted, so that a deleted row frees its key
);
CREATE UNIQUE INDEX uk_reg_provenance_code ON reg_provenance (provenance_code, live_key);

-- One callable of a provenance: its request as a template, where its answer keeps what we need, and what its
-- errors mean.
CREATE TABLE reg_prov_endpoint_def (
    id                     INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_id          INTEGER  NOT NULL,                   -- reg_provenance.id
    scope_code             TEXT     NOT NULL,                   -- SOURCE = all operations, TASK = the one in task_type
    task_type              TEXT     NULL,                       -- an ing_operation; NULL when scope_code = SOURCE
    endpoint_name          TEXT     NOT NULL,                   -- logical name, e.g. esearch
    effective_from         TEXT     NOT NULL CHECK (effective_from LIKE '____-__-__ __:__:__.______'),  -- valid from, inclusive
    effective_to           TEXT     NULL CHECK (effective_to LIKE '____-__-__ __:__:__.______'),  -- valid until, exclusive; NULL = open
    endpoint_usage_code    TEXT     NOT NULL,                   -- endpoint_usage
    http_method_code       TEXT     NOT NULL,                   -- http_method
    path_template          TEXT     NOT NULL,                   -- relative to the base URL, or absolute
    default_query_params   TEXT     NULL CHECK (default_query_params IS NULL OR json_valid(default_query_params)),  -- merged with what is known at run time
    default_body_payload   TEXT     NULL CHECK (default_body_payload IS NULL OR json_valid(default_body_payload)),
    request_content_type   TEXT     NULL,
    is_auth_required       INTEGER  NOT NULL DEFAULT 0,         -- 1 = never anonymous
    credential_hint_name   TEXT     NULL,
    page_param_name        TEXT     NULL,                       -- parameter names here win over the pagination policy
    page_size_param_name   TEXT     NULL,
    cursor_param_name      TEXT     NULL,
    ids_param_name         TEXT     NULL,                       -- carries the list of ids
    response_paths         TEXT     NULL CHECK (response_paths IS NULL OR json_valid(response_paths)),  -- where items, id, updatedAt, total, next page are
    output_mapping         TEXT     NULL CHECK (output_mapping IS NULL OR json_valid(output_mapping)),  -- field of a record = path in an item
    two_phase              TEXT     NULL CHECK (two_phase IS NULL OR json_valid(two_phase)),  -- the DETAIL endpoint that completes this one
    error_rules            TEXT     NULL CHECK (error_rules IS NULL OR json_valid(error_rules)),  -- status, header, body predicates and their meaning
    partitions             TEXT     NULL CHECK (partitions IS NULL OR json_valid(partitions)),  -- second dimension to cut a slice by at the time floor
    identity               TEXT     NULL CHECK (identity IS NULL OR json_valid(identity)),  -- how an item is known again and when it has changed
    task_type_key          TEXT     GENERATED ALWAYS AS (COALESCE(task_type, 'ALL')) STORED,  -- ALL = every operation
    lifecycle_status_code  TEXT     NOT NULL DEFAULT 'ACTIVE',  -- lifecycle_status; only ACTIVE rows are read
    record_remarks         TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version                INTEGER  NOT NULL DEFAULT 0,         -- optimistic lock, raised by every guarded update
    ip_address             BLOB     NULL,                       -- of the caller, IPv4 or IPv6
    created_at             TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by             INTEGER  NULL,
    created_by_name        TEXT     NULL,
    updated_at             TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by             INTEGER  NULL,
    updated_by_name        TEXT     NULL,
    deleted                INTEGER  NOT NULL DEFAULT 0,         -- 1 = soft-deleted
    live_key               INTEGER  GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED,  -- NULL once soft-deleted, so that a deleted row frees its key
    CONSTRAINT chk_reg_prov_endpoint_def__scope CHECK ((scope_code = 'TASK') = (task_type IS NOT NULL)),
    CONSTRAINT chk_reg_prov_endpoint_def__range CHECK (effective_from < effective_to)
);
CREATE UNIQUE INDEX uk_reg_prov_endpoint_def__dim_from ON reg_prov_endpoint_def (provenance_id, scope_code, task_type_key, endpoint_name, effective_from, live_key);
CREATE INDEX idx_reg_prov_endpoint_def__dim_to ON reg_prov_endpoint_def (provenance_id, scope_code, task_type_key, endpoint_name, effective_to);
CREATE INDEX idx_reg_prov_endpoint_def__usage ON reg_prov_endpoint_def (endpoint_usage_code);
CREATE INDEX idx_reg_prov_endpoint_def__active ON reg_prov_endpoint_def (provenance_id, scope_code, task_type_key, effective_from DESC, id DESC);

-- How requests are signed. Values are references to a secret store, never secrets. A rotation closes the old row
-- (effective_to) and adds a new one: only an open row counts as the preferred one.
CREATE TABLE reg_prov_credential (
    id                       INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_id            INTEGER  NOT NULL,                   -- reg_provenance.id
    scope_code               TEXT     NOT NULL,                   -- SOURCE = all operations, TASK = the one in task_type
    task_type                TEXT     NULL,                       -- an ing_operation; NULL when scope_code = SOURCE
    endpoint_name            TEXT     NULL,                       -- NULL = all endpoints of the provenance
    endpoint_id              INTEGER  NULL,                       -- reg_prov_endpoint_def.id; NULL = any endpoint
    credential_name          TEXT     NOT NULL,                   -- label
    auth_type                TEXT     NOT NULL,                   -- auth_type
    inbound_location_code    TEXT     NOT NULL,                   -- inbound_location
    credential_field_name    TEXT     NULL,                       -- header or parameter that carries it
    credential_value_prefix  TEXT     NULL,                       -- e.g. Bearer and a blank
    credential_value_ref     TEXT     NULL,                       -- reference, never the secret
    basic_username_ref       TEXT     NULL,                       -- reference
    basic_password_ref       TEXT     NULL,                       -- reference
    oauth_token_url          TEXT     NULL,
    oauth_client_id_ref      TEXT     NULL,                       -- reference
    oauth_client_secret_ref  TEXT     NULL,                       -- reference
    oauth_scope              TEXT     NULL,
    oauth_audience           TEXT     NULL,
    extra_json               TEXT     NULL CHECK (extra_json IS NULL OR json_valid(extra_json)),  -- signature algorithm, header templates, ...
    effective_from           TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (effective_from LIKE '____-__-__ __:__:__.______'),  -- valid from, inclusive
    effective_to             TEXT     NULL CHECK (effective_to LIKE '____-__-__ __:__:__.______'),  -- valid until, exclusive; NULL = open
    is_default_preferred     INTEGER  NOT NULL DEFAULT 0,         -- 1 = first choice of its dimension
    task_type_key            TEXT     GENERATED ALWAYS AS (COALESCE(task_type, 'ALL')) STORED,  -- ALL = every operation
    endpoint_name_key        TEXT     GENERATED ALWAYS AS (COALESCE(endpoint_name, '*')) STORED,  -- * = every endpoint
    endpoint_id_key          INTEGER  GENERATED ALWAYS AS (COALESCE(endpoint_id, 0)) STORED,  -- 0 = any endpoint
    preferred_1              TEXT     GENERATED ALWAYS AS (CASE WHEN is_default_preferred = 1 AND effective_to IS NULL THEN 'Y' END) STORED,  -- Y on the one preferred row
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
    CONSTRAINT chk_reg_prov_credential__scope CHECK ((scope_code = 'TASK') = (task_type IS NOT NULL)),
    CONSTRAINT chk_reg_prov_credential__range CHECK (effective_from < effective_to)
);
CREATE UNIQUE INDEX uk_reg_prov_credential__preferred_one ON reg_prov_credential (provenance_id, scope_code, task_type_key, endpoint_name_key, endpoint_id_key, preferred_1, live_key);
CREATE INDEX idx_reg_prov_credential__dim ON reg_prov_credential (provenance_id, scope_code, task_type_key, endpoint_id, credential_name);
CREATE INDEX idx_reg_prov_credential__effective ON reg_prov_credential (effective_from, effective_to);
CREATE INDEX idx_reg_prov_credential__active ON reg_prov_credential (provenance_id, scope_code, task_type_key, effective_from DESC, id DESC);

-- When a provenance is harvested without being asked.
CREATE TABLE reg_prov_schedule_cfg (
    id                     INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_id          INTEGER  NOT NULL,                   -- reg_provenance.id
    scope_code             TEXT     NOT NULL,                   -- SOURCE = all operations, TASK = the one in task_type
    task_type              TEXT     NULL,                       -- an ing_operation; NULL when scope_code = SOURCE
    endpoint_name          TEXT     NULL,                       -- NULL = all endpoints of the provenance
    effective_from         TEXT     NOT NULL CHECK (effective_from LIKE '____-__-__ __:__:__.______'),  -- valid from, inclusive
    effective_to           TEXT     NULL CHECK (effective_to LIKE '____-__-__ __:__:__.______'),  -- valid until, exclusive; NULL = open
    cron                   TEXT     NOT NULL,                   -- five fields, UTC
    courtesy               TEXT     NULL CHECK (courtesy IS NULL OR json_valid(courtesy)),  -- hours and loads the provenance asks us to respect
    is_enabled             INTEGER  NOT NULL DEFAULT 1,         -- 0 = declared but silent
    task_type_key          TEXT     GENERATED ALWAYS AS (COALESCE(task_type, 'ALL')) STORED,  -- ALL = every operation
    endpoint_name_key      TEXT     GENERATED ALWAYS AS (COALESCE(endpoint_name, '*')) STORED,  -- * = every endpoint
    lifecycle_status_code  TEXT     NOT NULL DEFAULT 'ACTIVE',  -- lifecycle_status; only ACTIVE rows are read
    record_remarks         TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version                INTEGER  NOT NULL DEFAULT 0,         -- optimistic lock, raised by every guarded update
    ip_address             BLOB     NULL,                       -- of the caller, IPv4 or IPv6
    created_at             TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by             INTEGER  NULL,
    created_by_name        TEXT     NULL,
    updated_at             TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by             INTEGER  NULL,
    updated_by_name        TEXT     NULL,
    deleted                INTEGER  NOT NULL DEFAULT 0,         -- 1 = soft-deleted
    live_key               INTEGER  GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED,  -- NULL once soft-deleted, so that a deleted row frees its key
    CONSTRAINT chk_reg_prov_schedule_cfg__scope CHECK ((scope_code = 'TASK') = (task_type IS NOT NULL)),
    CONSTRAINT chk_reg_prov_schedule_cfg__range CHECK (effective_from < effective_to)
);
CREATE UNIQUE INDEX uk_reg_prov_schedule_cfg__dim_from ON reg_prov_schedule_cfg (provenance_id, scope_code, task_type_key, endpoint_name_key, effective_from, live_key);
CREATE INDEX idx_reg_prov_schedule_cfg__dim_to ON reg_prov_schedule_cfg (provenance_id, scope_code, task_type_key, effective_to);
CREATE INDEX idx_reg_prov_schedule_cfg__active ON reg_prov_schedule_cfg (provenance_id, scope_code, task_type_key, effective_from DESC, id DESC);
