-- The rate gate, complete: who holds what of a key, how its speed was cut and raised, what the source said of it.
-- Instants are UTC text with microseconds, 26 characters such as 2025-09-22 21:05:00.000000, which sorts by time.

-- One entry per process that holds or waits: {"HOLDER": {"places", "tokens", "until", "since"}}.
ALTER TABLE ing_rate_bucket ADD COLUMN holders TEXT NULL CHECK (holders IS NULL OR json_valid(holders));
ALTER TABLE ing_rate_bucket ADD COLUMN cut_at TEXT NULL CHECK (cut_at LIKE '____-__-__ __:__:__.______');  -- when the rate was last cut
ALTER TABLE ing_rate_bucket ADD COLUMN raised_at TEXT NULL CHECK (raised_at LIKE '____-__-__ __:__:__.______');  -- from when it rises again
ALTER TABLE ing_rate_bucket ADD COLUMN warm_from TEXT NULL CHECK (warm_from LIKE '____-__-__ __:__:__.______');  -- when it last started cold
ALTER TABLE ing_rate_bucket ADD COLUMN told TEXT NULL CHECK (told IS NULL OR json_valid(told));  -- what the source last said of our budget

-- Places in flight are kept by process in holders now, in the row whose lock decides about them.
DROP TABLE ing_rate_permit;
