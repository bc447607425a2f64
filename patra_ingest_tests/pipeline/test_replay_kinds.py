"""Whatever a batch had to do to get its answer, its replay finds it again."""

import pytest
from sqlalchemy import text

from patra_ingest.clock import SystemClock
from patra_ingest.executor.replay import replay
from patra_ingest.executor.replaying import Match, Outcome
from patra_ingest.rawstore.store import RawStore
from patra_ingest.settings import Settings
from patra_ingest.views.blackbox import Export, open_blackbox
from patra_ingest_tests.builders import NOON, a_trigger, an_endpoint, an_item, by_token, day
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.pipeline.library import Library, a_library
from patra_ingest_tests.pipeline.test_paging_kinds import (
    KINDS,
    address_in_the_body,
    next_of,
    page,
)
from patra_ingest_tests.pipeline.walks import (
    a_source,
    batches,
    between,
    harvest,
    last_error,
    listening,
    stamp,
    work_on,
    works,
)


@pytest.fixture
def home(sqlite_db, sqlite_url, tmp_path):
    return Home(sqlite_db, sqlite_url, tmp_path / "home")


def replays(home, contact=""):
    runs = [row[0] for row in home.rows("SELECT id FROM ing_task_run ORDER BY id")]
    raw = RawStore(home.folder / "raw")
    return [replay(home.db, raw, SystemClock(), run, None, contact) for run in runs]


def the_run(home, **more):
    (found,) = replays(home, **more)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_paging_is_replayed(home, kind):
    (endpoint, answer), requests = KINDS[kind]
    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)

    found = the_run(home)

    assert found.outcome is Outcome.EQUAL, found.as_markdown()
    assert len(found.batches) == requests
    notes = {note for batch in found.batches for note in batch.notes}
    in_header = kind in ("a token in a header", "a Link header")
    assert len(notes) == (1 if in_header else 0), "what is not kept is said"


@pytest.mark.parametrize("kind", ["OFFSET", "PAGE", "TOKEN"])
def test_a_page_that_had_to_shrink_is_replayed_at_its_size(home, kind):
    paging = {"shrink_on": [504]}
    endpoint = {
        "OFFSET": an_endpoint(paging=paging),
        "PAGE": an_endpoint(paging={**paging, "type": "PAGE", "page_param": "p"}),
        "TOKEN": by_token(paging=paging),
    }[kind]
    if kind == "PAGE":
        del endpoint["request"]["query"]["offset"]

    def answer(asked):
        size = int(asked["rows"])
        start = int(asked.get("offset", asked.get("token", (int(asked.get("p", 1)) - 1) * size)))
        if start == 20 and size > 5:
            return 504, {}
        return page(asked, start, size, next=str(start + size) if start + size < 35 else None)

    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert any(one["selfHealing"]["pageSizeShrink"] for one in batches(home))

    found = the_run(home)

    assert found.outcome is Outcome.EQUAL, found.as_markdown()


def test_a_page_that_was_looked_at_twice_is_replayed_twice(home):
    empty = [True]

    def answer(asked):
        start = int(asked["offset"])
        if start == 20 and empty:
            empty.clear()
            return 200, {"items": [], "total": 35}
        return page(asked, start)

    with listening(answer) as server:
        home.apply(a_source(server.url, works=an_endpoint()))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)
    assert any(one["selfHealing"]["tailProbed"] for one in batches(home))

    found = the_run(home)

    assert found.outcome is Outcome.EQUAL, found.as_markdown()


@pytest.mark.parametrize("status", [400, 500])
def test_a_bad_id_among_ids_that_are_asked_for_one_by_one_is_replayed(home, status):
    library = Library(4)
    library.poison = {"w000": status, "w002": status}
    with listening(library) as server:
        home.apply(a_library(server.url, detail={"batch": 1}, batching={"ids_per_request": 1}))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)

    found = the_run(home)

    assert found.outcome is Outcome.EQUAL, found.as_markdown()
    quarantined = [c.now for b in found.batches for c in b.checks if c.name == "quarantined ids"]
    assert [one for some in quarantined for one in some] == ["w000", "w002"]


def test_a_key_in_the_request_and_in_the_next_address_is_no_difference(home, monkeypatch):
    monkeypatch.setenv("PATRA_TEST_KEY", "librarian")
    # A word as a key, with a prefix, under a name that says nothing: the stored bodies repeat it.
    key = {"type": "API_KEY", "field": "k", "prefix": "v.", "secret": "env:PATRA_TEST_KEY"}
    key["location"] = "QUERY"
    endpoint, _ = address_in_the_body()

    def answer(asked):
        start = int(asked.get("after", 0))
        following = next_of(asked, start + 10)
        return page(asked, start, next=following and f"{following}&k={asked['k']}")

    with listening(answer) as server:
        auth = {"auth": {"required": True, "credentials": {"main": key}}}
        home.apply(a_source(server.url, auth, works=endpoint))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)

    found = the_run(home)

    assert found.outcome is Outcome.EQUAL, found.as_markdown()
    with home.db.read() as tx:
        raw = RawStore(home.folder / "raw")
        export = Export("ann", NOON, True, Settings().secret)
        boxes = [open_blackbox(tx, raw, 1, no, export) for no in (1, 2, 3, 4)]
        assert any("librarian" in str(raw.get(box.form["bodies"][0]["key"])) for box in boxes)
    told = str([box.as_json() for box in boxes]) + found.as_markdown() + str(found.as_json())
    assert "librarian" not in told


def test_who_we_are_and_what_time_it_is_are_no_part_of_the_question(home, monkeypatch):
    monkeypatch.setenv("PATRA_CONTACT", "ann@patra-tests.org")
    endpoint = an_endpoint()
    endpoint["request"]["query"] |= {"mailto": "${identity.contact}", "at": "${now|iso}"}
    with listening(lambda asked: page(asked, int(asked["offset"]))) as server:
        home.apply(a_source(server.url, works=endpoint))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)

    for contact in ("", "ann@patra-tests.org", "somebody@else.example"):
        found = the_run(home, contact=contact)
        assert found.outcome is Outcome.EQUAL, found.as_markdown()


def test_an_older_version_that_was_not_taken_is_kept_and_no_difference(home):
    new, old = an_item("w1", stamp(9)), an_item("w1", stamp(3), title="before")
    pages = [[new, *works(1)], [old]]

    def answer(asked):
        number = int(asked["offset"]) // 10
        return 200, {"items": pages[number], "total": 3}

    endpoint = an_endpoint(paging={"stop": ["TOTAL_REACHED"], "step": "PAGE_SIZE"})
    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))
        harvest(home)

    found = replays(home)[0]

    assert found.counts == {Match.SAME: 2, Match.KEPT: 1}, found.as_markdown()
    assert found.outcome is Outcome.EQUAL


def test_a_walk_that_was_given_up_is_replayed_as_it_was(home):
    """A run without its certificate is void: the next begins again, and both can be told."""
    missing = [True]

    def answer(asked):
        found = between(works(15), asked)
        start = int(asked["offset"])
        last = 14 if missing else 15
        return 200, {"items": found[start : min(start + 10, last)], "total": 15}

    endpoint = an_endpoint(paging={"stop": ["TOTAL_REACHED"]})
    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))
        assert harvest(home) == ["RELEASED"]
        missing.clear()
        home.pass_pauses()
        assert work_on(home) == ["SUCCEEDED"], last_error(home)

    found = replays(home)

    assert [len(one.batches) for one in found] == [2, 2]
    assert {one.outcome for one in found} == {Outcome.EQUAL}, found[0].as_markdown()


def test_a_run_that_brought_nothing_has_nothing_to_replay(home):
    with listening(lambda _: (400, {"error": "no"})) as server:
        home.apply(a_source(server.url, works=an_endpoint()))
        home.plan(a_trigger(start=day(0), end=day(1)))
        home.work()

    found = the_run(home)

    assert (found.batches, found.outcome) == ((), Outcome.EQUAL)
    assert "there is nothing to replay" in found.as_markdown()
    with home.db.read() as tx:
        assert tx.execute(text("SELECT COUNT(*) FROM ing_task_run_batch")).scalar() == 1
        box = open_blackbox(tx, RawStore(home.folder / "raw"), 1, 1, Export("ann", NOON))
    assert (box.form["batch"]["status"], box.form["bodies"]) == ("FAILED", [])
    assert "400" in box.form["batch"]["error"]


GONE = {"errors": [{"when": {"status": 404}, "do": "GONE"}]}
WITHOUT_AN_ANSWER = {
    "others are asked for": ({}, {"lost": {"w004", "w005", "w006", "w007"}}),
    "some are called gone": (GONE, {"poison": {"w002": 404, "w005": 404}}),
    "some cannot be asked for": ({}, {"found": ["w000", "10.1/a,b", "w002"]}),
}


@pytest.mark.parametrize("habit", WITHOUT_AN_ANSWER)
def test_ids_without_an_answer_are_replayed(home, habit):
    parts, habits = WITHOUT_AN_ANSWER[habit]
    library = Library(10)
    for name, value in habits.items():
        setattr(library, name, value)
    with listening(library) as server:
        home.apply(a_library(server.url, **parts))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)

    found = the_run(home)

    assert found.outcome is Outcome.EQUAL, found.as_markdown()
