-- How far each namespace has come. Events are written first and only added; folding them gives the cursor again.
-- Instants are UTC text with microseconds, 26 characters such as 2025-09-22 21:05:00.000000, which sorts by time.
-- The unnamed CHECKs guard what MySQL guards by type (JSON, instants); text lengths are enforced by MySQL only.
-- updated_at is set by the application, because SQLite has no ON UPDATE.

-- The present value, moved forward only, by compare-and-swap on version. Values are exact as text; normalized_*
-- are for comparing (SQLite: exact up to 19 digits).
CREATE TABLE ing_cursor (
    id                    INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_code       TEXT     NOT NULL,                   -- reg_provenance.provenance_code
    endpoint_name         TEXT     NOT NULL,
    operation_code        TEXT     NOT NULL,                   -- ing_operation
    cursor_key            TEXT     NOT NULL,                   -- watermark key, e.g. updated_at
    namespace_scope_code  TEXT     NOT NULL DEFAULT 'GLOBAL',  -- ing_namespace_scope
    namespace_key         TEXT     NOT NULL DEFAULT '0000000000000000000000000000000000000000000000000000000000000000',  -- 64 zeros for GLOBAL
    cursor_type_code      TEXT     NOT NULL,                   -- ing_cursor_type
    cursor_value          TEXT     NOT NULL,
    observed_max_value    TEXT     NULL,                       -- largest seen; evidence, never the watermark
    normalized_instant    TEXT     NULL CHECK (normalized_instant LIKE '____-__-__ __:__:__.______'),  -- filled for TIME
    normalized_numeric    NUMERIC  NULL,                       -- filled for ID
    schedule_instance_id  INTEGER  NULL,
    plan_id               INTEGER  NULL,
    slice_id              INTEGER  NULL,
    task_id               INTEGER  NULL,
    last_run_id           INTEGER  NULL,
    last_batch_id         INTEGER  NULL,
    expr_hash             TEXT     NULL,
    record_remarks        TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version               INTEGER  NOT NULL DEFAULT 0,         -- optimistic lock, raised by every guarded update
    ip_address            BLOB     NULL,                       -- of the caller, IPv4 or IPv6
    created_at            TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by            INTEGER  NULL,
    created_by_name       TEXT     NULL,
    updated_at            TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by            INTEGER  NULL,
    updated_by_name       TEXT     NULL,
    deleted               INTEGER  NOT NULL DEFAULT 0,         -- 1 = soft-deleted
    CONSTRAINT chk_ing_cursor__operation CHECK (operation_code IN ('HARVEST', 'BACKFILL', 'UPDATE', 'METRICS')),
    CONSTRAINT chk_ing_cursor__namespace CHECK (namespace_scope_code IN ('GLOBAL', 'EXPR', 'CUSTOM')),
    CONSTRAINT chk_ing_cursor__global CHECK (
        namespace_scope_code <> 'GLOBAL' OR namespace_key = '0000000000000000000000000000000000000000000000000000000000000000'),
    CONSTRAINT chk_ing_cursor__type CHECK (cursor_type_code IN ('TIME', 'ID', 'TOKEN')),
    CONSTRAINT chk_ing_cursor__comparable CHECK (
        (cursor_type_code <> 'TIME' OR normalized_instant IS NOT NULL) AND (cursor_type_code <> 'ID' OR normalized_numeric IS
        NOT NULL))
);
CREATE UNIQUE INDEX uk_cursor_ns ON ing_cursor (provenance_code, endpoint_name, operation_code, cursor_key, namespace_scope_code, namespace_key);
CREATE INDEX idx_cursor_src_key ON ing_cursor (provenance_code, operation_code, cursor_key);
CREATE INDEX idx_cursor_sort_time ON ing_cursor (cursor_type_code, normalized_instant);
CREATE INDEX idx_cursor_sort_id ON ing_cursor (cursor_type_code, normalized_numeric);
CREATE INDEX idx_cursor_lineage ON ing_cursor (schedule_instance_id, plan_id, slice_id, task_id, last_run_id, last_batch_id);
CREATE INDEX idx_audit_deleted_upd__ing_cursor ON ing_cursor (deleted, updated_at);
CREATE INDEX idx_audit_created_by__ing_cursor ON ing_cursor (created_by);
CREATE INDEX idx_audit_updated_by__ing_cursor ON ing_cursor (updated_by);

-- One append-only fact that a cursor moved, or why it did not.
CREATE TABLE ing_cursor_event (
    id                    INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_code       TEXT     NOT NULL,            -- reg_provenance.provenance_code
    endpoint_name         TEXT     NOT NULL,
    operation_code        TEXT     NOT NULL,            -- ing_operation
    cursor_key            TEXT     NOT NULL,
    namespace_scope_code  TEXT     NOT NULL,            -- ing_namespace_scope
    namespace_key         TEXT     NOT NULL DEFAULT '0000000000000000000000000000000000000000000000000000000000000000',  -- 64 zeros for GLOBAL
    cursor_type_code      TEXT     NOT NULL,            -- ing_cursor_type
    prev_value            TEXT     NULL,                -- NULL on the first advance
    new_value             TEXT     NOT NULL,
    observed_max_value    TEXT     NULL,
    prev_instant          TEXT     NULL CHECK (prev_instant LIKE '____-__-__ __:__:__.______'),
    new_instant           TEXT     NULL CHECK (new_instant LIKE '____-__-__ __:__:__.______'),
    prev_numeric          NUMERIC  NULL,
    new_numeric           NUMERIC  NULL,
    window_from           TEXT     NULL CHECK (window_from LIKE '____-__-__ __:__:__.______'),  -- inclusive
    window_to             TEXT     NULL CHECK (window_to LIKE '____-__-__ __:__:__.______'),  -- exclusive
    direction_code        TEXT     NULL,                -- ing_cursor_direction
    reason                TEXT     NULL,                -- ing_cursor_reason; NO_FORWARD does not count as an advance
    idempotent_key        TEXT     NOT NULL,            -- one advance, one event
    schedule_instance_id  INTEGER  NULL,
    plan_id               INTEGER  NULL,
    slice_id              INTEGER  NULL,
    task_id               INTEGER  NULL,
    run_id                INTEGER  NULL,
    batch_id              INTEGER  NULL,
    expr_hash             TEXT     NULL,
    record_remarks        TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version               INTEGER  NOT NULL DEFAULT 0,  -- optimistic lock, raised by every guarded update
    ip_address            BLOB     NULL,                -- of the caller, IPv4 or IPv6
    created_at            TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by            INTEGER  NULL,
    created_by_name       TEXT     NULL,
    updated_at            TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by            INTEGER  NULL,
    updated_by_name       TEXT     NULL,
    deleted               INTEGER  NOT NULL DEFAULT 0,  -- 1 = soft-deleted
    CONSTRAINT chk_ing_cursor_event__operation CHECK (operation_code IN ('HARVEST', 'BACKFILL', 'UPDATE', 'METRICS')),
    CONSTRAINT chk_ing_cursor_event__namespace CHECK (namespace_scope_code IN ('GLOBAL', 'EXPR', 'CUSTOM')),
    CONSTRAINT chk_ing_cursor_event__global CHECK (
        namespace_scope_code <> 'GLOBAL' OR namespace_key = '0000000000000000000000000000000000000000000000000000000000000000'),
    CONSTRAINT chk_ing_cursor_event__type CHECK (cursor_type_code IN ('TIME', 'ID', 'TOKEN')),
    CONSTRAINT chk_ing_cursor_event__direction CHECK (direction_code IN ('FORWARD', 'BACKFILL')),
    CONSTRAINT chk_ing_cursor_event__window CHECK (window_from < window_to),
    CONSTRAINT chk_ing_cursor_event__comparable CHECK (
        (cursor_type_code <> 'TIME' OR new_instant IS NOT NULL) AND (cursor_type_code <> 'ID' OR new_numeric IS NOT NULL))
);
CREATE UNIQUE INDEX uk_cur_evt_idem ON ing_cursor_event (idempotent_key);
CREATE INDEX idx_cur_evt_timeline ON ing_cursor_event (provenance_code, endpoint_name, operation_code, cursor_key, namespace_scope_code, namespace_key, created_at);
CREATE INDEX idx_cur_evt_window ON ing_cursor_event (window_from, window_to);
CREATE INDEX idx_cur_evt_instant ON ing_cursor_event (cursor_type_code, new_instant);
CREATE INDEX idx_cur_evt_numeric ON ing_cursor_event (cursor_type_code, new_numeric);
CREATE INDEX idx_cur_evt_lineage ON ing_cursor_event (schedule_instance_id, plan_id, slice_id, task_id, run_id, batch_id);
CREATE INDEX idx_audit_deleted_upd__ing_cursor_event ON ing_cursor_event (deleted, updated_at);
CREATE INDEX idx_audit_created_by__ing_cursor_event ON ing_cursor_event (created_by);
CREATE INDEX idx_audit_updated_by__ing_cursor_event ON ing_cursor_event (updated_by);
