-- The Registry: room for what the pack language says and no column of its own holds.

ALTER TABLE reg_provenance ADD COLUMN extra TEXT NULL CHECK (extra IS NULL OR json_valid(extra));  -- what no column holds
ALTER TABLE reg_prov_endpoint_def ADD COLUMN extra TEXT NULL CHECK (extra IS NULL OR json_valid(extra));  -- what no column holds
ALTER TABLE reg_prov_schedule_cfg ADD COLUMN extra TEXT NULL CHECK (extra IS NULL OR json_valid(extra));  -- what no column holds
ALTER TABLE reg_prov_api_param_map ADD COLUMN extra TEXT NULL CHECK (extra IS NULL OR json_valid(extra));  -- what no column holds
ALTER TABLE reg_prov_expr_capability ADD COLUMN extra TEXT NULL CHECK (extra IS NULL OR json_valid(extra));  -- what no column holds
ALTER TABLE reg_prov_expr_render_rule ADD COLUMN extra TEXT NULL CHECK (extra IS NULL OR json_valid(extra));  -- what no column holds
ALTER TABLE reg_prov_rate_limit_cfg ADD COLUMN extra TEXT NULL CHECK (extra IS NULL OR json_valid(extra));  -- what no column holds
