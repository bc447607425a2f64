"""One malformed value in a page of JSON stops neither the page nor the slice, and is not lost."""

import orjson
import pytest

from patra_ingest.clock import SystemClock
from patra_ingest.executor.replay import replay
from patra_ingest.executor.replaying import Outcome
from patra_ingest.rawstore.store import RawStore
from patra_ingest_tests.builders import an_endpoint
from patra_ingest_tests.pipeline.harness import FATES, Home
from patra_ingest_tests.pipeline.walks import (
    a_source,
    batches,
    harvest,
    ids,
    last_error,
    listening,
    proofs,
    records,
    works,
)

# What stands in the body instead of the titles of these works.
ODD = {3: rb'"\ud800"', 7: b"NaN", 12: b'"Zo\xe9"', 17: b'"a\x01b"'}
QUARANTINED = "SELECT provider_id, item_no, path, reason, value_text, fragment FROM ing_quarantine"


@pytest.fixture
def home(sqlite_db, sqlite_url, tmp_path):
    return Home(sqlite_db, sqlite_url, tmp_path / "home")


def a_body(asked, odd, total=b"25"):
    start = int(asked["offset"])
    items = []
    for number, work in enumerate(works(25)[start : start + 10], start):
        written = orjson.dumps(work)
        title = orjson.dumps(work["title"])
        items.append(written.replace(title, odd[number]) if number in odd else written)
    return 200, b'{"items": [' + b", ".join(items) + b'], "total": ' + total + b"}"


def test_items_with_malformed_values_are_quarantined_and_the_others_land(home):
    with listening(lambda asked: a_body(asked, ODD)) as source:
        home.apply(a_source(source.url, works=an_endpoint()))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)

    assert len(source.asked) == 3, "what can be read is not asked for again"
    bad = [f"w{number:03d}" for number in ODD]
    assert records(home) == [one for one in ids(25) if one not in bad]
    rows = home.rows(f"{QUARANTINED} ORDER BY provider_id")
    assert [(row.provider_id, row.item_no, row.path, row.value_text) for row in rows] == [
        ("w003", 4, "$.title", "�"),
        ("w007", 8, "$.title", "NaN"),
        ("w012", 3, "$.title", "Zo�"),
        ("w017", 8, "$.title", "a�b"),
    ]
    assert [row.reason for row in rows] == [
        "holds a character that is not Unicode",
        "NaN is not JSON",
        "holds a character that is not Unicode",
        "holds the raw control character U+0001",
    ]
    assert '"title":"NaN"' in rows[1].fragment
    for stats in batches(home):
        assert stats["itemsCount"] == sum(stats[fate] for fate in FATES)
    (proof,) = proofs(home)
    assert (proof["landed"], proof["quarantined"], proof["verdict"]) == (25, 4, "COMPLETE")


def test_a_replay_finds_the_same_items_malformed(home):
    with listening(lambda asked: a_body(asked, ODD)) as source:
        home.apply(a_source(source.url, works=an_endpoint()))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)

    told = replay(home.db, RawStore(home.folder / "raw"), SystemClock(), 1)

    assert told.outcome is Outcome.EQUAL, told.as_markdown()


def test_a_page_of_malformed_items_holds_the_endpoint(home):
    all_odd = dict.fromkeys(range(25), b"NaN")
    with listening(lambda asked: a_body(asked, all_odd)) as source:
        home.apply(a_source(source.url, works=an_endpoint()))

        assert harvest(home) == ["FAILED"]

    assert last_error(home)[1] == "L4"
    assert "every one of 10 items fails at $.title (NaN is not JSON)" in last_error(home)[2]


def test_a_malformed_total_is_asked_for_again_as_any_broken_answer(home):
    totals = iter([b"NaN"])
    with listening(lambda asked: a_body(asked, ODD, next(totals, b"25"))) as source:
        home.apply(a_source(source.url, works=an_endpoint()))

        assert harvest(home) == ["SUCCEEDED"], last_error(home)

    assert (len(source.asked), proofs(home)[0]["retries"]) == (4, 1)
