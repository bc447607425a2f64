-- The rate gate, complete: who holds what of a key, how its speed was cut and raised, what the source said of it.
-- Repeatable: a migration that stopped half-way continues when it is run again. All instants are UTC.

-- Places in flight are kept by process in holders now, in the row whose lock decides about them.
DROP TABLE IF EXISTS ing_rate_permit;

-- holders has one entry per process that holds or waits: {"HOLDER": {"places", "tokens", "until", "since"}}.
SET @add_holders = (SELECT IF(COUNT(*) = 0,
    'ALTER TABLE ing_rate_bucket
         ADD COLUMN holders   JSON        NULL COMMENT ''who holds places and tokens, or waits for a place'',
         ADD COLUMN cut_at    DATETIME(6) NULL COMMENT ''when the rate was last cut'',
         ADD COLUMN raised_at DATETIME(6) NULL COMMENT ''from when it rises again'',
         ADD COLUMN warm_from DATETIME(6) NULL COMMENT ''when it last started cold'',
         ADD COLUMN told      JSON        NULL COMMENT ''what the source last said of our budget''', 'DO 0')
  FROM information_schema.columns
 WHERE table_schema = DATABASE() AND table_name = 'ing_rate_bucket' AND column_name = 'holders');
PREPARE add_holders FROM @add_holders;
EXECUTE add_holders;
DEALLOCATE PREPARE add_holders;
