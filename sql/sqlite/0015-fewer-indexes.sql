-- What every batch pays for and nobody asks: the records of a slice are found through its batches (idx_record_batch).
DROP INDEX idx_record_slice;

-- A message without a lease is in no lease's order: it enters this index when somebody publishes it.
DROP INDEX idx_outbox_lease;
CREATE INDEX idx_outbox_lease ON ing_outbox_message (status_code, pub_leased_until) WHERE pub_leased_until IS NOT NULL;

-- Age is asked of what was published, when it is to be forgotten.
DROP INDEX idx_outbox_created;
CREATE INDEX idx_outbox_created ON ing_outbox_message (created_at) WHERE status_code = 'PUBLISHED';
