"""A bad record never stops good ones; a bad endpoint never stops another."""

import json
from collections import Counter

import pytest

from patra_ingest.ledger.db import read_instant, read_json
from patra_ingest.ledger.holds import resume
from patra_ingest_tests.builders import a_pack, a_trigger, an_endpoint, an_item, by_token, day
from patra_ingest_tests.fakes import upstream
from patra_ingest_tests.pipeline.harness import FATES, Home, end_state

BAD = {3: {"id": None}, 7: {"updated": "yesterday"}, 11: {"title": None}, 12: {"id": True}}


@pytest.fixture
def home(db, db_url, tmp_path):
    return Home(db, db_url, tmp_path / "home")


def page(asked, item, total=25):
    offset = int(asked.get("offset") or asked.get("token") or 0)
    items = [item(n, asked["from"]) for n in range(offset, min(offset + 10, total))]
    after = {"next": str(offset + 10)} if offset + 10 < total else {}
    return 200, {"items": items, "total": total, **after}


def good(n, start):
    return an_item(f"{start}/{n}", updated=start)


def broken(n, start):
    return {"id": f"{start}/{n}", "updated": start, "name": "the field title was renamed"}


def mixed(n, start):
    return {**good(n, start), **BAD.get(n, {})}


def nested(levels):
    return json.loads("[" * levels + "]" * levels)


def accounted(stats):
    return stats["itemsCount"] == sum(stats[fate] for fate in FATES)


@pytest.mark.parametrize("endpoint", [an_endpoint(), by_token()], ids=["by offset", "by token"])
def test_bad_records_are_quarantined_and_the_others_land(home, endpoint):
    with upstream(lambda asked: page(asked, mixed)) as source:
        home.apply(a_pack(source.url, works=endpoint))
        home.plan(a_trigger(start=day(0), end=day(1)))
        home.work()

    ended = end_state(home, "example")
    assert (len(ended.records), ended.tasks, ended.cursor) == (21, {"SUCCEEDED": 1}, day(1))
    assert ended.certificates == [(25, 25, 3, "COMPLETE")]
    kept = home.rows(
        "SELECT q.item_no, q.path, q.reason, q.provider_id, q.status_code, q.value_text, b.page_no"
        " FROM ing_quarantine q JOIN ing_task_run_batch b ON b.id = q.batch_id ORDER BY q.id"
    )
    assert [(row.page_no, row.item_no, row.path) for row in kept] == [
        (1, 4, "$.id"),
        (1, 8, "$.updated"),
        (2, 2, "$.title"),
        (2, 3, "$.id"),
    ]
    assert {row.status_code for row in kept} == {"OPEN"}
    assert [row.provider_id is None for row in kept] == [True, False, False, True]
    assert [row.value_text for row in kept] == [None, "yesterday", None, "true"]


@pytest.mark.parametrize(
    ("fits", "odd", "why"),
    [
        pytest.param(nested(99), nested(100), "nested more than 100", id="too deep"),
        pytest.param({"k" * 65_535: 1}, {"k" * 65_536: 1}, "a name in it", id="a name too long"),
    ],
)
def test_a_field_that_one_of_the_ledgers_cannot_hold_is_quarantined(home, fits, odd, why):
    """MySQL would refuse the whole batch for it; the same records are kept on both."""
    titles = {1: fits, 4: odd}
    with upstream(
        lambda asked: page(asked, lambda n, at: good(n, at) | {"title": titles.get(n, "x")})
    ) as source:
        home.apply(a_pack(source.url, works=an_endpoint()))
        home.plan(a_trigger(start=day(0), end=day(1)))
        home.work()

    assert len(end_state(home, "example").records) == 24
    ((number, path, reason),) = home.rows("SELECT item_no, path, reason FROM ing_quarantine")
    assert (number, path, why in reason) == (5, "title", True)


def test_a_value_that_is_not_allowed_is_quarantined_with_what_it_is(home):
    def typed(n, start):
        return {**good(n, start), "type": "thesis" if n == 4 else "article"}

    kinds = {"type": {"path": "$.type", "one_of": ["article", "book"]}}
    with upstream(lambda asked: page(asked, typed)) as source:
        home.apply(a_pack(source.url, works=an_endpoint(fields=kinds)))
        home.plan(a_trigger(start=day(0), end=day(1)))
        home.work()

    (kept,) = home.rows("SELECT path, reason, value_text, provider_id FROM ing_quarantine")
    assert (kept.path, kept.value_text) == ("$.type", "thesis")
    assert kept.reason == "'thesis' is none of article, book"
    assert len(end_state(home, "example").records) == 24


def test_items_to_skip_and_hollow_ones_stop_nothing(home):
    def odd(n, start):
        kinds = {2: {"kind": "ad"}, 5: {"body": ""}}
        return {**good(n, start), "body": "text", **kinds.get(n, {})}

    response = {
        "skip": {"path": "$.kind", "equals": "ad"},
        "usable": {"path": "$.body", "empty": False},
    }
    with upstream(lambda asked: page(asked, odd)) as source:
        home.apply(a_pack(source.url, works=an_endpoint(response=response)))
        home.plan(a_trigger(start=day(0), end=day(1)))
        home.work()

    ended = end_state(home, "example")
    assert (len(ended.records), ended.tasks) == (23, {"SUCCEEDED": 1})
    (kept,) = home.rows("SELECT path, reason FROM ing_quarantine")
    assert (kept.path, kept.reason) == ("$.body", "the item is hollow, asked for later")
    batches = [read_json(row[0]) for row in home.rows("SELECT stats FROM ing_task_run_batch")]
    assert all(accounted(stats) for stats in batches)


def test_everything_that_was_seen_is_accounted_for_in_every_batch_and_run(home):
    def changing(asked):
        status, body = page(asked, mixed)
        late = an_item("late", updated="2030-01-01T00:00:00Z")
        body["items"] = [late, *body["items"][1:]]
        return status, body

    window = an_endpoint(response={"client_window": True})
    with upstream(changing) as source:
        home.apply(a_pack(source.url, works=window))
        home.plan(a_trigger(start=day(0), end=day(2)))
        home.work(lanes=2)

    batches = [read_json(row[0]) for row in home.rows("SELECT stats FROM ing_task_run_batch")]
    runs = [read_json(row[0]) for row in home.rows("SELECT stats FROM ing_task_run")]
    assert all(accounted(stats) for stats in batches + runs)
    assert sum(stats["itemsCount"] for stats in batches) == 50
    assert sum(stats["quarantined"] for stats in batches) == 8
    assert sum(stats["outOfWindow"] for stats in batches) == 6
    for name in (*FATES, "itemsCount"):
        assert sum(run[name] for run in runs) == sum(batch[name] for batch in batches)


def test_a_page_of_only_bad_records_holds_the_endpoint_and_no_other(home):
    def answer(asked):
        return page(asked, broken if asked["path"] == "/works" else good)

    other = an_endpoint(request={"path": "/other"})
    with upstream(answer) as source:
        home.apply(a_pack(source.url, works=an_endpoint(), other=other))
        home.plan(a_trigger("works", day(0), day(3)))
        home.plan(a_trigger("other", day(0), day(3)))

        drained = home.work()

        assert drained.tasks == {"FAILED": 1, "SUCCEEDED": 3}
        held = home.rows("SELECT endpoint_name, reason_code, reason, resumed_at FROM ing_hold")
        assert [(row.endpoint_name, row.reason_code, row.resumed_at) for row in held] == [
            ("works", "L4", None)
        ]
        assert "every one of 10 items fails at $.title" in held[0].reason
        assert "the source has changed its shape" in held[0].reason
        assert tasks(home, "works") == {"FAILED": 1, "QUEUED": 2}
        assert home.one("SELECT COUNT(*) FROM ing_record WHERE endpoint_name = 'works'") == 0
        assert home.one("SELECT COUNT(*) FROM ing_quarantine") == 0

        assert home.work().tasks == {}, "what is held is not leased"

        source.answer = lambda asked: page(asked, good)
        with home.db.write() as tx:
            assert resume(tx, "example", "works", "a person", home.db.now(tx)) == 1
        home.work()

        assert tasks(home, "works") == {"FAILED": 1, "SUCCEEDED": 2}
        assert cursors(home) == {"other": day(3)}, "the failed slice is a hole"


@pytest.mark.parametrize("status", [401, 403])
def test_a_source_that_refuses_us_is_held(home, status):
    with upstream(lambda _: (status, {"message": "who are you"})) as source:
        home.apply(a_pack(source.url))
        home.plan(a_trigger(start=day(0), end=day(3)))

        assert home.work().tasks == {"FAILED": 1}

        assert len(source.asked) == 1
    assert "who are you" in home.one("SELECT reason FROM ing_hold WHERE resumed_at IS NULL")


def test_a_rejected_request_fails_its_slice_and_lets_the_others_go_on(home):
    def answer(asked):
        first = asked["from"].startswith("2025-09-01")
        return (400, {"message": "bad filter"}) if first else page(asked, good)

    with upstream(answer) as source:
        home.apply(a_pack(source.url))
        home.plan(a_trigger(start=day(0), end=day(3)))

        assert home.work().tasks == {"FAILED": 1, "SUCCEEDED": 2}

    assert home.rows("SELECT COUNT(*) FROM ing_hold")[0][0] == 0
    code, message = home.rows(
        "SELECT last_error_code, last_error_msg FROM ing_task WHERE status_code = 'FAILED'"
    )[0]
    assert code == "L2"
    assert "bad filter" in message


def tasks(home, endpoint):
    query = "SELECT status_code FROM ing_task WHERE endpoint_name = :name"
    return Counter(status for (status,) in home.rows(query, name=endpoint))


def cursors(home):
    rows = home.rows("SELECT endpoint_name, normalized_instant FROM ing_cursor")
    return {name: read_instant(at) for name, at in rows}


def test_a_bad_tombstone_is_quarantined_and_stops_nothing(home):
    def answer(asked):
        items = [good(n, asked["from"]) for n in range(5)]
        return 200, {"items": items, "total": 5, "gone": ["x1", "y" * 600, "z" * 600]}

    with upstream(answer) as source:
        home.apply(a_pack(source.url, works=an_endpoint(response={"tombstones": "$.gone"})))
        home.plan(a_trigger(start=day(0), end=day(1)))
        home.work()

    stats = read_json(home.one("SELECT stats FROM ing_task_run_batch"))
    assert home.one("SELECT status_code FROM ing_task") == "SUCCEEDED"
    assert {key: stats[key] for key in ("itemsCount", "inserted", "deleted", "quarantined")} == {
        "itemsCount": 8,
        "inserted": 5,
        "deleted": 1,
        "quarantined": 2,
    }
    kept = home.rows("SELECT item_no, path, reason FROM ing_quarantine ORDER BY item_no")
    flaw = "an id has 1 to 512 characters, this one 600"
    assert [tuple(row) for row in kept] == [(n, "response.tombstones", flaw) for n in (6, 7)]


def test_the_certificate_says_how_many_items_are_in_quarantine(home):
    with upstream(lambda asked: page(asked, mixed)) as source:
        home.apply(a_pack(source.url))
        home.plan(a_trigger(start=day(0), end=day(1)))
        home.work()

    proof = read_json(home.one("SELECT certificate FROM ing_task_run"))
    assert (proof["verdict"], proof["promised"], proof["landed"]) == ("COMPLETE", 25, 25)
    assert (proof["quarantined"], proof["outOfWindow"]) == (len(BAD), 0)
