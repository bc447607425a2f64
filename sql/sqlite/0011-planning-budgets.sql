-- How a plan is cut, how much of it may wait in the queue, and what of a quota it may speak for.
-- Instants are UTC text with microseconds, 26 characters such as 2025-09-22 21:05:00.000000, which sorts by time.
-- The unnamed CHECKs guard what MySQL guards by type (JSON, instants); text lengths are enforced by MySQL only.
-- updated_at is set by the application, because SQLite has no ON UPDATE.

-- How slices are cut and how many tasks may be queued: one row per dimension, chosen as in all policies.
CREATE TABLE reg_prov_plan_cfg (
    id                     INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_id          INTEGER  NOT NULL,                   -- reg_provenance.id
    scope_code             TEXT     NOT NULL,                   -- SOURCE = all operations, TASK = the one in task_type
    task_type              TEXT     NULL,                       -- an ing_operation; NULL when scope_code = SOURCE
    endpoint_name          TEXT     NULL,                       -- NULL = all endpoints of the provenance
    effective_from         TEXT     NOT NULL CHECK (effective_from LIKE '____-__-__ __:__:__.______'),  -- valid from, inclusive
    effective_to           TEXT     NULL CHECK (effective_to LIKE '____-__-__ __:__:__.______'),  -- valid until, exclusive; NULL = open
    slice_strategy_code    TEXT     NULL,                       -- ing_slice_strategy; NULL = chosen by the operation
    records_per_slice      INTEGER  NULL,                       -- a slice expected to hold more is cut finer
    records_per_day        NUMERIC  NULL,                       -- declared density, used before there is history
    max_queued_tasks       INTEGER  NULL,                       -- inventory threshold: more waits in the plan
    priority               INTEGER  NULL,                       -- 1 = first ... 9 = last
    courtesy               TEXT     NULL CHECK (courtesy IS NULL OR json_valid(courtesy)),  -- hours the provenance asks large jobs to keep
    extra                  TEXT     NULL CHECK (extra IS NULL OR json_valid(extra)),  -- what no column holds
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
    CONSTRAINT chk_reg_prov_plan_cfg__scope CHECK ((scope_code = 'TASK') = (task_type IS NOT NULL)),
    CONSTRAINT chk_reg_prov_plan_cfg__range CHECK (effective_from < effective_to)
);
CREATE UNIQUE INDEX uk_reg_prov_plan_cfg__dim_from ON reg_prov_plan_cfg (provenance_id, scope_code, task_type_key, endpoint_name_key, effective_from, live_key);
CREATE INDEX idx_reg_prov_plan_cfg__dim_to ON reg_prov_plan_cfg (provenance_id, scope_code, task_type_key, effective_to);
CREATE INDEX idx_reg_prov_plan_cfg__active ON reg_prov_plan_cfg (provenance_id, scope_code, task_type_key, effective_from DESC, id DESC);

-- What one slice has spoken for in one quota window. It shrinks as its task spends and ends with it.
CREATE TABLE ing_quota_reservation (
    id               INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    rate_key         TEXT     NOT NULL,
    window_from      TEXT     NOT NULL CHECK (window_from LIKE '____-__-__ __:__:__.______'),  -- inclusive
    window_to        TEXT     NOT NULL CHECK (window_to LIKE '____-__-__ __:__:__.______'),  -- exclusive
    slice_id         INTEGER  NOT NULL,            -- whose only task spends it
    amount           NUMERIC  NOT NULL,            -- spoken for when it was planned
    left_amount      NUMERIC  NOT NULL,            -- still spoken for; 0 once the slice has ended
    record_remarks   TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version          INTEGER  NOT NULL DEFAULT 0,  -- optimistic lock, raised by every guarded update
    ip_address       BLOB     NULL,                -- of the caller, IPv4 or IPv6
    created_at       TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by       INTEGER  NULL,
    created_by_name  TEXT     NULL,
    updated_at       TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by       INTEGER  NULL,
    updated_by_name  TEXT     NULL,
    deleted          INTEGER  NOT NULL DEFAULT 0,  -- 1 = soft-deleted
    CONSTRAINT chk_ing_quota_reservation__window CHECK (window_from < window_to),
    CONSTRAINT chk_ing_quota_reservation__left CHECK (left_amount >= 0 AND left_amount <= amount)
);
CREATE UNIQUE INDEX uk_quota_reservation ON ing_quota_reservation (slice_id, rate_key, window_from, window_to);
CREATE INDEX idx_quota_reservation_window ON ing_quota_reservation (rate_key, window_from, window_to);

ALTER TABLE ing_plan_slice ADD COLUMN done_to TEXT NULL CHECK (done_to LIKE '____-__-__ __:__:__.______');  -- a slice that was cut again is done up to here, exclusive
