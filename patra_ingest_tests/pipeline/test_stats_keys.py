"""Every batch and every run has all the numbers of 002 §14.3, whatever it asked for."""

import pytest

from patra_ingest.ledger.db import read_json
from patra_ingest.model.codes import Operation
from patra_ingest_tests.builders import a_trigger, an_endpoint
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.pipeline.library import Library, a_library
from patra_ingest_tests.pipeline.test_paging_kinds import address_in_the_body
from patra_ingest_tests.pipeline.walks import (
    a_source,
    batches,
    harvest,
    last_error,
    listening,
    work_on,
)

COUNTS = {"inserted", "updated", "skipped", "failed", "retryCount", "429Count"}
OF_A_BATCH = COUNTS | {"itemsCount", "latencyMs", "hasNext", "nextHint", "http", "selfHealing"}
OF_A_RUN = COUNTS | {
    *("reqCount", "retCount", "avgLatencyMs", "maxLatencyMs", "pagesVisited"),
    *("hasNextLast", "rateAdjusted", "remarks"),
}
PARTS = {
    "nextHint": {"token", "page", "url"},
    "http": {"status", "bytes"},
    "selfHealing": {"qpsDownshift", "pageSizeShrink"},
}


@pytest.fixture
def home(sqlite_db, sqlite_url, tmp_path):
    return Home(sqlite_db, sqlite_url, tmp_path / "home")


def paged(home):
    endpoint, answer = address_in_the_body()
    with listening(answer) as server:
        home.apply(a_source(server.url, works=endpoint))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)


def in_two_phases(home):
    with listening(Library(12)) as server:
        home.apply(a_library(server.url))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)


def by_ids(home):
    library = Library(7)

    def answer(asked):
        if asked["path"] == "/works":
            return 200, {"items": list(library.works.values()), "total": 7}
        return library(asked)

    one = an_endpoint(
        operations=["UPDATE"],
        request={"path": "/one"},
        batching={"ids_per_request": 3},
        planning={"refresh_days": 1, "ids_per_slice": 5},
    )
    one["request"]["query"] = {"id": "${ids|join(',')}"}
    one["paging"] = {"type": "NONE", "page_size": 100}
    with listening(answer) as server:
        home.apply(a_source(server.url, works=an_endpoint(paging={"page_size": 100}), one=one))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)
        home.execute("UPDATE ing_record SET last_checked_at = '2025-10-01 00:00:00.000000'")
        home.execute("UPDATE ing_record SET endpoint_name = 'one'")
        home.plan(a_trigger("one", operation=Operation.UPDATE))
        assert work_on(home) == ["SUCCEEDED"] * 2, last_error(home)


@pytest.mark.parametrize("walk", [paged, in_two_phases, by_ids])
def test_every_batch_and_every_run_has_all_its_numbers(home, walk):
    walk(home)

    found = batches(home)
    assert len(found) > 3
    for stats in found:
        assert OF_A_BATCH - stats.keys() == set()
        assert {name: parts - stats[name].keys() for name, parts in PARTS.items()} == {
            name: set() for name in PARTS
        }
        assert (stats["nextHint"]["page"] is not None) == stats["hasNext"]
    for (stats,) in home.rows("SELECT stats FROM ing_task_run"):
        assert OF_A_RUN - read_json(stats).keys() == set()
