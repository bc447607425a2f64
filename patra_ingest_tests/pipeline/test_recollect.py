"""A run as questions and answers: whole where it was resumed, once where it was begun again."""

from patra_ingest.executor.recollect import recollect, tell
from patra_ingest.rawstore.store import RawStore
from patra_ingest_tests.builders import by_token
from patra_ingest_tests.pipeline.library import Library, a_library
from patra_ingest_tests.pipeline.walks import (
    a_source,
    harvest,
    last_error,
    listening,
    work_on,
    works,
)

WORKS = works(35)


def told_of(home, run):
    raw = RawStore(home.folder / "raw")
    found = recollect(home.db, raw, run)
    answers = list(tell(home.db, raw, found, ""))
    assert len(answers) == found.count
    return answers


def runs(home):
    return [row[0] for row in home.rows("SELECT id FROM ing_task_run ORDER BY id")]


def answering(trouble):
    """Return a source of 35 works that answers its third page with trouble, once."""
    left = [trouble]

    def answer(asked):
        if asked.get("token") == "20" and left:
            return left.pop()
        start = int(asked.get("token", 0))
        page = WORKS[start : start + 10]
        return 200, {"items": page, "total": 35, "next": str(start + 10) if start < 30 else None}

    return answer


def test_a_run_that_went_on_is_told_from_its_beginning(home):
    with listening(answering((503, {}))) as server:
        more = {"retry": {"max_attempts": 1}}
        home.apply(a_source(server.url, more, works=by_token()))
        assert harvest(home, rounds=2) == ["RELEASED", "SUCCEEDED"]

    first, second = (told_of(home, run) for run in runs(home))

    assert [one.token for one in first] == [None, "10"]
    assert [one.token for one in second] == [None, "10", "20", "30"]


def test_a_walk_that_was_begun_again_is_told_once(home):
    with listening(answering((400, {"error": "expired"}))) as server:
        rule = {"when": {"status": 400}, "do": "RESTART_SLICE"}
        home.apply(a_source(server.url, works=by_token(errors=[rule])))
        assert harvest(home) == ["RELEASED", "SUCCEEDED"]

    answers = told_of(home, runs(home)[-1])

    assert [one.token for one in answers] == [None, "10", "20", "30"]


def test_a_search_and_its_details_are_told_with_the_ids_that_did_not_come(home):
    library = Library(12)
    library.lost, library.deleted = {"w002"}, ["w011"]
    with listening(library) as server:
        home.apply(a_library(server.url))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        asked = len(server.asked)
        assert work_on(home) == []

    answers = told_of(home, runs(home)[0])

    assert len(answers) == asked
    assert {one.response.status for one in answers} == {200}
    assert {one.batch.stats.get("phase") for one in answers} == {"SEARCH", "DETAIL"}
