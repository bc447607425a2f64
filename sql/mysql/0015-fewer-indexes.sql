-- What every batch pays for and nobody asks: the records of a slice are found through its batches (idx_record_batch).
-- Repeatable: a migration that stopped half-way continues when it is run again.
SET @drop_slice = (SELECT IF(COUNT(*) = 0, 'DO 0', 'DROP INDEX idx_record_slice ON ing_record')
  FROM information_schema.statistics
 WHERE table_schema = DATABASE() AND table_name = 'ing_record' AND index_name = 'idx_record_slice');
PREPARE drop_slice FROM @drop_slice;
EXECUTE drop_slice;
DEALLOCATE PREPARE drop_slice;
