-- How often in a row the worker of a task fell silent before it had committed a batch: a task that kills its workers has an end.
ALTER TABLE ing_task ADD COLUMN silent_count INTEGER NOT NULL DEFAULT 0;
