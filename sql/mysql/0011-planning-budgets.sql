-- How a plan is cut, how much of it may wait in the queue, and what of a quota it may speak for.
-- Repeatable: each CREATE TABLE is atomic on MySQL, and each ALTER asks first whether its column is there.
-- All instants are UTC. Text is compared byte for byte, trailing blanks aside (utf8mb4_bin).

-- How slices are cut and how many tasks may be queued: one row per dimension, chosen as in all policies.
CREATE TABLE IF NOT EXISTS reg_prov_plan_cfg (
    id                     BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT PRIMARY KEY,
    provenance_id          BIGINT UNSIGNED  NOT NULL                  COMMENT 'reg_provenance.id',
    scope_code             VARCHAR(8)       NOT NULL                  COMMENT 'SOURCE = all operations, TASK = the one in task_type',
    task_type              VARCHAR(32)      NULL                      COMMENT 'an ing_operation; NULL when scope_code = SOURCE',
    endpoint_name          VARCHAR(64)      NULL                      COMMENT 'NULL = all endpoints of the provenance',
    effective_from         DATETIME(6)      NOT NULL                  COMMENT 'valid from, inclusive',
    effective_to           DATETIME(6)      NULL                      COMMENT 'valid until, exclusive; NULL = open',
    slice_strategy_code    VARCHAR(32)      NULL                      COMMENT 'ing_slice_strategy; NULL = chosen by the operation',
    records_per_slice      BIGINT           NULL                      COMMENT 'a slice expected to hold more is cut finer',
    records_per_day        DECIMAL(18,6)    NULL                      COMMENT 'declared density, used before there is history',
    max_queued_tasks       INT              NULL                      COMMENT 'inventory threshold: more waits in the plan',
    priority               TINYINT UNSIGNED NULL                      COMMENT '1 = first ... 9 = last',
    courtesy               JSON             NULL                      COMMENT 'hours the provenance asks large jobs to keep',
    extra                  JSON             NULL                      COMMENT 'what no column holds',
    task_type_key          VARCHAR(32)      GENERATED ALWAYS AS (COALESCE(task_type, 'ALL')) STORED COMMENT 'ALL = every operation',
    endpoint_name_key      VARCHAR(64)      GENERATED ALWAYS AS (COALESCE(endpoint_name, '*')) STORED COMMENT '* = every endpoint',
    lifecycle_status_code  VARCHAR(32)      NOT NULL DEFAULT 'ACTIVE' COMMENT 'lifecycle_status; only ACTIVE rows are read',
    record_remarks         JSON             NULL                      COMMENT 'array of {time, by, note, type, data}',
    version                BIGINT UNSIGNED  NOT NULL DEFAULT 0        COMMENT 'optimistic lock, raised by every guarded update',
    ip_address             VARBINARY(16)    NULL                      COMMENT 'of the caller, IPv4 or IPv6',
    created_at             DATETIME(6)      NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    created_by             BIGINT UNSIGNED  NULL,
    created_by_name        VARCHAR(100)     NULL,
    updated_at             DATETIME(6)      NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
    updated_by             BIGINT UNSIGNED  NULL,
    updated_by_name        VARCHAR(100)     NULL,
    deleted                TINYINT(1)       NOT NULL DEFAULT 0        COMMENT '1 = soft-deleted',
    live_key               TINYINT          GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED COMMENT 'NULL once soft-deleted, so that a deleted row frees its key',
    UNIQUE KEY uk_reg_prov_plan_cfg__dim_from (provenance_id, scope_code, task_type_key, endpoint_name_key, effective_from, live_key),
    KEY idx_reg_prov_plan_cfg__dim_to (provenance_id, scope_code, task_type_key, effective_to),
    KEY idx_reg_prov_plan_cfg__active (provenance_id, scope_code, task_type_key, effective_from DESC, id DESC),
    CONSTRAINT chk_reg_prov_plan_cfg__scope CHECK ((scope_code = 'TASK') = (task_type IS NOT NULL)),
    CONSTRAINT chk_reg_prov_plan_cfg__range CHECK (effective_from < effective_to)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What one slice has spoken for in one quota window. It shrinks as its task spends and ends with it.
CREATE TABLE IF NOT EXISTS ing_quota_reservation (
    id               BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT PRIMARY KEY,
    rate_key         VARCHAR(128)     NOT NULL,
    window_from      DATETIME(6)      NOT NULL           COMMENT 'inclusive',
    window_to        DATETIME(6)      NOT NULL           COMMENT 'exclusive',
    slice_id         BIGINT UNSIGNED  NOT NULL           COMMENT 'whose only task spends it',
    amount           DECIMAL(24,6)    NOT NULL           COMMENT 'spoken for when it was planned',
    left_amount      DECIMAL(24,6)    NOT NULL           COMMENT 'still spoken for; 0 once the slice has ended',
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
    UNIQUE KEY uk_quota_reservation (slice_id, rate_key, window_from, window_to),
    KEY idx_quota_reservation_window (rate_key, window_from, window_to),
    CONSTRAINT chk_ing_quota_reservation__window CHECK (window_from < window_to),
    CONSTRAINT chk_ing_quota_reservation__left CHECK (left_amount >= 0 AND left_amount <= amount)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

SET @add_done = (SELECT IF(COUNT(*) = 0,
    'ALTER TABLE ing_plan_slice ADD COLUMN done_to DATETIME(6) NULL COMMENT ''a slice that was cut again is done up to here, exclusive''', 'DO 0')
  FROM information_schema.columns
 WHERE table_schema = DATABASE() AND table_name = 'ing_plan_slice' AND column_name = 'done_to');
PREPARE add_done FROM @add_done;
EXECUTE add_done;
DEALLOCATE PREPARE add_done;
