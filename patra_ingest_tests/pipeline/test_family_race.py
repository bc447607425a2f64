"""Two workers end the last parts of a slice that `cap.then` has cut at the same moment."""

import threading
from contextlib import closing

from patra_ingest.executor import execute
from patra_ingest.ledger.db import open_db
from patra_ingest_tests.builders import a_trigger, day
from patra_ingest_tests.fakes import upstream
from patra_ingest_tests.pipeline.harness import Home, end_state
from patra_ingest_tests.pipeline.test_planned_runs import (
    CAP,
    HOUR,
    Source,
    a_capped,
    run_to_the_end,
)


def test_what_is_missing_is_noticed_though_both_parts_end_at_once(mysql_url, tmp_path, monkeypatch):
    """On SQLite one of them waits for the other anyway."""
    meeting, require_family = threading.Barrier(2), execute.require_family

    def met(tx, work):
        if work.bounds.splits:
            try:
                meeting.wait(3)
            except threading.BrokenBarrierError:  # an odd one out
                meeting.reset()
        require_family(tx, work)

    monkeypatch.setattr(execute, "require_family", met)
    source = Source([day(1) + 5 * HOUR], CAP)
    with closing(open_db(mysql_url)) as db, upstream(source) as server:
        home = Home(db, mysql_url, tmp_path / "home")
        home.apply(a_capped(server.url, highest=19))
        run_to_the_end(home, home.plan(a_trigger(start=day(0), end=day(4))).plan_id)

        failed = home.rows("SELECT last_error_msg FROM ing_task WHERE status_code = 'FAILED'")
        assert ["hold 20 of its 26 records" in told for (told,) in failed] == [True]
        assert end_state(home, "example").cursor == day(1) + 5 * HOUR
