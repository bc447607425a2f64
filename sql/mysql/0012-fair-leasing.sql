-- Leasing in turn: whose turn it is, and the indexes by which the next task of each partition is found.
-- Repeatable: a migration that stopped half-way continues when it is run again. All instants are UTC.
-- Text is compared byte for byte, trailing blanks aside (utf8mb4_bin).

-- When each partition was served last. The row without names belongs to none of them: whoever leases locks it.
CREATE TABLE IF NOT EXISTS ing_lease_turn (
    id               BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT PRIMARY KEY,
    provenance_code  VARCHAR(64)      NOT NULL           COMMENT 'reg_provenance.provenance_code; empty = the row to lock',
    endpoint_name    VARCHAR(64)      NOT NULL,
    operation_code   VARCHAR(32)      NOT NULL           COMMENT 'ing_operation',
    turn_no          BIGINT UNSIGNED  NOT NULL DEFAULT 0 COMMENT 'the smallest is next',
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
    UNIQUE KEY uk_lease_turn (provenance_code, endpoint_name, operation_code),
    CONSTRAINT chk_ing_lease_turn__operation CHECK (operation_code IN ('HARVEST', 'BACKFILL', 'UPDATE', 'METRICS'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

SET @add_fair = (SELECT IF(COUNT(*) = 0,
    'CREATE INDEX idx_task_fair ON ing_task (status_code, provenance_code, endpoint_name, operation_code, priority, scheduled_at, id)', 'DO 0')
  FROM information_schema.statistics
 WHERE table_schema = DATABASE() AND table_name = 'ing_task' AND index_name = 'idx_task_fair');
PREPARE add_fair FROM @add_fair;
EXECUTE add_fair;
DEALLOCATE PREPARE add_fair;

SET @add_fair_plan = (SELECT IF(COUNT(*) = 0,
    'CREATE INDEX idx_task_fair_plan ON ing_task (plan_id, status_code, provenance_code, endpoint_name, operation_code, priority, scheduled_at, id)', 'DO 0')
  FROM information_schema.statistics
 WHERE table_schema = DATABASE() AND table_name = 'ing_task' AND index_name = 'idx_task_fair_plan');
PREPARE add_fair_plan FROM @add_fair_plan;
EXECUTE add_fair_plan;
DEALLOCATE PREPARE add_fair_plan;
