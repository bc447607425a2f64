"""Amounts per period, spent by real workers: HARVEST up to the limit, others up to their share."""

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from patra_ingest.ledger.db import instant_text, read_instant, read_json
from patra_ingest.model.codes import Operation
from patra_ingest_tests.builders import DAY, START, a_trigger, an_item, day
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.pipeline.walks import a_source, between, listening

HOUR = timedelta(hours=1)
PAGES_A_DAY = 3
LIMIT = 20
SOFT = 10  # what a BACKFILL may fill: 60 % of nine tenths of the limit, in whole requests


@pytest.fixture
def home(db, db_url, tmp_path):
    return Home(db, db_url, tmp_path / "home")


class Source:
    """One work an hour on pages of ten; the n-th answer says that `remaining[n]` is left."""

    def __init__(self, remaining=()):
        self.remaining, self.came, self.guard = remaining, [], threading.Lock()
        self.works = [
            an_item(f"w{n:03d}", (START + n * HOUR).strftime("%Y-%m-%dT%H:%M:%SZ"))
            for n in range(20 * 24)
        ]

    def __call__(self, asked):
        with self.guard:
            self.came.append(time.time())
            number = len(self.came)
        left = self.remaining[number - 1 : number]
        found, start = between(self.works, asked), int(asked["offset"])
        page = {"items": found[start : start + 10], "total": len(found)}
        return 200, page, {"X-Remaining": str(left[0])} if left else {}


@pytest.fixture
def source():
    return Source()


@pytest.fixture
def planned(home, source):
    """A source of 20 requests a day, whose days are thought to be one page each."""
    with listening(source) as server:
        home.apply(quota_pack(server.url, {"limit": LIMIT, "per": "1d"}))
        yield home


def quota_pack(url, quota, **more):
    rate = {"per_second": 500, "burst": 50, "quotas": [quota], **more}
    return a_source(url, {"rate": rate, "planning": {"records_per_day": 5}})


def plan(home, first, past, operation=Operation.HARVEST):
    return home.plan(a_trigger(start=day(first), end=day(past), operation=operation))


def runs(home):
    """Return the status and the numbers of every run, in their order."""
    rows = home.rows("SELECT status_code, stats FROM ing_task_run ORDER BY id")
    return [(row.status_code, read_json(row.stats)) for row in rows]


def spent(home):
    query = "SELECT SUM(spent_amount) FROM ing_quota_window WHERE rate_key = 'example'"
    return float(home.one(query) or 0)


def tomorrow():
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today + DAY


def let_a_day_pass(home):
    """Make every quota window yesterday's, and what waits for its end due."""
    for row in home.rows("SELECT * FROM ing_quota_window WHERE limit_amount > 0"):
        past = {
            "a": instant_text(read_instant(row.window_from) - DAY),
            "b": instant_text(read_instant(row.window_to) - DAY),
        }
        where = "SET window_from = :a, window_to = :b WHERE id = :id"
        home.execute(f"UPDATE ing_quota_window {where}", id=row.id, **past)
    home.pass_pauses()


def require_waiting(home, tasks):
    """Insist that so many tasks wait for tomorrow, and that nobody holds it against them."""
    waiting = home.rows("SELECT * FROM ing_task WHERE status_code = 'QUEUED'")
    assert len(waiting) == tasks
    for task in waiting:
        assert read_instant(task.scheduled_at) == tomorrow()
        assert (task.retry_count, task.lease_owner, task.last_error_code) == (0, None, None)
    assert home.one("SELECT COUNT(*) FROM ing_task WHERE status_code = 'FAILED'") == 0


def test_a_harvest_spends_its_quota_to_the_last_request_and_waits_for_the_next_day(planned, source):
    plan(planned, 0, 9)  # 27 requests, thought to be 9

    ends = planned.work().tasks

    assert len(source.came) == LIMIT
    assert spent(planned) == LIMIT
    assert ends == {"SUCCEEDED": 6, "RELEASED": 3}
    require_waiting(planned, 3)
    stopped = [stats for status, stats in runs(planned) if status == "PARTIAL"]
    assert [stats["quotaHardHits"] for stats in stopped] == [1, 1, 1]
    assert [stats["quotaSoftHits"] for stats in stopped] == [0, 0, 0]

    let_a_day_pass(planned)
    assert planned.work().tasks == {"SUCCEEDED": 3}
    assert len(source.came) == 9 * PAGES_A_DAY, "no page is asked for twice"
    assert planned.one("SELECT COUNT(*) FROM ing_record") == 9 * 24


def test_a_backfill_leaves_the_rest_of_the_day_to_a_harvest(planned, source):
    plan(planned, 0, 6, Operation.BACKFILL)  # 18 requests, thought to be 6

    ends = planned.work().tasks

    assert len(source.came) == SOFT
    assert ends == {"SUCCEEDED": 2, "RELEASED": 4}, "each has at least what it had reserved"
    require_waiting(planned, 4)
    stopped = [stats for status, stats in runs(planned) if status == "PARTIAL"]
    assert [stats["quotaSoftHits"] for stats in stopped] == [1, 1, 1, 1]
    assert [stats["quotaHardHits"] for stats in stopped] == [0, 0, 0, 0]

    plan(planned, 6, 8)
    assert planned.work().tasks == {"SUCCEEDED": 2}
    assert len(source.came) == SOFT + 2 * PAGES_A_DAY

    let_a_day_pass(planned)
    assert planned.work().tasks == {"SUCCEEDED": 4}
    assert len(source.came) == 8 * PAGES_A_DAY
    assert planned.one("SELECT COUNT(*) FROM ing_record") == 8 * 24


def test_a_quota_of_seconds_is_waited_for_on_the_lane(home, source):
    quota, period = 3, 2.0
    with listening(source) as server:
        home.apply(quota_pack(server.url, {"limit": quota, "per": "2s"}))
        plan(home, 0, 3)
        ends = home.work(lanes=2).tasks
        while home.one("SELECT COUNT(*) FROM ing_task WHERE status_code = 'QUEUED'"):
            ends += home.work(lanes=2).tasks

    assert set(ends) <= {"SUCCEEDED", "RELEASED"}
    assert ends["SUCCEEDED"] == 3
    came = sorted(source.came)
    assert len(came) == 3 * PAGES_A_DAY
    # A window may be spent at its very end, and the next one at its beginning.
    most = max(sum(first <= at < first + period for at in came) for first in came)
    assert most <= 2 * quota
    assert came[-1] - came[0] >= period * (len(came) / quota - 2)
    assert {row[0] for row in home.rows("SELECT retry_count FROM ing_task")} == {0}


@pytest.mark.parametrize(
    ("remaining", "expected"),
    [
        pytest.param([60, 59, 58], 42, id="others spend, too"),
        pytest.param([60, 90, 99], 42, id="more is left than we think"),
        pytest.param([99, 99, 10], 90, id="suddenly less"),
        pytest.param([100, 100, 100], 3, id="the source does not count"),
    ],
)
def test_what_the_source_says_is_left_corrects_our_book_upwards_only(home, remaining, expected):
    source = Source(remaining)
    told = {"headers": {"remaining": "X-Remaining"}}
    with listening(source) as server:
        home.apply(quota_pack(server.url, {"limit": 100, "per": "1d"}, **told))
        plan(home, 0, 1)
        home.work()

    assert spent(home) == expected


def test_a_quota_that_others_have_used_up_stops_us_before_our_own_book_does(home):
    source = Source([50, 0])
    told = {"headers": {"remaining": "X-Remaining"}}
    with listening(source) as server:
        home.apply(quota_pack(server.url, {"limit": 100, "per": "1d"}, **told))
        plan(home, 0, 2)
        ends = home.work().tasks

    assert ends == {"RELEASED": 2}
    assert len(source.came) == 2
    assert spent(home) == 100
    require_waiting(home, 2)


def test_the_spent_budget_of_one_credential_is_no_reason_to_slow_the_others_down(home, monkeypatch):
    key = {"type": "API_KEY", "location": "HEADER", "field": "X-Key"}
    keys = {name: {**key, "secret": f"env:EXAMPLE_{name}"} for name in ("ONE", "TWO")}
    for name in keys:
        monkeypatch.setenv(f"EXAMPLE_{name}", f"a-long-key-called-{name}")
    source = Source()

    def answer(asked):
        spent_key = asked["headers"]["X-Key"].endswith("ONE")
        return (429, {}, {"Retry-After": "7200"}) if spent_key else source(asked)

    with listening(answer) as server:
        auth = {"auth": {"required": True, "credentials": keys}}
        home.apply(a_source(server.url, {"rate": {"per_second": 100, "burst": 10}, **auth}))
        plan(home, 0, 1)
        ends = home.work().tasks

    assert ends == {"SUCCEEDED": 1}
    assert len(source.came) == PAGES_A_DAY
    (bucket,) = home.rows("SELECT * FROM ing_rate_bucket")
    assert float(bucket.rate_per_second) == 100
    assert bucket.cool_down_until is None
