-- What all workers of all processes share: how fast they may be, and what they must leave alone.
-- Instants are UTC text with microseconds, 26 characters such as 2025-09-22 21:05:00.000000, which sorts by time.
-- The unnamed CHECKs guard what MySQL guards by type (JSON, instants); text lengths are enforced by MySQL only.
-- updated_at is set by the application, because SQLite has no ON UPDATE.

-- The token bucket of one rate key, and what the provenance last said about our speed.
CREATE TABLE ing_rate_bucket (
    id               INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    rate_key         TEXT     NOT NULL,
    tokens           NUMERIC  NOT NULL DEFAULT 0,  -- at refilled_at
    refilled_at      TEXT     NOT NULL CHECK (refilled_at LIKE '____-__-__ __:__:__.______'),
    rate_per_second  NUMERIC  NOT NULL,            -- in force now, moved by AIMD
    burst            NUMERIC  NOT NULL,            -- most tokens the bucket holds
    in_flight_limit  INTEGER  NULL,                -- NULL = unlimited
    cool_down_until  TEXT     NULL CHECK (cool_down_until LIKE '____-__-__ __:__:__.______'),  -- nobody sends before; Retry-After writes it
    configured_rate  NUMERIC  NOT NULL,            -- what the Registry allows
    last_signal      TEXT     NULL CHECK (last_signal IS NULL OR json_valid(last_signal)),
    record_remarks   TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version          INTEGER  NOT NULL DEFAULT 0,  -- optimistic lock, raised by every guarded update
    ip_address       BLOB     NULL,                -- of the caller, IPv4 or IPv6
    created_at       TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by       INTEGER  NULL,
    created_by_name  TEXT     NULL,
    updated_at       TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by       INTEGER  NULL,
    updated_by_name  TEXT     NULL,
    deleted          INTEGER  NOT NULL DEFAULT 0   -- 1 = soft-deleted
);
CREATE UNIQUE INDEX uk_rate_bucket ON ing_rate_bucket (rate_key);

-- A request in flight. A permit whose holder died ends at expires_at.
CREATE TABLE ing_rate_permit (
    id               INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    permit_id        TEXT     NOT NULL,
    rate_key         TEXT     NOT NULL,
    holder           TEXT     NOT NULL,
    cost             NUMERIC  NOT NULL DEFAULT 1,  -- tokens
    granted_at       TEXT     NOT NULL CHECK (granted_at LIKE '____-__-__ __:__:__.______'),
    expires_at       TEXT     NOT NULL CHECK (expires_at LIKE '____-__-__ __:__:__.______'),
    record_remarks   TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version          INTEGER  NOT NULL DEFAULT 0,  -- optimistic lock, raised by every guarded update
    ip_address       BLOB     NULL,                -- of the caller, IPv4 or IPv6
    created_at       TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by       INTEGER  NULL,
    created_by_name  TEXT     NULL,
    updated_at       TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by       INTEGER  NULL,
    updated_by_name  TEXT     NULL,
    deleted          INTEGER  NOT NULL DEFAULT 0   -- 1 = soft-deleted
);
CREATE UNIQUE INDEX uk_rate_permit ON ing_rate_permit (permit_id);
CREATE INDEX idx_rate_permit_key ON ing_rate_permit (rate_key, expires_at);

-- What a provenance allows per hour or day, and how much of it is spoken for.
CREATE TABLE ing_quota_window (
    id               INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    rate_key         TEXT     NOT NULL,
    window_from      TEXT     NOT NULL CHECK (window_from LIKE '____-__-__ __:__:__.______'),  -- inclusive
    window_to        TEXT     NOT NULL CHECK (window_to LIKE '____-__-__ __:__:__.______'),  -- exclusive
    limit_amount     NUMERIC  NOT NULL,
    reserved_amount  NUMERIC  NOT NULL DEFAULT 0,  -- granted, not yet sent
    spent_amount     NUMERIC  NOT NULL DEFAULT 0,
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
    CONSTRAINT chk_ing_quota_window__window CHECK (window_from < window_to)
);
CREATE UNIQUE INDEX uk_quota_window ON ing_quota_window (rate_key, window_from, window_to);

-- An endpoint, or a whole provenance, that workers must leave alone until a person resumes it.
CREATE TABLE ing_hold (
    id                 INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_code    TEXT     NOT NULL,            -- reg_provenance.provenance_code
    endpoint_name      TEXT     NULL,                -- NULL = the whole provenance
    reason_code        TEXT     NOT NULL,            -- ing_hold_reason
    reason             TEXT     NULL,
    held_at            TEXT     NOT NULL CHECK (held_at LIKE '____-__-__ __:__:__.______'),
    held_by            TEXT     NOT NULL,
    resumed_at         TEXT     NULL CHECK (resumed_at LIKE '____-__-__ __:__:__.______'),  -- NULL = in force
    resumed_by         TEXT     NULL,
    endpoint_name_key  TEXT     GENERATED ALWAYS AS (COALESCE(endpoint_name, '*')) STORED,  -- * = every endpoint
    active_key         INTEGER  GENERATED ALWAYS AS (CASE WHEN resumed_at IS NULL AND deleted = 0 THEN 1 END) STORED,  -- at most one hold in force per endpoint
    record_remarks     TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version            INTEGER  NOT NULL DEFAULT 0,  -- optimistic lock, raised by every guarded update
    ip_address         BLOB     NULL,                -- of the caller, IPv4 or IPv6
    created_at         TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by         INTEGER  NULL,
    created_by_name    TEXT     NULL,
    updated_at         TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by         INTEGER  NULL,
    updated_by_name    TEXT     NULL,
    deleted            INTEGER  NOT NULL DEFAULT 0,  -- 1 = soft-deleted
    CONSTRAINT chk_ing_hold__reason CHECK (reason_code IN ('L4', 'OPERATOR'))
);
CREATE UNIQUE INDEX uk_hold_active ON ing_hold (provenance_code, endpoint_name_key, active_key);
