-- The dictionary: every code stored in a *_code column, its label, and what other systems call it.
-- Repeatable: each CREATE TABLE is atomic on MySQL, so a migration that stopped half-way continues when it is run
-- again. All instants are UTC. Text is compared byte for byte, trailing blanks aside (utf8mb4_bin).

-- One list of codes, such as ing_plan_status.
CREATE TABLE IF NOT EXISTS sys_dict_type (
    id                  BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT PRIMARY KEY,
    type_code           VARCHAR(64)      NOT NULL           COMMENT 'lower snake case, the same in every environment',
    type_name           VARCHAR(200)     NOT NULL,
    description         VARCHAR(500)     NULL,
    allow_custom_items  TINYINT(1)       NOT NULL DEFAULT 0 COMMENT '1 = operators may add items',
    is_system           TINYINT(1)       NOT NULL DEFAULT 1 COMMENT '1 = built in',
    reserved_json       JSON             NULL,
    record_remarks      JSON             NULL               COMMENT 'array of {time, by, note, type, data}',
    version             BIGINT UNSIGNED  NOT NULL DEFAULT 0 COMMENT 'optimistic lock, raised by every guarded update',
    ip_address          VARBINARY(16)    NULL               COMMENT 'of the caller, IPv4 or IPv6',
    created_at          DATETIME(6)      NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    created_by          BIGINT UNSIGNED  NULL,
    created_by_name     VARCHAR(100)     NULL,
    updated_at          DATETIME(6)      NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
    updated_by          BIGINT UNSIGNED  NULL,
    updated_by_name     VARCHAR(100)     NULL,
    deleted             TINYINT(1)       NOT NULL DEFAULT 0 COMMENT '1 = soft-deleted',
    live_key            TINYINT          GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED COMMENT 'NULL once soft-deleted, so that a deleted row frees its key',
    UNIQUE KEY uk_sys_dict_type__code (type_code, live_key),
    KEY idx_sys_dict_type__deleted_is_system (deleted, is_system),
    CONSTRAINT chk_sys_dict_type__code_format CHECK (type_code NOT REGEXP '[^a-z0-9_]' AND CHAR_LENGTH(type_code) BETWEEN 1 AND 64)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- One code of a list. Tables store item_code, never the id.
CREATE TABLE IF NOT EXISTS sys_dict_item (
    id               BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT PRIMARY KEY,
    type_id          BIGINT UNSIGNED  NOT NULL             COMMENT 'sys_dict_type.id',
    item_code        VARCHAR(64)      NOT NULL             COMMENT 'UPPER_SNAKE, never changed once used',
    item_name        VARCHAR(200)     NOT NULL,
    short_name       VARCHAR(64)      NULL,
    description      VARCHAR(500)     NULL,
    display_order    INT UNSIGNED     NOT NULL DEFAULT 100 COMMENT 'smaller first',
    is_default       TINYINT(1)       NOT NULL DEFAULT 0   COMMENT 'the choice when nothing is said',
    enabled          TINYINT(1)       NOT NULL DEFAULT 1   COMMENT '0 = known, but must not be chosen',
    label_color      VARCHAR(32)      NULL,
    icon_name        VARCHAR(64)      NULL,
    attributes_json  JSON             NULL,
    default_key      BIGINT UNSIGNED  GENERATED ALWAYS AS (CASE WHEN is_default = 1 AND enabled = 1 AND deleted = 0 THEN type_id END) STORED COMMENT 'at most one usable default per type',
    record_remarks   JSON             NULL                 COMMENT 'array of {time, by, note, type, data}',
    version          BIGINT UNSIGNED  NOT NULL DEFAULT 0   COMMENT 'optimistic lock, raised by every guarded update',
    ip_address       VARBINARY(16)    NULL                 COMMENT 'of the caller, IPv4 or IPv6',
    created_at       DATETIME(6)      NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    created_by       BIGINT UNSIGNED  NULL,
    created_by_name  VARCHAR(100)     NULL,
    updated_at       DATETIME(6)      NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
    updated_by       BIGINT UNSIGNED  NULL,
    updated_by_name  VARCHAR(100)     NULL,
    deleted          TINYINT(1)       NOT NULL DEFAULT 0   COMMENT '1 = soft-deleted',
    live_key         TINYINT          GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED COMMENT 'NULL once soft-deleted, so that a deleted row frees its key',
    UNIQUE KEY uk_sys_dict_item__type_code (type_id, item_code, live_key),
    UNIQUE KEY uk_sys_dict_item__default_per_type (default_key),
    KEY idx_sys_dict_item__type_enabled (type_id, enabled, deleted, display_order),
    CONSTRAINT chk_sys_dict_item__code_format CHECK (item_code NOT REGEXP '[^A-Z0-9_]' AND CHAR_LENGTH(item_code) BETWEEN 1 AND 64)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What another system calls an item. The same foreign code may name items of several types, hence type_id in the
-- key.
CREATE TABLE IF NOT EXISTS sys_dict_item_alias (
    id               BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT PRIMARY KEY,
    item_id          BIGINT UNSIGNED  NOT NULL           COMMENT 'the canonical item',
    type_id          BIGINT UNSIGNED  NOT NULL           COMMENT 'type of that item',
    source_system    VARCHAR(64)      NOT NULL           COMMENT 'who says it so, e.g. legacy_v1',
    external_code    VARCHAR(128)     NOT NULL           COMMENT 'the foreign code',
    external_label   VARCHAR(200)     NULL,
    notes            VARCHAR(500)     NULL,
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
    live_key         TINYINT          GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED COMMENT 'NULL once soft-deleted, so that a deleted row frees its key',
    UNIQUE KEY uk_dict_alias__src_code (type_id, source_system, external_code, live_key),
    KEY idx_dict_alias__item (item_id, source_system),
    CONSTRAINT chk_dict_alias__src_format CHECK (source_system NOT REGEXP '[^a-z0-9_-]' AND CHAR_LENGTH(source_system) BETWEEN 1 AND 64)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What may be chosen today, for people and reports.
CREATE OR REPLACE VIEW v_sys_dict_item_enabled AS
SELECT t.type_code, i.item_code, COALESCE(i.short_name, i.item_name) AS display_name, i.display_order, i.is_default
  FROM sys_dict_item i
  JOIN sys_dict_type t ON t.id = i.type_id
 WHERE i.enabled = 1 AND i.deleted = 0 AND t.deleted = 0;
