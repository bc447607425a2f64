-- From a queued task to committed batches.
-- Instants are UTC text with microseconds, 26 characters such as 2025-09-22 21:05:00.000000, which sorts by time.
-- The unnamed CHECKs guard what MySQL guards by type (JSON, instants); text lengths are enforced by MySQL only.
-- updated_at is set by the application, because SQLite has no ON UPDATE.

-- The queue between planner and executor: the work of one slice. Due are QUEUED rows whose scheduled_at is empty
-- or past, by priority, scheduled_at, id.
CREATE TABLE ing_task (
    id                    INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    schedule_instance_id  INTEGER  NOT NULL,
    plan_id               INTEGER  NOT NULL,
    slice_id              INTEGER  NOT NULL,                   -- one task per slice
    provenance_code       TEXT     NOT NULL,                   -- reg_provenance.provenance_code
    endpoint_name         TEXT     NOT NULL,
    operation_code        TEXT     NOT NULL,                   -- ing_operation
    credential_id         INTEGER  NULL,                       -- reg_prov_credential.id; NULL = anonymous
    params                TEXT     NULL CHECK (params IS NULL OR json_valid(params)),  -- normalised
    idempotent_key        TEXT     NOT NULL,                   -- a repeated derivation finds this row
    expr_hash             TEXT     NOT NULL,
    priority              INTEGER  NOT NULL DEFAULT 5,         -- 1 = first ... 9 = last
    lease_owner           TEXT     NULL,                       -- worker and nonce of this very claim: the fencing token
    leased_until          TEXT     NULL CHECK (leased_until LIKE '____-__-__ __:__:__.______'),  -- past = any worker may take it over
    lease_count           INTEGER  NOT NULL DEFAULT 0,         -- claims and renewals so far
    last_heartbeat_at     TEXT     NULL CHECK (last_heartbeat_at LIKE '____-__-__ __:__:__.______'),
    retry_count           INTEGER  NOT NULL DEFAULT 0,         -- attempts that ended badly
    last_error_code       TEXT     NULL,
    last_error_msg        TEXT     NULL,                       -- redacted
    status_code           TEXT     NOT NULL DEFAULT 'QUEUED',  -- ing_task_status
    scheduled_at          TEXT     NULL CHECK (scheduled_at LIKE '____-__-__ __:__:__.______'),  -- not before; NULL = at once
    started_at            TEXT     NULL CHECK (started_at LIKE '____-__-__ __:__:__.______'),
    finished_at           TEXT     NULL CHECK (finished_at LIKE '____-__-__ __:__:__.______'),
    scheduler_run_id      TEXT     NULL,
    correlation_id        TEXT     NULL,                       -- trace id
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
    CONSTRAINT chk_ing_task__operation CHECK (operation_code IN ('HARVEST', 'BACKFILL', 'UPDATE', 'METRICS')),
    CONSTRAINT chk_ing_task__status CHECK (
        status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING', 'SUCCEEDED', 'FAILED', 'PARTIAL', 'CANCELLED')),
    CONSTRAINT chk_ing_task__priority CHECK (priority BETWEEN 1 AND 9),
    CONSTRAINT chk_ing_task__lease CHECK ((lease_owner IS NULL) = (leased_until IS NULL)),
    CONSTRAINT chk_ing_task__finished CHECK (status_code NOT IN ('SUCCEEDED', 'FAILED', 'PARTIAL', 'CANCELLED') OR finished_at IS NOT NULL)
);
CREATE UNIQUE INDEX uk_task_idem ON ing_task (idempotent_key);
CREATE UNIQUE INDEX uk_task_slice ON ing_task (slice_id);
CREATE INDEX idx_task_slice ON ing_task (slice_id, status_code);
CREATE INDEX idx_task_src_op ON ing_task (provenance_code, operation_code, status_code);
CREATE INDEX idx_task_sched_at ON ing_task (status_code, scheduled_at);
CREATE INDEX idx_task_cred ON ing_task (credential_id);
CREATE INDEX idx_task_queue ON ing_task (status_code, leased_until, priority, scheduled_at, id);
CREATE INDEX idx_task_due ON ing_task (status_code, priority, scheduled_at, id);
CREATE INDEX idx_task_plan ON ing_task (plan_id, status_code);
CREATE INDEX idx_task_partition ON ing_task (provenance_code, endpoint_name, operation_code, status_code);
CREATE INDEX idx_audit_deleted_upd__ing_task ON ing_task (deleted, updated_at);
CREATE INDEX idx_audit_created_by__ing_task ON ing_task (created_by);
CREATE INDEX idx_audit_updated_by__ing_task ON ing_task (updated_by);

-- One attempt at a task.
CREATE TABLE ing_task_run (
    id                INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    task_id           INTEGER  NOT NULL,
    attempt_no        INTEGER  NOT NULL DEFAULT 1,          -- from 1
    provenance_code   TEXT     NOT NULL,                    -- reg_provenance.provenance_code
    endpoint_name     TEXT     NOT NULL,
    operation_code    TEXT     NOT NULL,                    -- ing_operation
    lease_owner       TEXT     NULL,                        -- the claim this attempt was made under
    status_code       TEXT     NOT NULL DEFAULT 'PLANNED',  -- ing_task_run_status
    checkpoint        TEXT     NULL CHECK (checkpoint IS NULL OR json_valid(checkpoint)),  -- where the next attempt goes on
    stats             TEXT     NULL CHECK (stats IS NULL OR json_valid(stats)),
    certificate       TEXT     NULL CHECK (certificate IS NULL OR json_valid(certificate)),  -- completeness: promised, landed, pages, stop reason
    error             TEXT     NULL,                        -- redacted
    window_from       TEXT     NULL CHECK (window_from LIKE '____-__-__ __:__:__.______'),  -- inclusive
    window_to         TEXT     NULL CHECK (window_to LIKE '____-__-__ __:__:__.______'),  -- exclusive
    started_at        TEXT     NULL CHECK (started_at LIKE '____-__-__ __:__:__.______'),
    finished_at       TEXT     NULL CHECK (finished_at LIKE '____-__-__ __:__:__.______'),
    last_heartbeat    TEXT     NULL CHECK (last_heartbeat LIKE '____-__-__ __:__:__.______'),
    scheduler_run_id  TEXT     NULL,
    correlation_id    TEXT     NULL,
    record_remarks    TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version           INTEGER  NOT NULL DEFAULT 0,          -- optimistic lock, raised by every guarded update
    ip_address        BLOB     NULL,                        -- of the caller, IPv4 or IPv6
    created_at        TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by        INTEGER  NULL,
    created_by_name   TEXT     NULL,
    updated_at        TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by        INTEGER  NULL,
    updated_by_name   TEXT     NULL,
    deleted           INTEGER  NOT NULL DEFAULT 0,          -- 1 = soft-deleted
    CONSTRAINT chk_ing_task_run__operation CHECK (operation_code IN ('HARVEST', 'BACKFILL', 'UPDATE', 'METRICS')),
    CONSTRAINT chk_ing_task_run__status CHECK (status_code IN ('PLANNED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'PARTIAL', 'CANCELLED')),
    CONSTRAINT chk_ing_task_run__window CHECK (window_from < window_to),
    CONSTRAINT chk_ing_task_run__finished CHECK (
        status_code NOT IN ('SUCCEEDED', 'FAILED', 'PARTIAL', 'CANCELLED') OR finished_at IS NOT NULL)
);
CREATE UNIQUE INDEX uk_run_attempt ON ing_task_run (task_id, attempt_no);
CREATE INDEX idx_run_prov_op_status ON ing_task_run (provenance_code, operation_code, status_code);
CREATE INDEX idx_run_task_status ON ing_task_run (task_id, status_code, started_at);
CREATE INDEX idx_run_owner ON ing_task_run (lease_owner);
CREATE INDEX idx_audit_deleted_upd__ing_task_run ON ing_task_run (deleted, updated_at);
CREATE INDEX idx_audit_created_by__ing_task_run ON ing_task_run (created_by);
CREATE INDEX idx_audit_updated_by__ing_task_run ON ing_task_run (updated_by);

-- One page of a run with its evidence; the smallest thing that commits, resumes and is replayed. A failed batch is
-- retried in place: same row, same position.
CREATE TABLE ing_task_run_batch (
    id                 INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    run_id             INTEGER  NOT NULL,
    task_id            INTEGER  NULL,
    slice_id           INTEGER  NULL,
    plan_id            INTEGER  NULL,
    expr_hash          TEXT     NULL,
    provenance_code    TEXT     NOT NULL,                    -- reg_provenance.provenance_code
    endpoint_name      TEXT     NOT NULL,
    operation_code     TEXT     NOT NULL,                    -- ing_operation
    batch_no           INTEGER  NOT NULL DEFAULT 1,          -- from 1, without gaps
    page_no            INTEGER  NULL,                        -- the n-th page of its slice, whatever the paging
    page_size          INTEGER  NULL,
    before_token       TEXT     NULL,                        -- the position it starts at, always filled: offset, token, URL
    before_token_hash  TEXT     NOT NULL,                    -- SHA-256 of before_token: one batch per position
    after_token        TEXT     NULL,                        -- the position after it
    after_token_hash   TEXT     NULL,                        -- SHA-256 of after_token
    idempotent_key     TEXT     NOT NULL,                    -- run and canonical position
    record_count       INTEGER  NOT NULL DEFAULT 0,
    status_code        TEXT     NOT NULL DEFAULT 'RUNNING',  -- ing_batch_status
    committed_at       TEXT     NULL CHECK (committed_at LIKE '____-__-__ __:__:__.______'),
    error              TEXT     NULL,                        -- redacted
    stats              TEXT     NULL CHECK (stats IS NULL OR json_valid(stats)),
    request            TEXT     NULL CHECK (request IS NULL OR json_valid(request)),  -- redacted digest
    response           TEXT     NULL CHECK (response IS NULL OR json_valid(response)),  -- redacted digest
    storage_key        TEXT     NULL,                        -- the raw body in the raw store
    record_remarks     TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version            INTEGER  NOT NULL DEFAULT 0,          -- optimistic lock, raised by every guarded update
    ip_address         BLOB     NULL,                        -- of the caller, IPv4 or IPv6
    created_at         TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by         INTEGER  NULL,
    created_by_name    TEXT     NULL,
    updated_at         TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by         INTEGER  NULL,
    updated_by_name    TEXT     NULL,
    deleted            INTEGER  NOT NULL DEFAULT 0,          -- 1 = soft-deleted
    CONSTRAINT chk_ing_task_run_batch__operation CHECK (operation_code IN ('HARVEST', 'BACKFILL', 'UPDATE', 'METRICS')),
    CONSTRAINT chk_ing_task_run_batch__status CHECK (status_code IN ('RUNNING', 'SUCCEEDED', 'FAILED', 'SKIPPED')),
    CONSTRAINT chk_ing_task_run_batch__committed CHECK (status_code <> 'SUCCEEDED' OR committed_at IS NOT NULL)
);
CREATE UNIQUE INDEX uk_run_batch_no ON ing_task_run_batch (run_id, batch_no);
CREATE UNIQUE INDEX uk_run_before_tok ON ing_task_run_batch (run_id, before_token_hash);
CREATE UNIQUE INDEX uk_batch_idem ON ing_task_run_batch (idempotent_key);
CREATE INDEX idx_batch_after_tok ON ing_task_run_batch (run_id, after_token_hash);
CREATE INDEX idx_batch_status_time ON ing_task_run_batch (run_id, status_code, committed_at);
CREATE INDEX idx_batch_prov_op_status ON ing_task_run_batch (provenance_code, operation_code, status_code, committed_at);
CREATE INDEX idx_batch_task ON ing_task_run_batch (task_id, status_code, committed_at);
CREATE INDEX idx_batch_slice ON ing_task_run_batch (slice_id, status_code, committed_at);
CREATE INDEX idx_batch_plan ON ing_task_run_batch (plan_id, status_code, committed_at);
CREATE INDEX idx_batch_expr ON ing_task_run_batch (expr_hash);
CREATE INDEX idx_audit_deleted_upd__ing_task_run_batch ON ing_task_run_batch (deleted, updated_at);
CREATE INDEX idx_audit_created_by__ing_task_run_batch ON ing_task_run_batch (created_by);
CREATE INDEX idx_audit_updated_by__ing_task_run_batch ON ing_task_run_batch (updated_by);
