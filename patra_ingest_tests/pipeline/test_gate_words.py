"""What a source says of our speed, and how all that is sent afterwards follows it."""

import threading
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import pytest

from patra_ingest.ledger.db import read_instant, read_json
from patra_ingest.registry.pack import parse_pack
from patra_ingest.registry.pack_file import PackText
from patra_ingest_tests.builders import DAY, START, a_trigger, an_endpoint, an_item, day, pack_text
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.pipeline.walks import a_source, between, listening

HOUR = timedelta(hours=1)
PAGES_A_DAY = 3
# A busy machine may be so much slower with one request than with the next.
ON_ITS_WAY = 0.1
DECIDED = ("limitKey", "permitCost", "decision", "waitMs", "r", "burst", "inFlight")
CANARY = "canary-7f3a9c5512"
LIMITS = {"limit": "X-Limit", "interval": "X-Interval", "concurrency": "X-Concurrency"}
BUDGET = {
    "limit": "X-Limit",
    "remaining": "X-Remaining",
    "reset": {"header": "X-Reset", "unit": "SECONDS_LEFT"},
}


@pytest.fixture
def home(db, db_url, tmp_path):
    return Home(db, db_url, tmp_path / "home")


class Source:
    """One work an hour on pages of ten; `says` gives the n-th answer its status and headers."""

    def __init__(self, says=lambda _: (200, {}), seconds=0.0, **more):
        self.says, self.seconds, self.more = says, seconds, more
        self.works = [
            an_item(f"w{n:03d}", (START + n * HOUR).strftime("%Y-%m-%dT%H:%M:%SZ"))
            for n in range(20 * 24)
        ]
        self.came, self.left, self.most_open = [], [], 0
        self.guard = threading.Lock()

    def __call__(self, asked):
        with self.guard:
            self.came.append((time.monotonic(), asked["path"]))
            number = len(self.came)
            self.most_open = max(self.most_open, number - len(self.left))
        time.sleep(self.seconds)
        status, headers = self.says(number)
        found, start = between(self.works, asked), int(asked["offset"])
        page = {
            "items": found[start : start + int(asked["rows"])],
            "total": len(found),
            **self.more,
        }
        with self.guard:
            self.left.append(time.monotonic())
        return (status, page if status == 200 else {}, headers)


def harvest(home, source, rate=None, past=1, lanes=1, **more):
    """Let a worker have the first days of a source; return how its tasks ended."""
    rated = {"per_second": 100, "burst": 10, **(rate or {})}
    with listening(source) as server:
        home.apply(a_source(server.url, {"rate": rated, **more}))
        home.plan(a_trigger(start=day(0), end=day(past)))
        return home.work(lanes).tasks


def bucket(home, key="example"):
    (row,) = home.rows("SELECT * FROM ing_rate_bucket WHERE rate_key = :key", key=key)
    return row


def black_box(home, part="rate"):
    """Return what every batch keeps of its last answer, in the order they were asked for."""
    rows = home.rows("SELECT response FROM ing_task_run_batch ORDER BY id")
    return [read_json(row[0]).get(part) for row in rows]


def told(limit, interval="1s", concurrency="5"):
    return 200, {"X-Limit": limit, "X-Interval": interval, "X-Concurrency": concurrency}


@pytest.mark.parametrize(
    ("limit", "interval", "rate"),
    [("20", "1s", 20), ("1200", "60", 20), ("500", "1s", 100), ("a lot", "1s", 100)],
)
def test_the_rate_is_what_the_source_says_and_never_above_what_is_configured(
    home, limit, interval, rate
):
    ends = harvest(home, Source(lambda _: told(limit, interval)), {"headers": LIMITS})

    assert ends == {"SUCCEEDED": 1}
    assert float(bucket(home).rate_per_second) == rate
    assert float(bucket(home).configured_rate) == 100
    assert [one["r"] for one in black_box(home)] == ["100", str(rate), str(rate)]


def test_a_limit_that_changes_reaches_the_next_request(home):
    limits = ["50", "50", "30", "30", "80", "80"]

    harvest(home, Source(lambda number: told(limits[number - 1])), {"headers": LIMITS}, past=2)

    seen = [one["r"] for one in black_box(home)]
    assert seen == ["100", "50", "50", "30", "30", "80"]


def test_no_more_requests_are_open_than_the_source_says(home):
    rate = {"headers": LIMITS, "in_flight": 5}
    first = Source(lambda _: told("100", concurrency="2"))
    harvest(home, first, rate)
    assert [one["inFlight"] for one in black_box(home)] == [5, 2, 2]

    second = Source(lambda _: told("100", concurrency="2"), seconds=0.05)
    with listening(second) as server:
        home.apply(a_source(server.url, {"rate": {"per_second": 100, "burst": 10, **rate}}))
        home.plan(a_trigger(start=day(1), end=day(5)))
        home.work(lanes=4)

    assert len(second.came) == 4 * PAGES_A_DAY
    assert second.most_open == 2
    assert bucket(home).holders is None


def test_words_win_over_a_cut_that_was_our_guess(home):
    def says(number):
        return [(200, {}), (503, {}), told("80"), told("80")][number - 1]

    harvest(home, Source(says), {"headers": LIMITS})

    assert [one["r"] for one in black_box(home)] == ["100", "50", "80"]
    assert float(bucket(home).rate_per_second) == 80


def test_a_budget_that_is_used_up_is_waited_for_and_is_nobodys_failure(home):
    def says(number):
        left = "0" if number == 1 else "50"
        return 200, {"X-Remaining": left, "X-Limit": "60", "X-Reset": "1.5"}

    source = Source(says)
    ends = harvest(home, source, {"headers": BUDGET, "in_flight": 1}, past=2, lanes=2)

    assert ends == {"SUCCEEDED": 2}
    (first, _), (second, _) = source.came[:2]
    assert second - source.left[0] >= 1.5
    assert second - first < 5
    assert len(source.came) == 2 * PAGES_A_DAY
    assert {row[0] for row in home.rows("SELECT retry_count FROM ing_task")} == {0}
    assert read_json(bucket(home).last_signal)["signal"] == "BUDGET_GONE"
    assert float(bucket(home).rate_per_second) == 100
    said = black_box(home, "quota")
    assert {(one["remaining"], one["limit"]) for one in said} == {("0", "60"), ("50", "60")}
    assert all(read_instant(one["windowReset"]) > datetime.now(UTC) - DAY for one in said)


@pytest.mark.parametrize(
    ("park_after", "signal", "rate"), [("1m", "BUDGET_GONE", 100), ("10m", "RETRY_AFTER", 50)]
)
def test_a_long_pause_sends_the_tasks_of_its_key_back_and_no_others(home, park_after, signal, rate):
    source, before = Source(), datetime.now(UTC)
    source.says = lambda number: (
        (429, {"Retry-After": "120"}) if source.came[number - 1][1] == "/works" else (200, {})
    )
    notes = an_endpoint(rate={"key": "notes", "per_second": 100, "burst": 10})
    notes["request"]["path"] = "/notes"
    with listening(source) as server:
        rated = {"per_second": 100, "burst": 10, "park_after": park_after}
        home.apply(a_source(server.url, {"rate": rated}, works=an_endpoint(), notes=notes))
        for endpoint in ("works", "notes"):
            home.plan(a_trigger(endpoint, start=day(0), end=day(3)))
        ends = home.work(lanes=1).tasks

    assert ends == {"RELEASED": 3, "SUCCEEDED": 3}
    assert [path for _, path in source.came].count("/works") == 1
    assert [path for _, path in source.came].count("/notes") == 3 * PAGES_A_DAY
    for task in home.rows("SELECT * FROM ing_task WHERE endpoint_name = 'works'"):
        assert (task.status_code, task.retry_count, task.lease_owner) == ("QUEUED", 0, None)
        assert read_instant(task.scheduled_at) >= before + timedelta(seconds=120)
    assert read_json(bucket(home).last_signal)["signal"] == signal
    assert float(bucket(home).rate_per_second) == rate
    assert bucket(home, "notes").cool_down_until is None


@pytest.mark.parametrize("status", [429, 503])
def test_lanes_that_are_refused_together_halve_the_rate_once(home, status):
    lanes = 3
    together = threading.Barrier(lanes)

    def says(number):
        if number > lanes:
            return 200, {}
        together.wait(10)
        return status, {}

    source, patient = Source(says), {"breaker": {"failures": 50, "cooldown": "1s"}}
    ends = harvest(home, source, past=lanes, lanes=lanes, retry=patient)

    assert ends == {"SUCCEEDED": lanes}
    assert len(source.came) == lanes * PAGES_A_DAY + lanes
    assert float(bucket(home).rate_per_second) == 50
    assert {one["r"] for one in black_box(home)} == {"50"}
    assert bucket(home).holders is None


def test_every_batch_keeps_how_it_passed_the_gate_and_no_secret(home, monkeypatch):
    monkeypatch.setenv("EXAMPLE_KEY", CANARY)
    key = {"type": "API_KEY", "location": "HEADER", "field": "X-Key", "secret": "env:EXAMPLE_KEY"}
    says = {"X-Limit": CANARY, "X-Remaining": "7", "X-Reset": CANARY}

    harvest(
        home,
        Source(lambda _: (200, says)),
        {"headers": BUDGET, "in_flight": 2},
        auth={"required": True, "credentials": {"main": key}},
    )

    boxes = black_box(home)
    assert len(boxes) == PAGES_A_DAY
    for box in boxes:
        assert {name: box[name] for name in DECIDED if name != "waitMs"} == {
            "limitKey": "example",
            "permitCost": "1.0",
            "decision": "ALLOW",
            "r": "100",
            "burst": "10",
            "inFlight": 2,
        }
        assert box["waitMs"] < 1000
        assert box["cooldownUntil"] is None
    assert black_box(home, "quota") == [{"remaining": "7"}] * PAGES_A_DAY
    tables = ("ing_task_run_batch", "ing_task_run", "ing_rate_bucket", "ing_task")
    assert all(CANARY not in str(home.rows(f"SELECT * FROM {table}")) for table in tables)


def test_two_lanes_keep_the_interval_between_any_two_requests(home):
    source = Source()
    with listening(source) as server:
        text = pack_text(server.url, works=an_endpoint(paging={"page_size": 30}))
        text["rate"] = {"key": "example", "min_interval": "1200ms"}
        home.apply(parse_pack(PackText("the test's pack", text, {})))
        home.plan(a_trigger(start=day(0), end=day(4)))
        home.work(lanes=2)

    came = [at for at, _ in source.came]
    assert len(came) == 4
    assert min(after - before for before, after in pairwise(came)) >= 1.2 - ON_ITS_WAY
    assert [one["decision"] for one in black_box(home)].count("WAIT") == 3


def test_endpoints_with_keys_of_their_own_keep_the_rate_they_share(home):
    shared = [{"key": "everything", "per_second": 10, "burst": 1, "in_flight": 2}]
    own = {"per_second": 100, "burst": 10, "also": shared}
    endpoints = {name: an_endpoint(rate={"key": name, **own}) for name in ("one", "two")}
    source = Source()
    with listening(source) as server:
        home.apply(a_source(server.url, **endpoints))
        for name in endpoints:
            home.plan(a_trigger(name, start=day(0), end=day(2)))
        home.work(lanes=3)

    came = [at for at, _ in source.came]
    assert len(came) == 4 * PAGES_A_DAY
    assert (len(came) - 1) / 10 - ON_ITS_WAY <= came[-1] - came[0] < 4
    assert source.most_open <= 2
    assert {bucket(home, name).holders for name in ("one", "two", "everything")} == {None}


@pytest.mark.parametrize("cost", [3, Decimal("0.25")], ids=["dearer", "cheaper"])
@pytest.mark.parametrize("where", ["body", "header"])
def test_a_request_costs_what_its_answer_says(home, where, cost):
    said = {"cost_path": "$.cost"} if where == "body" else {"headers": {"cost": "X-Cost"}}
    source = Source(lambda _: (200, {"X-Cost": str(cost)}), cost=str(cost))
    rate = {"per_second": 0.001, "burst": 100, "quotas": [{"limit": 1000, "per": "1d"}], **said}

    harvest(home, source, rate)

    paid = PAGES_A_DAY * float(cost)
    assert float(home.one("SELECT SUM(spent_amount) FROM ing_quota_window")) == paid
    assert float(bucket(home).tokens) == pytest.approx(100 - paid, abs=0.1)


@pytest.mark.parametrize("cost", ["free", -4, "1e30", "NaN", None, {"a": 1}])
def test_a_cost_that_makes_no_sense_is_what_the_pack_declares(home, cost):
    rate = {"cost_path": "$.cost", "quotas": [{"limit": 1000, "per": "1d"}]}

    ends = harvest(home, Source(cost=cost), rate)

    assert ends == {"SUCCEEDED": 1}
    assert float(home.one("SELECT SUM(spent_amount) FROM ing_quota_window")) == PAGES_A_DAY
