-- Reading the steps of one namespace in the order they were written, and the plans that reach beyond its cursor.
-- Repeatable: a migration that stopped half-way continues when it is run again.
SET @add_replay = (SELECT IF(COUNT(*) = 0,
    'CREATE INDEX idx_cur_evt_replay ON ing_cursor_event (provenance_code, endpoint_name, operation_code, cursor_key, namespace_scope_code, namespace_key, id)', 'DO 0')
  FROM information_schema.statistics
 WHERE table_schema = DATABASE() AND table_name = 'ing_cursor_event' AND index_name = 'idx_cur_evt_replay');
PREPARE add_replay FROM @add_replay;
EXECUTE add_replay;
DEALLOCATE PREPARE add_replay;

SET @add_reach = (SELECT IF(COUNT(*) = 0,
    'CREATE INDEX idx_plan_reach ON ing_plan (provenance_code, endpoint_name, operation_code, namespace_scope_code, namespace_key, window_to)', 'DO 0')
  FROM information_schema.statistics
 WHERE table_schema = DATABASE() AND table_name = 'ing_plan' AND index_name = 'idx_plan_reach');
PREPARE add_reach FROM @add_reach;
EXECUTE add_reach;
DEALLOCATE PREPARE add_reach;
