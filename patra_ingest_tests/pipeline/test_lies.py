"""An upstream that goes in circles, keeps silent or promises too much never makes a slice done."""

import pytest

from patra_ingest.ledger.db import read_json
from patra_ingest_tests.builders import a_pack, a_trigger, an_endpoint, an_item, by_token, day
from patra_ingest_tests.fakes import upstream
from patra_ingest_tests.pipeline.harness import Home, work_off


def items(first, past):
    return [an_item(str(n)) for n in range(first, past)]


def repeats_page_one(_asked):
    return {"items": items(0, 10), "total": 30}


def echoes_the_token(asked):
    start = 0 if "token" not in asked else 10
    return {"items": items(start, start + 10), "next": "t", "total": 30}


def goes_in_a_circle(asked):
    place = {"a": 10, "b": 20}.get(asked.get("token"), 0)
    return {"items": items(place, place + 10), "next": {0: "a", 10: "b", 20: "a"}[place]}


def ends_before_its_total(asked):
    full = asked["offset"] == "0"
    return {"items": items(0, 10) if full else [], "total": 30}


def promises_more_than_it_gives(_asked):
    return {"items": items(0, 7), "total": 30}


def promises_and_gives_nothing(_asked):
    return {"items": [], "total": 3}


def loses_its_token(asked):
    return {"items": items(0, 10), "total": 30}


def raises_its_total_on_the_way(asked):
    start = int(asked["offset"])
    return {"items": items(start, min(start + 10, 15)), "total": 15 if start == 0 else 16}


def gives_one_item_twice(asked):
    start = int(asked["offset"])
    last = 14 if start else 10
    return {"items": [*items(start, last), *([an_item("3")] if start else [])], "total": 15}


LIES = {
    repeats_page_one: (an_endpoint(), "the source goes in a circle"),
    echoes_the_token: (by_token(), "hands out its own token: a loop"),
    goes_in_a_circle: (by_token(), "the source goes in a circle"),
    ends_before_its_total: (an_endpoint(), "30 promised, 10 landed"),
    promises_more_than_it_gives: (an_endpoint(), "30 promised, 7 landed"),
    promises_and_gives_nothing: (an_endpoint(), "3 promised, 0 landed"),
    loses_its_token: (by_token(), "30 promised, 10 landed"),
    raises_its_total_on_the_way: (an_endpoint(), "16 promised, 15 landed"),
    gives_one_item_twice: (an_endpoint(), "15 promised, 14 landed"),
}


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_a_slice_that_does_not_add_up_never_succeeds(db, db_url, tmp_path, lie):
    home = Home(db, db_url, tmp_path / "home")
    endpoint, reason = LIES[lie]
    ends = []
    with upstream(lambda asked: (200, lie(asked))) as source, home.live() as live:
        home.apply(a_pack(source.url, works=endpoint))
        live.planner.plan(a_trigger(start=day(0), end=day(1)))
        for _ in range(5):
            ends += work_off(live).tasks.elements()
            home.pass_pauses()

    assert ends == ["RELEASED"] * 3 + ["FAILED"]
    task = home.rows("SELECT * FROM ing_task")[0]
    assert (task.status_code, task.last_error_code) == ("FAILED", "INCOMPLETE")
    assert reason in task.last_error_msg
    assert home.one("SELECT status_code FROM ing_plan_slice") == "FAILED"
    runs = home.rows("SELECT status_code, certificate FROM ing_task_run")
    assert [run.status_code for run in runs] == ["FAILED"] * 4
    assert {read_json(run.certificate)["verdict"] for run in runs} == {"INCOMPLETE"}
    assert home.one("SELECT COUNT(*) FROM ing_cursor") == 0
    assert home.one("SELECT COUNT(*) FROM ing_cursor_event") == 0


def test_an_incomplete_slice_is_walked_again_from_its_first_page(db, db_url, tmp_path):
    home = Home(db, db_url, tmp_path / "home")
    with upstream(lambda asked: (200, ends_before_its_total(asked))) as source:
        home.apply(a_pack(source.url))
        home.plan(a_trigger(start=day(0), end=day(1)))
        home.work()
        home.pass_pauses()

        def honest(asked):
            start = int(asked["offset"])
            return 200, {"items": items(start, min(start + 10, 30)), "total": 30}

        source.answer = honest
        source.asked.clear()
        home.work()

        assert [asked["offset"] for asked in source.asked] == ["0", "10", "20", "30"]
    assert home.one("SELECT status_code FROM ing_task") == "SUCCEEDED"
    assert home.one("SELECT COUNT(*) FROM ing_record") == 30
    proof = read_json(home.one("SELECT certificate FROM ing_task_run WHERE attempt_no = 2"))
    assert (proof["promised"], proof["landed"], proof["verdict"]) == (30, 30, "COMPLETE")


@pytest.mark.parametrize("body", [b"<html>maintenance</html>", b"", b'{"items": ['])
def test_a_body_that_cannot_be_read_is_never_an_empty_page(db, db_url, tmp_path, body):
    home = Home(db, db_url, tmp_path / "home")
    with upstream(lambda _: (200, body)) as source:
        home.apply(a_pack(source.url))
        home.plan(a_trigger(start=day(0), end=day(1)))

        assert home.work().tasks == {"RELEASED": 1}

    assert home.one("SELECT last_error_code FROM ing_task") == "L1"
    assert home.one("SELECT COUNT(*) FROM ing_cursor") == 0


def test_an_answer_of_another_shape_holds_the_endpoint(db, db_url, tmp_path):
    home = Home(db, db_url, tmp_path / "home")
    with upstream(lambda _: (200, {"status": "ok", "results": []})) as source:
        home.apply(a_pack(source.url))
        home.plan(a_trigger(start=day(0), end=day(2)))

        assert home.work().tasks == {"FAILED": 1}

    assert "there is no list at $.items" in home.one("SELECT reason FROM ing_hold")
