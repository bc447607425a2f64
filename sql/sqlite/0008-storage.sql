-- What a harvest leaves behind: records, messages about them, and what could not be taken. These tables are
-- written with every batch, so they carry the audit columns but no audit indexes.
-- Instants are UTC text with microseconds, 26 characters such as 2025-09-22 21:05:00.000000, which sorts by time.
-- The unnamed CHECKs guard what MySQL guards by type (JSON, instants); text lengths are enforced by MySQL only.
-- updated_at is set by the application, because SQLite has no ON UPDATE.

-- One mapped item, newest version. provider_id is the id at the provenance; endpoint_name is the plan endpoint,
-- also when a DETAIL endpoint completed the item.
CREATE TABLE ing_record (
    id                    INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_code       TEXT     NOT NULL,            -- reg_provenance.provenance_code
    endpoint_name         TEXT     NOT NULL,
    provider_id           TEXT     NOT NULL,
    source_updated_at     TEXT     NULL CHECK (source_updated_at LIKE '____-__-__ __:__:__.______'),  -- as the provenance says; decides which version is newer
    content_hash          TEXT     NOT NULL,            -- decides whether anything changed
    is_deleted            INTEGER  NOT NULL DEFAULT 0,  -- 1 = withdrawn by the provenance
    fields                TEXT     NULL CHECK (fields IS NULL OR json_valid(fields)),  -- the mapped values
    payload               TEXT     NULL,                -- the item as received; not JSON, which reorders keys and rounds large numbers
    spec_fingerprint      TEXT     NOT NULL,            -- the spec it was mapped by
    expr_hash             TEXT     NOT NULL,
    first_seen_at         TEXT     NOT NULL CHECK (first_seen_at LIKE '____-__-__ __:__:__.______'),
    last_checked_at       TEXT     NOT NULL CHECK (last_checked_at LIKE '____-__-__ __:__:__.______'),  -- last time the provenance confirmed it
    schedule_instance_id  INTEGER  NULL,
    plan_id               INTEGER  NULL,
    slice_id              INTEGER  NULL,
    task_id               INTEGER  NULL,
    run_id                INTEGER  NULL,
    batch_id              INTEGER  NULL,
    record_remarks        TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version               INTEGER  NOT NULL DEFAULT 0,  -- optimistic lock, raised by every guarded update
    ip_address            BLOB     NULL,                -- of the caller, IPv4 or IPv6
    created_at            TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by            INTEGER  NULL,
    created_by_name       TEXT     NULL,
    updated_at            TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by            INTEGER  NULL,
    updated_by_name       TEXT     NULL,
    deleted               INTEGER  NOT NULL DEFAULT 0   -- 1 = soft-deleted
);
CREATE UNIQUE INDEX uk_record ON ing_record (provenance_code, endpoint_name, provider_id);
CREATE INDEX idx_record_updated ON ing_record (provenance_code, endpoint_name, source_updated_at);
CREATE INDEX idx_record_checked ON ing_record (provenance_code, endpoint_name, last_checked_at);
CREATE INDEX idx_record_slice ON ing_record (slice_id);
CREATE INDEX idx_record_batch ON ing_record (batch_id);
CREATE INDEX idx_record_spec ON ing_record (spec_fingerprint);

-- Changes to publish, written in the transaction of the rows they speak of and published afterwards, at least
-- once.
CREATE TABLE ing_outbox_message (
    id                INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    aggregate_type    TEXT     NOT NULL,                    -- TASK, PLAN, RECORD, ...
    aggregate_id      INTEGER  NOT NULL,
    channel           TEXT     NOT NULL,                    -- target topic
    op_type           TEXT     NOT NULL,
    partition_key     TEXT     NOT NULL,                    -- order is kept within it
    dedup_key         TEXT     NOT NULL,                    -- the same fact is not published twice
    payload_json      TEXT     NOT NULL CHECK (json_valid(payload_json)),  -- ids and keys, nothing large
    headers_json      TEXT     NULL CHECK (headers_json IS NULL OR json_valid(headers_json)),
    not_before        TEXT     NULL CHECK (not_before LIKE '____-__-__ __:__:__.______'),  -- NULL = at once
    status_code       TEXT     NOT NULL DEFAULT 'PENDING',  -- ing_outbox_status
    retry_count       INTEGER  NOT NULL DEFAULT 0,
    next_retry_at     TEXT     NULL CHECK (next_retry_at LIKE '____-__-__ __:__:__.______'),
    error_code        TEXT     NULL,
    error_msg         TEXT     NULL,
    pub_lease_owner   TEXT     NULL,
    pub_leased_until  TEXT     NULL CHECK (pub_leased_until LIKE '____-__-__ __:__:__.______'),
    msg_id            TEXT     NULL,                        -- given by the broker
    published_at      TEXT     NULL CHECK (published_at LIKE '____-__-__ __:__:__.______'),
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
    CONSTRAINT chk_ing_outbox_message__status CHECK (status_code IN ('PENDING', 'PUBLISHING', 'PUBLISHED', 'FAILED', 'DEAD')),
    CONSTRAINT chk_ing_outbox_message__lease CHECK ((pub_lease_owner IS NULL) = (pub_leased_until IS NULL)),
    CONSTRAINT chk_ing_outbox_message__published CHECK (status_code <> 'PUBLISHED' OR published_at IS NOT NULL)
);
CREATE UNIQUE INDEX uk_outbox_channel_dedup ON ing_outbox_message (channel, dedup_key);
CREATE INDEX idx_outbox_status_time ON ing_outbox_message (status_code, not_before, id);
CREATE INDEX idx_outbox_partition ON ing_outbox_message (channel, partition_key, status_code);
CREATE INDEX idx_outbox_lease ON ing_outbox_message (status_code, pub_leased_until);
CREATE INDEX idx_outbox_created ON ing_outbox_message (created_at);

-- Items that could not be mapped (ITEM) and ids the provenance cannot resolve (BAD_ID), with enough context to
-- mend the pack.
CREATE TABLE ing_quarantine (
    id                    INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_code       TEXT     NOT NULL,                 -- reg_provenance.provenance_code
    endpoint_name         TEXT     NOT NULL,
    operation_code        TEXT     NOT NULL,                 -- ing_operation
    schedule_instance_id  INTEGER  NULL,
    plan_id               INTEGER  NULL,
    slice_id              INTEGER  NULL,
    task_id               INTEGER  NULL,
    run_id                INTEGER  NULL,
    batch_id              INTEGER  NULL,
    kind_code             TEXT     NOT NULL,                 -- ing_quarantine_kind
    provider_id           TEXT     NULL,                     -- if it could be read
    item_no               INTEGER  NULL,                     -- place in the page, from 1
    path                  TEXT     NULL,                     -- the field to blame
    reason                TEXT     NOT NULL,
    value_text            TEXT     NULL,                     -- the offending value, redacted
    fragment              TEXT     NULL,                     -- redacted sample of the item
    status_code           TEXT     NOT NULL DEFAULT 'OPEN',  -- ing_quarantine_status
    idempotent_key        TEXT     NOT NULL,                 -- the same item is quarantined once
    record_remarks        TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version               INTEGER  NOT NULL DEFAULT 0,       -- optimistic lock, raised by every guarded update
    ip_address            BLOB     NULL,                     -- of the caller, IPv4 or IPv6
    created_at            TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by            INTEGER  NULL,
    created_by_name       TEXT     NULL,
    updated_at            TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by            INTEGER  NULL,
    updated_by_name       TEXT     NULL,
    deleted               INTEGER  NOT NULL DEFAULT 0,       -- 1 = soft-deleted
    CONSTRAINT chk_ing_quarantine__operation CHECK (operation_code IN ('HARVEST', 'BACKFILL', 'UPDATE', 'METRICS')),
    CONSTRAINT chk_ing_quarantine__kind CHECK (kind_code IN ('ITEM', 'BAD_ID')),
    CONSTRAINT chk_ing_quarantine__status CHECK (status_code IN ('OPEN', 'RETRIED', 'RESOLVED', 'DISCARDED'))
);
CREATE UNIQUE INDEX uk_quarantine_idem ON ing_quarantine (idempotent_key);
CREATE INDEX idx_quarantine_status ON ing_quarantine (provenance_code, endpoint_name, status_code, id);
CREATE INDEX idx_quarantine_batch ON ing_quarantine (batch_id);
CREATE INDEX idx_quarantine_slice ON ing_quarantine (slice_id);

-- A hint from outside that one record should be asked for again; UPDATE consumes it.
CREATE TABLE ing_signal (
    id               INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    provenance_code  TEXT     NOT NULL,                    -- reg_provenance.provenance_code
    endpoint_name    TEXT     NOT NULL,
    provider_id      TEXT     NOT NULL,
    signal_code      TEXT     NOT NULL,                    -- ing_signal
    payload          TEXT     NULL CHECK (payload IS NULL OR json_valid(payload)),
    status_code      TEXT     NOT NULL DEFAULT 'PENDING',  -- ing_signal_status
    consumed_at      TEXT     NULL CHECK (consumed_at LIKE '____-__-__ __:__:__.______'),
    dedup_key        TEXT     NOT NULL,                    -- the same hint is kept once
    record_remarks   TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version          INTEGER  NOT NULL DEFAULT 0,          -- optimistic lock, raised by every guarded update
    ip_address       BLOB     NULL,                        -- of the caller, IPv4 or IPv6
    created_at       TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by       INTEGER  NULL,
    created_by_name  TEXT     NULL,
    updated_at       TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by       INTEGER  NULL,
    updated_by_name  TEXT     NULL,
    deleted          INTEGER  NOT NULL DEFAULT 0,          -- 1 = soft-deleted
    CONSTRAINT chk_ing_signal__status CHECK (status_code IN ('PENDING', 'CONSUMED', 'DISCARDED')),
    CONSTRAINT chk_ing_signal__consumed CHECK (status_code <> 'CONSUMED' OR consumed_at IS NOT NULL)
);
CREATE UNIQUE INDEX uk_signal_dedup ON ing_signal (dedup_key);
CREATE INDEX idx_signal_status ON ing_signal (provenance_code, endpoint_name, status_code, id);

-- An executor asks the planner to cut the rest of a slice finer. They meet only here.
CREATE TABLE ing_reslice_request (
    id                    INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    schedule_instance_id  INTEGER  NULL,
    plan_id               INTEGER  NULL,
    slice_id              INTEGER  NULL,
    task_id               INTEGER  NULL,
    run_id                INTEGER  NULL,
    batch_id              INTEGER  NULL,
    reason_code           TEXT     NOT NULL,                    -- ing_reslice_reason
    remaining             TEXT     NULL CHECK (remaining IS NULL OR json_valid(remaining)),  -- what is left to cut
    density               TEXT     NULL CHECK (density IS NULL OR json_valid(density)),  -- what was observed: totals, pages, latency
    status_code           TEXT     NOT NULL DEFAULT 'PENDING',  -- ing_reslice_status
    consumed_at           TEXT     NULL CHECK (consumed_at LIKE '____-__-__ __:__:__.______'),
    dedup_key             TEXT     NOT NULL,                    -- one request per cause
    record_remarks        TEXT     NULL CHECK (record_remarks IS NULL OR json_valid(record_remarks)),  -- array of {time, by, note, type, data}
    version               INTEGER  NOT NULL DEFAULT 0,          -- optimistic lock, raised by every guarded update
    ip_address            BLOB     NULL,                        -- of the caller, IPv4 or IPv6
    created_at            TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    created_by            INTEGER  NULL,
    created_by_name       TEXT     NULL,
    updated_at            TEXT     NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') CHECK (updated_at LIKE '____-__-__ __:__:__.______'),
    updated_by            INTEGER  NULL,
    updated_by_name       TEXT     NULL,
    deleted               INTEGER  NOT NULL DEFAULT 0,          -- 1 = soft-deleted
    CONSTRAINT chk_ing_reslice_request__status CHECK (status_code IN ('PENDING', 'CONSUMED', 'REJECTED')),
    CONSTRAINT chk_ing_reslice_request__consumed CHECK (status_code <> 'CONSUMED' OR consumed_at IS NOT NULL)
);
CREATE UNIQUE INDEX uk_reslice_dedup ON ing_reslice_request (dedup_key);
CREATE INDEX idx_reslice_status ON ing_reslice_request (status_code, id);
CREATE INDEX idx_reslice_slice ON ing_reslice_request (slice_id);
