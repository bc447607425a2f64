-- What all workers of all processes share: how fast they may be, and what they must leave alone.
-- Repeatable: each CREATE TABLE is atomic on MySQL, so a migration that stopped half-way continues when it is run
-- again. All instants are UTC. Text is compared byte for byte, trailing blanks aside (utf8mb4_bin).

-- The token bucket of one rate key, and what the provenance last said about our speed.
CREATE TABLE IF NOT EXISTS ing_rate_bucket (
    id               BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT PRIMARY KEY,
    rate_key         VARCHAR(128)     NOT NULL,
    tokens           DECIMAL(24,9)    NOT NULL DEFAULT 0 COMMENT 'at refilled_at',
    refilled_at      DATETIME(6)      NOT NULL,
    rate_per_second  DECIMAL(18,9)    NOT NULL           COMMENT 'in force now, moved by AIMD',
    burst            DECIMAL(18,6)    NOT NULL           COMMENT 'most tokens the bucket holds',
    in_flight_limit  INT              NULL               COMMENT 'NULL = unlimited',
    cool_down_until  DATETIME(6)      NULL               COMMENT 'nobody sends before; Retry-After writes it',
    configured_rate  DECIMAL(18,9)    NOT NULL           COMMENT 'what the Registry allows',
    last_signal      JSON             NULL,
    record_remarks   JSON             NULL               COMMENT 'array of {time, by, note, type, data}',
    version          BIGINT UNSIGNED  NOT NULL DEFAULT 0 COMMENT 'optimistic lock, raised by every guarded update',
    ip_address       VARBINARY(16)    NULL               COMMENT 'of the caller, IPv4 or IPv6',
    created_at       DATETIME(6)      NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    created_by       BIGINT UNSIGNED  NULL,
    created_by_name  VARCHAR(100)     NULL,
    updated_at       DATETIME(6)      NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
    updated_by       BIGINT UNSIGNED  NULL,
    updated_by_name  VARCHAR(100)     NULL,
    deleted          TINYINT(1)       NOT NULL DEFAULT 0 COMMENT '1 = soft-deleted',
    UNIQUE KEY uk_rate_bucket (rate_key)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- A request in flight. A permit whose holder died ends at expires_at.
CREATE TABLE IF NOT EXISTS ing_rate_permit (
    id               BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT PRIMARY KEY,
    permit_id        CHAR(32)         NOT NULL,
    rate_key         VARCHAR(128)     NOT NULL,
    holder           VARCHAR(128)     NOT NULL,
    cost             DECIMAL(18,6)    NOT NULL DEFAULT 1 COMMENT 'tokens',
    granted_at       DATETIME(6)      NOT NULL,
    expires_at       DATETIME(6)      NOT NULL,
    record_remarks   JSON             NULL               COMMENT 'array of {time, by, note, type, data}',
    version          BIGINT UNSIGNED  NOT NULL DEFAULT 0 COMMENT 'optimistic lock, raised by every guarded update',
    ip_address       VARBINARY(16)    NULL               COMMENT 'of the caller, IPv4 or IPv6',
    created_at       DATETIME(6)      NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    created_by       BIGINT UNSIGNED  NULL,
    created_by_name  VARCHAR(100)     NULL,
    updated_at       DATETIME(6)      NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
    updated_by       BIGINT UNSIGNED  NULL,
    updated_by_name  VARCHAR(100)     NULL,
    deleted          TINYINT(1)       NOT NULL DEFAULT 0 COMMENT '1 = soft-deleted',
    UNIQUE KEY uk_rate_permit (permit_id),
    KEY idx_rate_permit_key (rate_key, expires_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What a provenance allows per hour or day, and how much of it is spoken for.
CREATE TABLE IF NOT EXISTS ing_quota_window (
    id               BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT PRIMARY KEY,
    rate_key         VARCHAR(128)     NOT NULL,
    window_from      DATETIME(6)      NOT NULL           COMMENT 'inclusive',
    window_to        DATETIME(6)      NOT NULL           COMMENT 'exclusive',
    limit_amount     DECIMAL(24,6)    NOT NULL,
    reserved_amount  DECIMAL(24,6)    NOT NULL DEFAULT 0 COMMENT 'granted, not yet sent',
    spent_amount     DECIMAL(24,6)    NOT NULL DEFAULT 0,
    record_remarks   JSON             NULL               COMMENT 'array of {time, by, note, type, data}',
    version          BIGINT UNSIGNED  NOT NULL DEFAULT 0 COMMENT 'optimistic lock, raised by every guarded update',
    ip_address       VARBINARY(16)    NULL               COMMENT 'of the caller, IPv4 or IPv6',
    created_at       DATETIME(6)      NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    created_by       BIGINT UNSIGNED  NULL,
    created_by_name  VARCHAR(100)     NULL,
    updated_at       DATETIME(6)      NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
    updated_by       BIGINT UNSIGNED  NULL,
    updated_by_name  VARCHAR(100)     NULL,
    deleted          TINYINT(1)       NOT NULL DEFAULT 0 COMMENT '1 = soft-deleted',
    UNIQUE KEY uk_quota_window (rate_key, window_from, window_to),
    CONSTRAINT chk_ing_quota_window__window CHECK (window_from < window_to)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- An endpoint, or a whole provenance, that workers must leave alone until a person resumes it.
CREATE TABLE IF NOT EXISTS ing_hold (
    id                 BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT PRIMARY KEY,
    provenance_code    VARCHAR(64)      NOT NULL           COMMENT 'reg_provenance.provenance_code',
    endpoint_name      VARCHAR(64)      NULL               COMMENT 'NULL = the whole provenance',
    reason_code        VARCHAR(32)      NOT NULL           COMMENT 'ing_hold_reason',
    reason             VARCHAR(512)     NULL,
    held_at            DATETIME(6)      NOT NULL,
    held_by            VARCHAR(128)     NOT NULL,
    resumed_at         DATETIME(6)      NULL               COMMENT 'NULL = in force',
    resumed_by         VARCHAR(128)     NULL,
    endpoint_name_key  VARCHAR(64)      GENERATED ALWAYS AS (COALESCE(endpoint_name, '*')) STORED COMMENT '* = every endpoint',
    active_key         TINYINT          GENERATED ALWAYS AS (CASE WHEN resumed_at IS NULL AND deleted = 0 THEN 1 END) STORED COMMENT 'at most one hold in force per endpoint',
    record_remarks     JSON             NULL               COMMENT 'array of {time, by, note, type, data}',
    version            BIGINT UNSIGNED  NOT NULL DEFAULT 0 COMMENT 'optimistic lock, raised by every guarded update',
    ip_address         VARBINARY(16)    NULL               COMMENT 'of the caller, IPv4 or IPv6',
    created_at         DATETIME(6)      NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    created_by         BIGINT UNSIGNED  NULL,
    created_by_name    VARCHAR(100)     NULL,
    updated_at         DATETIME(6)      NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
    updated_by         BIGINT UNSIGNED  NULL,
    updated_by_name    VARCHAR(100)     NULL,
    deleted            TINYINT(1)       NOT NULL DEFAULT 0 COMMENT '1 = soft-deleted',
    UNIQUE KEY uk_hold_active (provenance_code, endpoint_name_key, active_key),
    CONSTRAINT chk_ing_hold__reason CHECK (reason_code IN ('L4', 'OPERATOR'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
