-- The dictionary: every code stored in a *_code column, its label, and what other systems call it.
-- Instants are UTC text with microseconds, 26 characters such as 2025-09-22 21:05:00.000000, which sorts by time.
-- The unnamed CHECKs guard what MySQL guards by type (JSON, instants); text lengths are enforced by MySQL only.
-- updated_at is set by the application, because SQLite has no ON UPDATE.

-- One list of codes, such as ing_plan_status.
CREATE TABLE sys_dict_type (
    id                  INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    type_code           TEXT     NOT NULL,            -- lower snake case, the same in every environment
    type_name           TEXT     NOT NULL,
    description         TEXT     NULL,
    allow_custom_items  INTEGER  NOT NULL DEFAULT 0,  -- 1 = operators may add items
    is_system           INTEGER  NOT NULL DEFAULT 1,  -- 1 = built in
    reserved_json       TEXT     NULL CHECK (reserved_json IS NULL OR json_valid(reserved_json)),
    record_remarks      TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version             INTEGER  NOT NULL DEFAULT 0,  -- optimistic lock, raised by every guarded update
    ip_address          BLOB     NULL,                -- of the caller, IPv4 or IPv6
    created_at          TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by          INTEGER  NULL,
    created_by_name     TEXT     NULL,
    updated_at          TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by          INTEGER  NULL,
    updated_by_name     TEXT     NULL,
    deleted             INTEGER  NOT NULL DEFAULT 0,  -- 1 = soft-deleted
    live_key            INTEGER  GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED,  -- NULL once soft-deleted, so that a deleted row frees its key
    CONSTRAINT chk_sys_dict_type__code_format CHECK (type_code NOT GLOB '*[^a-z0-9_]*' AND length(type_code) BETWEEN 1 AND 64)
);
CREATE UNIQUE INDEX uk_sys_dict_type__code ON sys_dict_type (type_code, live_key);
CREATE INDEX idx_sys_dict_type__deleted_is_system ON sys_dict_type (deleted, is_system);

-- One code of a list. Tables store item_code, never the id.
CREATE TABLE sys_dict_item (
    id               INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    type_id          INTEGER  NOT NULL,              -- sys_dict_type.id
    item_code        TEXT     NOT NULL,              -- UPPER_SNAKE, never changed once used
    item_name        TEXT     NOT NULL,
    short_name       TEXT     NULL,
    description      TEXT     NULL,
    display_order    INTEGER  NOT NULL DEFAULT 100,  -- smaller first
    is_default       INTEGER  NOT NULL DEFAULT 0,    -- the choice when nothing is said
    enabled          INTEGER  NOT NULL DEFAULT 1,    -- 0 = known, but must not be chosen
    label_color      TEXT     NULL,
    icon_name        TEXT     NULL,
    attributes_json  TEXT     NULL CHECK (attributes_json IS NULL OR json_valid(attributes_json)),
    default_key      INTEGER  GENERATED ALWAYS AS (CASE WHEN is_default = 1 AND enabled = 1 AND deleted = 0 THEN type_id END) STORED,  -- at most one usable default per type
    record_remarks   TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version          INTEGER  NOT NULL DEFAULT 0,    -- optimistic lock, raised by every guarded update
    ip_address       BLOB     NULL,                  -- of the caller, IPv4 or IPv6
    created_at       TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by       INTEGER  NULL,
    created_by_name  TEXT     NULL,
    updated_at       TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by       INTEGER  NULL,
    updated_by_name  TEXT     NULL,
    deleted          INTEGER  NOT NULL DEFAULT 0,    -- 1 = soft-deleted
    live_key         INTEGER  GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED,  -- NULL once soft-deleted, so that a deleted row frees its key
    CONSTRAINT chk_sys_dict_item__code_format CHECK (item_code NOT GLOB '*[^A-Z0-9_]*' AND length(item_code) BETWEEN 1 AND 64)
);
CREATE UNIQUE INDEX uk_sys_dict_item__type_code ON sys_dict_item (type_id, item_code, live_key);
CREATE UNIQUE INDEX uk_sys_dict_item__default_per_type ON sys_dict_item (default_key);
CREATE INDEX idx_sys_dict_item__type_enabled ON sys_dict_item (type_id, enabled, deleted, display_order);

-- What another system calls an item. The same foreign code may name items of several types, hence type_id in the
-- key.
CREATE TABLE sys_dict_item_alias (
    id               INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    item_id          INTEGER  NOT NULL,            -- the canonical item
    type_id          INTEGER  NOT NULL,            -- type of that item
    source_system    TEXT     NOT NULL,            -- who says it so, e.g. legacy_v1
    external_code    TEXT     NOT NULL,            -- the foreign code
    external_label   TEXT     NULL,
    notes            TEXT     NULL,
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
    live_key         INTEGER  GENERATED ALWAYS AS (CASE WHEN deleted = 0 THEN 1 END) STORED,  -- NULL once soft-deleted, so that a deleted row frees its key
    CONSTRAINT chk_dict_alias__src_format CHECK (source_system NOT GLOB '*[^a-z0-9_-]*' AND length(source_system) BETWEEN 1 AND 64)
);
CREATE UNIQUE INDEX uk_dict_alias__src_code ON sys_dict_item_alias (type_id, source_system, external_code, live_key);
CREATE INDEX idx_dict_alias__item ON sys_dict_item_alias (item_id, source_system);

-- What may be chosen today, for people and reports.
CREATE VIEW v_sys_dict_item_enabled AS
SELECT t.type_code, i.item_code, COALESCE(i.short_name, i.item_name) AS display_name, i.display_order, i.is_default
  FROM sys_dict_item i
  JOIN sys_dict_type t ON t.id = i.type_id
 WHERE i.enabled = 1 AND i.deleted = 0 AND t.deleted = 0;
