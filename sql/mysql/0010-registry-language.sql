-- The Registry: room for what the pack language says and no column of its own holds.
-- Repeatable: MySQL adds a column without asking whether it is there, so each statement asks first.

SET @add_extra = (SELECT IF(COUNT(*) = 0,
    'ALTER TABLE reg_provenance ADD COLUMN extra JSON NULL COMMENT ''what no column holds''', 'DO 0')
  FROM information_schema.columns
 WHERE table_schema = DATABASE() AND table_name = 'reg_provenance' AND column_name = 'extra');
PREPARE add_extra FROM @add_extra;
EXECUTE add_extra;
DEALLOCATE PREPARE add_extra;

SET @add_extra = (SELECT IF(COUNT(*) = 0,
    'ALTER TABLE reg_prov_endpoint_def ADD COLUMN extra JSON NULL COMMENT ''what no column holds''', 'DO 0')
  FROM information_schema.columns
 WHERE table_schema = DATABASE() AND table_name = 'reg_prov_endpoint_def' AND column_name = 'extra');
PREPARE add_extra FROM @add_extra;
EXECUTE add_extra;
DEALLOCATE PREPARE add_extra;

SET @add_extra = (SELECT IF(COUNT(*) = 0,
    'ALTER TABLE reg_prov_schedule_cfg ADD COLUMN extra JSON NULL COMMENT ''what no column holds''', 'DO 0')
  FROM information_schema.columns
 WHERE table_schema = DATABASE() AND table_name = 'reg_prov_schedule_cfg' AND column_name = 'extra');
PREPARE add_extra FROM @add_extra;
EXECUTE add_extra;
DEALLOCATE PREPARE add_extra;

SET @add_extra = (SELECT IF(COUNT(*) = 0,
    'ALTER TABLE reg_prov_api_param_map ADD COLUMN extra JSON NULL COMMENT ''what no column holds''', 'DO 0')
  FROM information_schema.columns
 WHERE table_schema = DATABASE() AND table_name = 'reg_prov_api_param_map' AND column_name = 'extra');
PREPARE add_extra FROM @add_extra;
EXECUTE add_extra;
DEALLOCATE PREPARE add_extra;

SET @add_extra = (SELECT IF(COUNT(*) = 0,
    'ALTER TABLE reg_prov_expr_capability ADD COLUMN extra JSON NULL COMMENT ''what no column holds''', 'DO 0')
  FROM information_schema.columns
 WHERE table_schema = DATABASE() AND table_name = 'reg_prov_expr_capability' AND column_name = 'extra');
PREPARE add_extra FROM @add_extra;
EXECUTE add_extra;
DEALLOCATE PREPARE add_extra;

SET @add_extra = (SELECT IF(COUNT(*) = 0,
    'ALTER TABLE reg_prov_expr_render_rule ADD COLUMN extra JSON NULL COMMENT ''what no column holds''', 'DO 0')
  FROM information_schema.columns
 WHERE table_schema = DATABASE() AND table_name = 'reg_prov_expr_render_rule' AND column_name = 'extra');
PREPARE add_extra FROM @add_extra;
EXECUTE add_extra;
DEALLOCATE PREPARE add_extra;

SET @add_extra = (SELECT IF(COUNT(*) = 0,
    'ALTER TABLE reg_prov_rate_limit_cfg ADD COLUMN extra JSON NULL COMMENT ''what no column holds''', 'DO 0')
  FROM information_schema.columns
 WHERE table_schema = DATABASE() AND table_name = 'reg_prov_rate_limit_cfg' AND column_name = 'extra');
PREPARE add_extra FROM @add_extra;
EXECUTE add_extra;
DEALLOCATE PREPARE add_extra;
