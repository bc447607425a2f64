-- Reading the steps of one namespace in the order they were written, and the plans that reach beyond its cursor.
CREATE INDEX idx_cur_evt_replay ON ing_cursor_event (provenance_code, endpoint_name, operation_code, cursor_key, namespace_scope_code, namespace_key, id);
CREATE INDEX idx_plan_reach ON ing_plan (provenance_code, endpoint_name, operation_code, namespace_scope_code, namespace_key, window_to);
