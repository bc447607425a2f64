-- How often in a row the worker of a task fell silent before it had committed a batch: a task that kills its workers has an end.
-- Repeatable: a migration that stopped half-way continues when it is run again.
SET @add_silent = (SELECT IF(COUNT(*) = 0,
    'ALTER TABLE ing_task ADD COLUMN silent_count INT UNSIGNED NOT NULL DEFAULT 0 COMMENT ''leases in a row that ran out without a new batch''', 'DO 0')
  FROM information_schema.columns
 WHERE table_schema = DATABASE() AND table_name = 'ing_task' AND column_name = 'silent_count');
PREPARE add_silent FROM @add_silent;
EXECUTE add_silent;
DEALLOCATE PREPARE add_silent;
