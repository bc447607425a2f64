"""Every recorded answer of OpenAlex, read by the built-in pack: works, or the declared error."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import orjson
import pytest

from patra_ingest.errors import CompileError, EndpointHalted, RequestRejected, Throttled
from patra_ingest.executor.mapping import map_items
from patra_ingest.executor.paging import Ended, Page
from patra_ingest.executor.two_phase import reconcile
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.rate.told import read_told
from patra_ingest.registry.pack import parse_pack, read_pack
from patra_ingest.registry.pack_file import read_pack_text
from patra_ingest_tests.builders import NOON
from patra_ingest_tests.sources.builtin import fields_of, misfits
from patra_ingest_tests.sources.recorded import (
    compiled,
    needs_recordings,
    read,
    recorded,
    recordings,
    walk,
)

pytestmark = needs_recordings

TEXT = (FOLDER / "openalex.yaml").read_text()
LISTED = {
    "17-works-title-search.json": ["W4396723768", "W4365597205"],
    "19-works-sample5.json": [
        *("W2600965442", "W2042435470", "W2497229624", "W7120675484", "W2117049431"),
    ],
}
_ONE_WORK = (EndpointHalted, "nothing at $.results")
REFUSED = {
    "14-404-html.html": (RequestRejected, "answered 404"),
    "20-work-retracted-fields.json": _ONE_WORK,
    "21-work-dataset.json": _ONE_WORK,
    "23-work-missing-author-name.json": _ONE_WORK,
    "24-work-sici-doi.json": _ONE_WORK,
}


@pytest.fixture(scope="module")
def pack():
    return read_pack(FOLDER / "openalex.yaml")


@pytest.fixture(scope="module")
def changes(sqlite_template, pack):
    return compiled(sqlite_template, pack, "changes")


@pytest.fixture(scope="module")
def works(sqlite_template, pack):
    return compiled(sqlite_template, pack, "works", Operation.BACKFILL)


@pytest.fixture(scope="module")
def details(sqlite_template, pack):
    return compiled(sqlite_template, pack, "work", Operation.UPDATE)


def answered(body, status=200, name="19-works-sample5.json"):
    """Return a recorded answer with another body and status."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return replace(recorded("openalex", name), body=text, status=status)


def test_every_recording_has_its_row():
    assert {*LISTED, *REFUSED} == recordings("openalex")


@pytest.mark.parametrize("name", LISTED)
def test_a_page_of_works_gives_their_ids(changes, works, details, name):
    for call, paging in ((changes, changes.paging), (works, works.paging), (details, None)):
        page = read(recorded("openalex", name), call, paging)
        assert (page.ids, page.mapped.bad) == (LISTED[name], [])
        assert misfits(page.mapped.records) == []


@pytest.mark.parametrize("name", REFUSED)
def test_another_answer_is_the_declared_error(changes, name):
    error, words = REFUSED[name]

    with pytest.raises(error, match=re.escape(words)) as raised:
        read(recorded("openalex", name), changes, changes.paging)

    assert type(raised.value) is error


def test_works_by_page_number_have_no_cursor_and_no_walk_goes_on_from_them(works):
    walked = walk("openalex", ["19-works-sample5.json"], works)

    assert (walked.after, walked.pages[0].decoded.total) == (Ended("NO_TOKEN"), 5)


def test_a_walk_goes_on_while_there_is_a_cursor_also_behind_a_full_page(works):
    """Nobody who may share it has recorded a walk; this is a page with the documented cursor."""
    tree = json.loads(recorded("openalex", "19-works-sample5.json").body)
    tree["meta"]["next_cursor"] = "IlsxNjA5=="

    page = read(answered(tree), works, works.paging)

    assert page.decoded.next == "IlsxNjA5=="
    end = read(answered({"meta": {"count": 5, "next_cursor": None}, "results": []}), works)
    assert (end.decoded.items, end.decoded.next) == ([], None)


SAID = {  # the file, the id, the time of update, and some fields
    "20-work-retracted-fields.json": (
        *("W1982728624", datetime(2026, 7, 22, 7, 51, 19, 307946, tzinfo=UTC)),
        {
            "doi": "10.1371/journal.pone.0000030",
            "pmid": "17183658",
            "pmcid": None,
            "authors": [
                *("Markus Ralser", "Gino Heeren", "Michael Breitenbach", "Hans Lehrach"),
                "Sylvia Krobitsch",
            ],
            "journal": "PLoS ONE",
            "issn": ["1932-6203"],
            "published": "2006-12-20",
            "created": "2025-10-10",
            "type": "article",
            "language": "en",
            "has_abstract": True,
            "license": "cc-by",
            "retracted": False,
        },
    ),
    "21-work-dataset.json": (
        *("W6945048743", datetime(2025, 11, 6, 3, 46, 38, 306776, tzinfo=UTC)),
        {"type": "dataset", "journal": None, "has_abstract": False, "abstract": None},
    ),
    "23-work-missing-author-name.json": (
        *("W4312032943", datetime(2026, 3, 25, 13, 4, 0, 132906, tzinfo=UTC)),
        {"authors": ["Peter Wilson"], "type": "dissertation"},
    ),
    "24-work-sici-doi.json": (
        *("W2030857676", datetime(2026, 6, 23, 6, 36, 1, 41984, tzinfo=UTC)),
        {
            "doi": "10.1890/0012-9658(2006)87[2832:tiopma]2.0.co;2",
            "issn": ["0012-9658", "1939-9170"],
            "published": "2006-11-01",
        },
    ),
}


def record_of(works, name, **changed):
    """Map the one work of an answer, as if it stood in a list."""
    work = {**orjson.loads(recorded("openalex", name).body), **changed}
    (record,) = map_items([work], works, "UTC", None).records
    return record


@pytest.mark.parametrize("name", SAID)
def test_a_record_says_what_the_file_says(works, name):
    provider_id, updated, said = SAID[name]
    record = record_of(works, name)
    fields = fields_of(record)

    assert (record.provider_id, record.source_updated_at) == (provider_id, updated)
    assert {key: fields[key] for key in said} == said
    assert misfits([record]) == []


def test_an_abstract_is_read_in_the_order_of_its_words(works):
    abstract = fields_of(record_of(works, "24-work-sici-doi.json"))["abstract"]

    assert abstract.startswith("Parasites are known to directly affect their hosts at both the")


@pytest.mark.parametrize(
    ("pmcid", "written"),
    [
        ("https://www.ncbi.nlm.nih.gov/pmc/articles/3323563", "PMC3323563"),
        ("https://www.ncbi.nlm.nih.gov/pmc/articles/PMC3323563/", "PMC3323563"),
    ],
)
def test_a_retracted_work_in_pmc_is_one(works, pmcid, written):
    """No recording has either; this is one of them, changed in these two words."""
    record = record_of(*(works, "21-work-dataset.json"), is_retracted=True, ids={"pmcid": pmcid})

    assert fields_of(record)["retracted"] is True
    assert fields_of(record)["pmcid"] == written
    assert misfits([record]) == []


def test_a_work_that_was_merged_is_known_by_its_new_id(details):
    page = read(recorded("openalex", "17-works-title-search.json"), details)

    asked = ["W4396723768", "W7"]
    met = reconcile(asked, page.decoded, details, details.reconcile)

    assert (met.missing, met.merged) == ((), {"W7": "W4365597205"})


@pytest.mark.parametrize(
    ("status", "said", "error"),
    [
        (
            403,
            {"error": "Forbidden", "message": "This filter needs a Premium plan"},
            EndpointHalted,
        ),
        (400, {"error": "Invalid", "message": "Upgrade to use from_updated_date"}, EndpointHalted),
        (403, {"error": "Invalid query parameters error.", "message": "no field"}, RequestRejected),
        (403, {"error": "Forbidden", "message": "slow down"}, Throttled),
        (400, {"error": "Invalid filter", "message": "Unknown filter field"}, RequestRejected),
        (429, {"error": "Rate limit exceeded"}, Throttled),
    ],
)
def test_what_the_source_says_is_told_apart(changes, status, said, error):
    """Nobody has recorded these; the shape is the documented one."""
    with pytest.raises(error) as raised:
        read(answered(said, status), changes, changes.paging)

    assert type(raised.value) is error


def test_the_budget_is_read_from_the_headers_in_credits(works):
    told = read_told(
        works.rate.headers, recorded("openalex", "19-works-sample5.json").headers, NOON
    )

    assert (told.remaining, told.cost) == (972, 1)
    assert (told.resets_at - NOON).total_seconds() == 64136


@pytest.mark.parametrize(
    ("available", "key", "daily"),
    [
        ((), "openalex", 1000),
        (("openalex-free",), "openalex:free", 10_000),
        (("openalex-free", "openalex-paid"), "openalex:paid", None),
    ],
)
def test_a_key_raises_the_budget_of_a_day(sqlite_template, pack, available, key, daily):
    spec = compiled(
        *(sqlite_template, pack, "works", Operation.BACKFILL), available=frozenset(available)
    )

    assert spec.rate.key == key
    assert [quota.limit for quota in spec.rate.quotas] == ([daily] if daily else [])


def test_what_is_new_is_only_asked_for_with_the_paid_key(changes, works):
    assert changes.auth.required
    assert [one.name for one in changes.auth.credentials] == ["openalex-paid"]
    assert not works.auth.required


def test_a_harvest_by_publication_date_is_refused(sqlite_template):
    said = TEXT.replace("    operations: [BACKFILL]\n", "    operations: [HARVEST]\n", 1)
    free = parse_pack(read_pack_text(said, "a test"))

    with pytest.raises(CompileError, match="late and changed records would never be seen"):
        compiled(sqlite_template, free, "works")


def test_a_page_is_never_longer_than_a_hundred(sqlite_template, pack):
    with pytest.raises(CompileError, match="stay within 1–100"):
        compiled(sqlite_template, pack, "changes", values={"paging": {"page_size": 200}})


def test_a_first_page_begins_with_a_star(changes):
    assert walk("openalex", [], changes).after == Page(token="*")
