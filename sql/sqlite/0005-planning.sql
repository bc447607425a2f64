-- From a trigger to slices. Windows are half-open, [from, to), UTC, microseconds. There are no foreign keys: links
-- are logical, the code checks them.
-- Instants are UTC text with microseconds, 26 characters such as 2025-09-22 21:05:00.000000, which sorts by time.
-- The unnamed CHECKs guard what MySQL guards by type (JSON, instants); text lengths are enforced by MySQL only.
-- updated_at is set by the application, because SQLite has no ON UPDATE.

-- One trigger; the root of the lineage. The snapshots are evidence for a trigger that ended without a plan; the
-- plan is the source of truth.
CREATE TABLE ing_schedule_instance (
    id                          INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    scheduler_code              TEXT     NOT NULL DEFAULT 'DAGSTER',   -- ing_scheduler
    scheduler_job_id            TEXT     NULL,                         -- in the external scheduler
    scheduler_log_id            TEXT     NULL,                         -- its run or log id
    trigger_type_code           TEXT     NOT NULL DEFAULT 'SCHEDULE',  -- ing_trigger_type
    triggered_at                TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (triggered_at LIKE '____-__-__ __:__:__.______'),
    trigger_params              TEXT     NULL CHECK (trigger_params IS NULL OR json_valid(trigger_params)),  -- normalised arguments
    provenance_code             TEXT     NOT NULL,                     -- reg_provenance.provenance_code
    endpoint_name               TEXT     NULL,
    operation_code              TEXT     NULL,                         -- ing_operation
    provenance_config_snapshot  TEXT     NULL CHECK (provenance_config_snapshot IS NULL OR json_valid(provenance_config_snapshot)),
    expr_proto_hash             TEXT     NULL,
    expr_proto_snapshot         TEXT     NULL CHECK (expr_proto_snapshot IS NULL OR json_valid(expr_proto_snapshot)),
    problems                    TEXT     NULL CHECK (problems IS NULL OR json_valid(problems)),  -- why the declaration did not compile
    record_remarks              TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version                     INTEGER  NOT NULL DEFAULT 0,           -- optimistic lock, raised by every guarded update
    ip_address                  BLOB     NULL,                         -- of the caller, IPv4 or IPv6
    created_at                  TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by                  INTEGER  NULL,
    created_by_name             TEXT     NULL,
    updated_at                  TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by                  INTEGER  NULL,
    updated_by_name             TEXT     NULL,
    deleted                     INTEGER  NOT NULL DEFAULT 0,           -- 1 = soft-deleted
    CONSTRAINT chk_ing_schedule_instance__scheduler CHECK (scheduler_code IN ('DAGSTER', 'XXL', 'QUARTZ', 'SPRING', 'INTERNAL')),
    CONSTRAINT chk_ing_schedule_instance__trigger_type CHECK (trigger_type_code IN ('SCHEDULE', 'MANUAL', 'API', 'RETRY')),
    CONSTRAINT chk_ing_schedule_instance__operation CHECK (operation_code IN ('HARVEST', 'BACKFILL', 'UPDATE', 'METRICS'))
);
CREATE INDEX idx_sched_src ON ing_schedule_instance (scheduler_code, scheduler_job_id, scheduler_log_id);
CREATE INDEX idx_audit_deleted_upd__ing_schedule_instance ON ing_schedule_instance (deleted, updated_at);
CREATE INDEX idx_audit_created_by__ing_schedule_instance ON ing_schedule_instance (created_by);
CREATE INDEX idx_audit_updated_by__ing_schedule_instance ON ing_schedule_instance (updated_by);

-- One window, one spec, one strategy. The snapshots are frozen: executors read them and never the Registry.
CREATE TABLE ing_plan (
    id                          INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    schedule_instance_id        INTEGER  NOT NULL,
    plan_key                    TEXT     NOT NULL,                  -- same trigger, same key: a repeated trigger finds this row
    provenance_code             TEXT     NOT NULL,                  -- reg_provenance.provenance_code
    endpoint_name               TEXT     NOT NULL,
    operation_code              TEXT     NOT NULL,                  -- ing_operation
    namespace_scope_code        TEXT     NOT NULL,                  -- ing_namespace_scope of the cursor it moves
    namespace_key               TEXT     NOT NULL,                  -- 64 zeros for GLOBAL
    cursor_key                  TEXT     NOT NULL,                  -- watermark key of that cursor
    direction_code              TEXT     NOT NULL,                  -- ing_cursor_direction
    campaign                    TEXT     NULL,                      -- names a backfill or an intended re-run
    expr_proto_hash             TEXT     NOT NULL,                  -- of the window-free expression
    expr_proto_snapshot         TEXT     NULL CHECK (expr_proto_snapshot IS NULL OR json_valid(expr_proto_snapshot)),
    provenance_config_snapshot  TEXT     NULL CHECK (provenance_config_snapshot IS NULL OR json_valid(provenance_config_snapshot)),  -- the declaration as read
    provenance_config_hash      TEXT     NULL,
    spec_fingerprint            TEXT     NOT NULL,                  -- hash of spec_snapshot
    spec_snapshot               TEXT     NOT NULL CHECK (json_valid(spec_snapshot)),  -- the whole compiled spec
    window_from                 TEXT     NULL CHECK (window_from LIKE '____-__-__ __:__:__.______'),  -- inclusive
    window_to                   TEXT     NULL CHECK (window_to LIKE '____-__-__ __:__:__.______'),  -- exclusive
    slice_strategy_code         TEXT     NOT NULL,                  -- ing_slice_strategy
    slice_params                TEXT     NULL CHECK (slice_params IS NULL OR json_valid(slice_params)),
    status_code                 TEXT     NOT NULL DEFAULT 'DRAFT',  -- ing_plan_status; the reason of PARTIAL is in record_remarks
    record_remarks              TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version                     INTEGER  NOT NULL DEFAULT 0,        -- optimistic lock, raised by every guarded update
    ip_address                  BLOB     NULL,                      -- of the caller, IPv4 or IPv6
    created_at                  TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by                  INTEGER  NULL,
    created_by_name             TEXT     NULL,
    updated_at                  TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by                  INTEGER  NULL,
    updated_by_name             TEXT     NULL,
    deleted                     INTEGER  NOT NULL DEFAULT 0,        -- 1 = soft-deleted
    CONSTRAINT chk_ing_plan__operation CHECK (operation_code IN ('HARVEST', 'BACKFILL', 'UPDATE', 'METRICS')),
    CONSTRAINT chk_ing_plan__strategy CHECK (
        slice_strategy_code IN ('TIME', 'DATE', 'ID_RANGE', 'PAGE_RANGE', 'CURSOR_LANDMARK', 'VOLUME_BUDGET', 'HYBRID',
        'SINGLE')),
    CONSTRAINT chk_ing_plan__namespace CHECK (namespace_scope_code IN ('GLOBAL', 'EXPR', 'CUSTOM')),
    CONSTRAINT chk_ing_plan__global CHECK (
        namespace_scope_code <> 'GLOBAL' OR namespace_key = '0000000000000000000000000000000000000000000000000000000000000000'),
    CONSTRAINT chk_ing_plan__direction CHECK (direction_code IN ('FORWARD', 'BACKFILL')),
    CONSTRAINT chk_ing_plan__status CHECK (status_code IN ('DRAFT', 'SLICING', 'READY', 'PARTIAL', 'FAILED', 'COMPLETED', 'CANCELLED')),
    CONSTRAINT chk_ing_plan__window CHECK (window_from < window_to)
);
CREATE UNIQUE INDEX uk_plan_key ON ing_plan (plan_key);
CREATE INDEX idx_plan_sched ON ing_plan (schedule_instance_id);
CREATE INDEX idx_plan_prov_op ON ing_plan (provenance_code, operation_code, created_at);
CREATE INDEX idx_plan_endpoint ON ing_plan (endpoint_name);
CREATE INDEX idx_plan_status ON ing_plan (status_code);
CREATE INDEX idx_plan_expr ON ing_plan (expr_proto_hash);
CREATE INDEX idx_plan_fingerprint ON ing_plan (spec_fingerprint);
CREATE INDEX idx_plan_prov_config_hash ON ing_plan (provenance_config_hash);
CREATE INDEX idx_plan_namespace ON ing_plan (provenance_code, endpoint_name, operation_code, namespace_scope_code, namespace_key);
CREATE INDEX idx_audit_deleted_upd__ing_plan ON ing_plan (deleted, updated_at);
CREATE INDEX idx_audit_created_by__ing_plan ON ing_plan (created_by);
CREATE INDEX idx_audit_updated_by__ing_plan ON ing_plan (updated_by);

-- The smallest unit of parallel work. From DISPATCHED on its status is that of its only task.
CREATE TABLE ing_plan_slice (
    id                    INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    plan_id               INTEGER  NOT NULL,
    parent_slice_id       INTEGER  NULL,                        -- the slice this one was cut out of, after a re-slice
    provenance_code       TEXT     NOT NULL,                    -- reg_provenance.provenance_code
    endpoint_name         TEXT     NOT NULL,
    operation_code        TEXT     NOT NULL,                    -- ing_operation
    slice_no              INTEGER  NOT NULL,                    -- from 0
    slice_signature_hash  TEXT     NOT NULL,                    -- of the boundaries; the same slice is not made twice
    slice_spec            TEXT     NOT NULL CHECK (json_valid(slice_spec)),  -- the boundaries
    window_from           TEXT     NULL CHECK (window_from LIKE '____-__-__ __:__:__.______'),  -- inclusive; NULL when not cut by time
    window_to             TEXT     NULL CHECK (window_to LIKE '____-__-__ __:__:__.______'),  -- exclusive
    expr_hash             TEXT     NOT NULL,                    -- of the localized expression
    expr_snapshot         TEXT     NULL CHECK (expr_snapshot IS NULL OR json_valid(expr_snapshot)),  -- the localized expression
    status_code           TEXT     NOT NULL DEFAULT 'PENDING',  -- ing_slice_status
    record_remarks        TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version               INTEGER  NOT NULL DEFAULT 0,          -- optimistic lock, raised by every guarded update
    ip_address            BLOB     NULL,                        -- of the caller, IPv4 or IPv6
    created_at            TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by            INTEGER  NULL,
    created_by_name       TEXT     NULL,
    updated_at            TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by            INTEGER  NULL,
    updated_by_name       TEXT     NULL,
    deleted               INTEGER  NOT NULL DEFAULT 0,          -- 1 = soft-deleted
    CONSTRAINT chk_ing_plan_slice__operation CHECK (operation_code IN ('HARVEST', 'BACKFILL', 'UPDATE', 'METRICS')),
    CONSTRAINT chk_ing_plan_slice__status CHECK (
        status_code IN ('PENDING', 'READY', 'DISPATCHED', 'EXECUTING', 'SUCCEEDED', 'FAILED', 'PARTIAL', 'CANCELLED')),
    CONSTRAINT chk_ing_plan_slice__window CHECK (window_from < window_to)
);
CREATE UNIQUE INDEX uk_slice_unique ON ing_plan_slice (plan_id, slice_no);
CREATE UNIQUE INDEX uk_slice_sig ON ing_plan_slice (plan_id, slice_signature_hash);
CREATE INDEX idx_slice_prov_status ON ing_plan_slice (provenance_code, status_code);
CREATE INDEX idx_slice_status ON ing_plan_slice (status_code);
CREATE INDEX idx_slice_expr ON ing_plan_slice (expr_hash);
CREATE INDEX idx_slice_plan_status ON ing_plan_slice (plan_id, status_code);
CREATE INDEX idx_slice_plan_window ON ing_plan_slice (plan_id, window_from);
CREATE INDEX idx_audit_deleted_upd__ing_plan_slice ON ing_plan_slice (deleted, updated_at);
CREATE INDEX idx_audit_created_by__ing_plan_slice ON ing_plan_slice (created_by);
CREATE INDEX idx_audit_updated_by__ing_plan_slice ON ing_plan_slice (updated_by);
