"""What an answer means is data: each action of a pack's rules, and what holds without any."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from patra_ingest.ledger.db import read_instant, read_json
from patra_ingest_tests.builders import a_trigger, an_endpoint, by_token, day
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.pipeline.library import Library, a_library
from patra_ingest_tests.pipeline.walks import (
    a_source,
    batches,
    harvest,
    ids,
    last_error,
    listening,
    proofs,
    records,
    work_on,
    works,
)

WORKS = works(35)


@pytest.fixture
def home(sqlite_db, sqlite_url, tmp_path):
    return Home(sqlite_db, sqlite_url, tmp_path / "home")


def good(asked):
    start, size = int(asked.get("offset", asked.get("token", 0))), int(asked["rows"])
    token = str(start + size) if start + size < 35 else None
    return 200, {"items": WORKS[start : start + size], "total": 35, "next": token}


class Source:
    """Answers the first questions for a place with trouble, and all others well."""

    def __init__(self, trouble, times=1, at="20"):
        self.trouble, self.left, self.at = trouble, times, at

    def __call__(self, asked):
        if asked.get("offset", asked.get("token")) == self.at and self.left:
            self.left -= 1
            return self.trouble
        return good(asked)


def rule(do, status=418, **more):
    return {"when": {"status": status}, "do": do, **more}


def ruled(*rules, endpoint=an_endpoint, **parts):
    return endpoint(errors=list(rules), **parts)


def runs(home):
    query = "SELECT status_code, stats, error FROM ing_task_run ORDER BY id"
    return [(row[0], read_json(row[1]), row[2]) for row in home.rows(query)]


def holds(home):
    return [tuple(row) for row in home.rows("SELECT endpoint_name, reason_code FROM ing_hold")]


def test_an_answer_that_means_nothing_is_an_empty_page(home):
    nothing = Source((404, {"error": "no matches"}), times=9, at="0")
    with listening(nothing) as server:
        home.apply(a_source(server.url, works=ruled(rule("EMPTY", 404))))

        assert harvest(home) == ["SUCCEEDED"]
        assert len(server.asked) == 1
    assert (proofs(home)[0]["landed"], proofs(home)[0]["verdict"]) == (0, "COMPLETE")


def test_nothing_in_the_middle_of_a_walk_is_not_believed(home):
    with listening(Source((404, {}), times=99)) as server:
        home.apply(a_source(server.url, works=ruled(rule("EMPTY", 404))))

        assert harvest(home) == ["RELEASED"]
    assert last_error(home)[1] == "INCOMPLETE"


def test_ids_that_are_gone_are_withdrawn(home):
    library = Library(4)
    with listening(library) as server:
        home.apply(a_library(server.url))
        assert harvest(home) == ["SUCCEEDED"]
        library.poison = dict.fromkeys(ids(4), 410)
        home.apply(a_library(server.url, errors=[rule("GONE", 410)]))

        assert harvest(home, past=2) == ["SUCCEEDED"], last_error(home)
    assert records(home) == []
    assert proofs(home)[1]["gone"] == 4


def test_a_dead_walk_is_begun_again_at_once_and_only_once(home):
    source = Source((400, {"error": "cursor expired"}))
    with listening(source) as server:
        home.apply(a_source(server.url, works=ruled(rule("RESTART_SLICE", 400), endpoint=by_token)))

        assert harvest(home) == ["RELEASED", "SUCCEEDED"], "due at once"
        asked = [one.get("token") for one in server.asked]
    assert asked == [None, "10", "20", None, "10", "20", "30"]
    assert records(home) == ids(35)
    assert (proofs(home)[0]["pages"], proofs(home)[0]["verdict"]) == (4, "COMPLETE")


def test_a_source_that_says_too_many_has_its_slice_cut_again(home):
    def answer(asked):
        whole = asked["from"][:10] != asked["to"][:10] or asked["to"][11:13] > "12"
        return (
            (400, {"error": "too many"}) if whole and asked["from"][11:13] == "00" else good(asked)
        )

    with listening(answer) as server:
        home.apply(a_source(server.url, works=ruled(rule("RESLICE", 400))))
        ends = harvest(home, rounds=2)

    assert ends[0] == "RESLICED"
    assert "SUCCEEDED" in ends
    assert records(home) == ids(35)
    assert home.one("SELECT reason_code FROM ing_reslice_request") == "RESULT_CAP"
    stats = runs(home)[0][1]
    assert stats["reSliceSuggested"]["reason"] == "RESULT_CAP"
    assert (runs(home)[0][0], stats["reqCount"]) == ("PARTIAL", 1)


def test_a_rule_may_ask_for_a_smaller_page(home):
    def answer(asked):
        return (418, {}) if int(asked["rows"]) > 5 else good(asked)

    with listening(answer) as server:
        home.apply(a_source(server.url, works=ruled(rule("SHRINK_PAGE"))))

        assert harvest(home) == ["SUCCEEDED"]
        assert [int(one["rows"]) for one in server.asked] == [10] + [5] * 8
    assert records(home) == ids(35)


@pytest.mark.parametrize(
    ("status", "said", "code", "is_held"),
    [
        pytest.param(418, "REJECT", "L2", False, id="a rule rejects"),
        pytest.param(418, "FATAL", "L4", True, id="a rule halts"),
        pytest.param(400, None, "L2", False, id="400"),
        pytest.param(401, None, "L4", True, id="401"),
        pytest.param(403, None, "L4", True, id="403"),
        pytest.param(402, None, "L4", True, id="402"),
    ],
)
def test_what_a_retry_cannot_mend_ends_the_task(home, status, said, code, is_held):
    endpoint = ruled(rule(said, status, note="read the manual")) if said else an_endpoint()
    with listening(Source((status, {"message": "no"}), times=99, at="0")) as server:
        home.apply(a_source(server.url, works=endpoint))

        assert harvest(home, rounds=2) == ["FAILED"]
        assert len(server.asked) == 1
    assert last_error(home)[:2] == ("FAILED", code)
    assert holds(home) == ([("works", "L4")] if is_held else [])
    assert ("read the manual" in last_error(home)[2]) == (said is not None)
    assert [one[0] for one in runs(home)] == ["FAILED"]


def test_a_refused_credential_gives_way_to_another_one(home, monkeypatch):
    monkeypatch.setenv("PATRA_TEST_OLD", "old")
    monkeypatch.setenv("PATRA_TEST_NEW", "new")

    def answer(asked):
        is_old = asked["headers"]["Authorization"] == "Bearer old"
        return (401, {"error": "revoked"}) if is_old and asked["offset"] == "20" else good(asked)

    bearers = {
        "old": {"type": "BEARER", "secret": "env:PATRA_TEST_OLD", "preferred": True},
        "new": {"type": "BEARER", "secret": "env:PATRA_TEST_NEW"},
    }
    with listening(answer) as server:
        auth = {"auth": {"required": True, "credentials": bearers}}
        home.apply(a_source(server.url, auth))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        used = [asked["headers"]["Authorization"][7:] for asked in server.asked]
    assert used == ["old", "old", "old", "new", "new"]
    assert (records(home), holds(home)) == (ids(35), [])
    assert batches(home)[2]["retryCount"] == 1


@pytest.mark.parametrize("do", ["THROTTLE", "RETRY"])
def test_what_a_pack_declares_as_passing_passes(home, do):
    with listening(Source((403, {"error": "slow down"}))) as server:
        home.apply(a_source(server.url, works=ruled(rule(do, 403))))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        assert len(server.asked) == 5
    third = batches(home)[2]
    assert (third["reqCount"], third["retryCount"]) == (2, 1)
    assert third["429Count"] == (1 if do == "THROTTLE" else 0)
    assert third["selfHealing"]["qpsDownshift"] == (do == "THROTTLE")
    (attempt,) = third["attempts"]
    assert attempt["no"] == 1
    assert "answered 403" in attempt["error"]
    assert attempt["waitedMs"] >= (900 if do == "THROTTLE" else 0)
    assert holds(home) == []


def test_the_attempts_of_a_batch_that_fails_are_kept_with_its_run(home):
    with listening(Source((500, {}), times=99)) as server:
        retry = {"retry": {"max_attempts": 3, "breaker": {"failures": 9, "cooldown": "1s"}}}
        home.apply(a_source(server.url, retry))

        assert harvest(home) == ["RELEASED"]
        assert len(server.asked) == 5
    ((status, stats, error),) = runs(home)
    assert (status, stats["reqCount"], stats["retryCount"]) == ("FAILED", 5, 2)
    assert [one["no"] for one in stats["attempts"]] == [1, 2]
    assert "answered 500" in error
    (failed,) = home.rows("SELECT error FROM ing_task_run_batch WHERE status_code = 'FAILED'")
    assert "answered 500" in failed[0]


def test_too_many_failures_in_a_row_open_the_breaker_for_everyone(home):
    with listening(Source((500, {}), times=99, at="0")) as server:
        retry = {"retry": {"max_attempts": 9, "breaker": {"failures": 3, "cooldown": "2h"}}}
        home.apply(a_source(server.url, retry))
        before = datetime.now(UTC)

        assert set(harvest(home, past=2)) == {"RELEASED"}
        assert len(server.asked) == 3
    assert runs(home)[0][1]["circuitOpen"] is True
    until = home.one("SELECT cool_down_until FROM ing_rate_bucket WHERE rate_key = 'example'")
    assert read_instant(until) > before + timedelta(minutes=119)
    tasks = home.rows("SELECT retry_count, last_error_msg FROM ing_task ORDER BY retry_count")
    assert [row[0] for row in tasks] == [0, 1], "who waits because another failed has not failed"
    assert "answered 500" in tasks[1][1]


def test_a_breaker_that_closes_again_is_told_with_its_batch(home):
    with listening(Source((500, {}), times=2)) as server:
        retry = {"retry": {"max_attempts": 5, "breaker": {"failures": 2, "cooldown": "1s"}}}
        home.apply(a_source(server.url, retry))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert [one["selfHealing"]["circuitOpen"] for one in batches(home)] == [
        False,
        False,
        True,
        False,
    ]
    assert runs(home)[0][1]["circuitOpen"] is True


def test_a_retry_after_may_be_a_date(home):
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)
    headers = {"Retry-After": format_datetime(at, usegmt=True)}
    with listening(Source((429, {}, headers), times=99, at="0")) as server:
        home.apply(a_source(server.url))

        assert harvest(home) == ["RELEASED"]
        assert len(server.asked) == 1
    (task,) = home.rows("SELECT scheduled_at, retry_count FROM ing_task")
    assert abs(read_instant(task[0]) - at) < timedelta(seconds=2)
    assert task[1] == 0


def test_a_hold_on_one_endpoint_leaves_another_one_working(home):
    other = an_endpoint(request={"path": "/other"})

    def answer(asked):
        return (401, {}) if asked["path"] == "/works" else good(asked)

    with listening(answer) as server:
        home.apply(a_source(server.url, works=an_endpoint(), other=other))
        home.plan(a_trigger("works", day(0), day(2)))
        home.plan(a_trigger("other", day(0), day(1)))
        ends = work_on(home, rounds=2)

    assert sorted(ends) == ["FAILED", "SUCCEEDED"], "the second day of works is not even leased"
    assert holds(home) == [("works", "L4")]
    stored = home.rows("SELECT DISTINCT endpoint_name FROM ing_record")
    assert [row[0] for row in stored] == ["other"]
