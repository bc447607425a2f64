-- Leasing in turn: whose turn it is, and the indexes by which the next task of each partition is found.
-- Instants are UTC text with microseconds, 26 characters such as 2025-09-22 21:05:00.000000, which sorts by time.
-- The unnamed CHECKs guard what MySQL guards by type (JSON, instants); text lengths are enforced by MySQL only.
-- updated_at is set by the application, because SQLite has no ON UPDATE.

-- When each partition was served last. The row without names belongs to none of them: whoever leases locks it.
CREATE TABLE ing_lease_turn (
    id               INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_code  TEXT     NOT NULL,            -- reg_provenance.provenance_code; empty = the row to lock
    endpoint_name    TEXT     NOT NULL,
    operation_code   TEXT     NOT NULL,            -- ing_operation
    turn_no          INTEGER  NOT NULL DEFAULT 0,  -- the smallest is next
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
    CONSTRAINT chk_ing_lease_turn__operation CHECK (operation_code IN ('HARVEST', 'BACKFILL', 'UPDATE', 'METRICS'))
);
CREATE UNIQUE INDEX uk_lease_turn ON ing_lease_turn (provenance_code, endpoint_name, operation_code);

CREATE INDEX idx_task_fair ON ing_task (status_code, provenance_code, endpoint_name, operation_code, priority, scheduled_at, id);
CREATE INDEX idx_task_fair_plan ON ing_task (plan_id, status_code, provenance_code, endpoint_name, operation_code, priority, scheduled_at, id);
