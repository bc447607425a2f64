"""`patra test-read`: what a look shows, that it writes nothing, and that it goes no faster."""

import json
import sqlite3
from contextlib import closing

from patra_ingest_tests.builders import an_endpoint
from patra_ingest_tests.fakes import upstream

KEY = "CANARY-8f3a91-c0ffee-0123"
DAY = ("--from", "2025-09-01", "--to", "2025-09-02")
WORKS = [
    {"id": f"w{n:02}", "updated": f"2025-09-01T{n:02}:00:00Z", "title": f"On w{n:02}"}
    for n in range(24)
]
OWN = {"type": "API_KEY", "secret": "env:EXAMPLE_KEY", "field": "k", "location": "QUERY"}
# What a look may write in the ledger: how much of a shared budget it has spent.
BOOKS = {"ing_rate_bucket", "ing_quota_window", "ing_quota_reservation"}


def works(asked):
    """Answer a page of the works, and repeat the key it was asked with."""
    start = int(asked.get("offset", 0))
    page = WORKS[start : start + int(asked.get("rows", 10))]
    return 200, {"total": len(WORKS), "you": asked.get("k"), "api_key": KEY, "items": page}


def in_two_phases(asked):
    """Answer a search with ids, and a question for ids with their works but w03."""
    if asked["path"] == "/fetch":
        wanted = set(asked["ids"].split(","))
        return 200, {"items": [one for one in WORKS if one["id"] in wanted - {"w03"}]}
    start = int(asked["offset"])
    return 200, {"total": len(WORKS), "items": [one["id"] for one in WORKS[start : start + 10]]}


SEARCH = {
    key: part for key, part in an_endpoint().items() if key not in ("fields", "changed", "response")
}
TWO_PHASES = {
    "search": {
        **SEARCH,
        "response": {"items": "$.items", "id": "$"},
        "detail": {"endpoint": "fetch", "batch": 4, "missing": "GONE"},
    },
    "fetch": {
        "usage": "DETAIL",
        "operations": ["UPDATE"],
        "request": {"path": "/fetch", "query": {"ids": "${ids|join(',')}"}},
        "paging": {"type": "NONE", "page_size": 4},
        "batching": {"ids_per_request": 4},
        "response": {"items": "$.items", "id": "$.id", "updated_at": "$.updated"},
        "changed": "NEWER",
        "fields": {"title": "$.title"},
    },
}


def tables(home):
    """Return every row of the ledger but what the rate budget keeps."""
    with closing(sqlite3.connect(home / "ledger.db")) as db:
        names = db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        ).fetchall()
        return {name: db.execute(f"SELECT * FROM {name}").fetchall() for (name,) in names}


def without_books(rows):
    return {name: found for name, found in rows.items() if name not in BOOKS}


def test_a_look_shows_requests_answers_records_and_one_verdict(patra, write):
    with upstream(works) as source:
        done = patra("test-read", write(source.url), *DAY)

    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0] == "example / works, HARVEST"
    assert "  checks       ✓ compiles, 1 unintended warning" in lines
    assert "Slice 1: [2025-09-01T00:00:00Z, 2025-09-02T00:00:00Z)" in lines
    assert sum(line.startswith(f"     GET {source.url}/works?from=") for line in lines) == 2
    answers = [line for line in lines if line.startswith("     → 200 ")]
    assert len(answers) == 2
    assert all("bytes, sha256:" in line for line in answers)
    assert "     10 items: 10 records; 24 promised in all" in lines
    assert any("w00" in line and "2025-09-01 00:00:00Z" in line for line in lines)
    assert lines[-1] == "It works: 2 pages in 2 requests brought 20 records; the slice goes on."
    assert len(source.asked) == 2


def test_a_slice_that_is_read_to_its_end_has_its_certificate(patra, write):
    with upstream(works) as source:
        done = patra("test-read", write(source.url), *DAY, "--pages", 9, "--json")

    look = json.loads(done.stdout)
    [only] = look["slices"]
    assert [page["stopRule"] for page in only["pages"]] == [None, None, "SHORT_PAGE"]
    assert only["certificate"]["verdict"] == "COMPLETE"
    assert look["verdict"].endswith("the slice is COMPLETE (24 promised, 24 landed).")
    assert len(only["pages"][0]["sample"]) == 10
    assert only["pages"][0]["sample"][0]["fields"] == {"title": "On w00"}


def test_a_pack_is_tried_without_a_ledger_and_none_is_made(patra, write, tmp_path):
    with upstream(works) as source:
        done = patra("test-read", write(source.url), *DAY)

    assert done.returncode == 0
    assert "of this read alone" in done.stdout
    assert not (tmp_path / "home").exists()


def test_the_ledger_stays_as_it_is_and_its_rate_budget_is_spent(patra, write, home):
    quota = {"limit": 100, "per": "1d"}
    rate = {"rate": {"key": "example", "per_second": 1000, "burst": 100, "quotas": [quota]}}
    with upstream(works) as source:
        file = write(source.url, rate)
        patra("registry", "apply", file)
        before = tables(home)
        done = patra("test-read", "example", *DAY)
        after = tables(home)

    assert (done.returncode, done.stderr) == (0, "")
    assert f"shared with sqlite:///{home / 'ledger.db'}" in done.stdout
    assert without_books(after) == without_books(before)
    assert after["ing_quota_window"] != before["ing_quota_window"]
    assert "example" in str(after["ing_rate_bucket"])
    assert not (home / "raw").exists()


def test_a_quota_that_the_workers_have_used_up_stops_a_look_as_well(patra, write, home):
    quota = {"limit": 2, "per": "1d"}
    rate = {"rate": {"key": "example", "per_second": 1000, "burst": 100, "quotas": [quota]}}
    with upstream(works) as source:
        file = write(source.url, rate)
        assert patra("test-read", file, *DAY).returncode == 0
        done = patra("test-read", file, *DAY)

    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("The source cannot be asked now: no request may")
    assert len(source.asked) == 2


def test_details_of_found_ids_are_read_in_part_and_the_next_page_all_the_same(patra, write):
    with upstream(in_two_phases) as source:
        done = patra("test-read", write(source.url, **TWO_PHASES), *DAY, "--json")

    look = json.loads(done.stdout)
    pages = look["slices"][0]["pages"]
    assert [page["phase"] for page in pages] == ["SEARCH", "DETAIL", "SEARCH", "DETAIL"]
    assert [page["leftOut"] for page in pages] == [0, 6, 0, 6]
    assert (pages[0]["found"], pages[1]["asked"], pages[1]["gone"]) == (10, 4, 1)
    assert [one["id"] for one in pages[1]["sample"]] == ["w00", "w01", "w02"]
    assert look["verdict"].endswith("12 found ids left unasked, this is only a look.")
    assert [asked["path"] for asked in source.asked] == ["/works", "/fetch"] * 2


def test_ids_are_asked_for_as_an_update_would(patra, write):
    with upstream(in_two_phases) as source:
        done = patra("test-read", write(source.url, **TWO_PHASES), "--ids", "w01, w03,w05")

    assert done.returncode == 0
    assert "example / fetch, UPDATE" in done.stdout
    assert "Slice 1: 3 ids" in done.stdout
    assert "3 ids asked for, 2 items: 2 records, 1 gone at the source" in done.stdout
    assert [asked["ids"] for asked in source.asked] == ["w01,w03,w05", "w03"]


def test_a_slice_that_is_too_big_is_read_in_the_parts_it_would_be_cut_into(patra, write):
    def capped(asked):
        hours = [one for one in WORKS if asked["from"] <= one["updated"] <= asked["to"]]
        start = int(asked["offset"])
        return 200, {"total": len(hours), "items": hours[start : start + 10]}

    with upstream(capped) as source:
        done = patra("test-read", write(source.url, works=an_endpoint(cap={"max": 20})), *DAY)

    assert done.returncode == 0
    assert "  too big: the slice holds 24 records and the source gives 20 for one" in done.stdout
    assert "it would be cut into" in done.stdout
    assert "Slice 2: [2025-09-01T00:00:00Z, 2025-09-01T" in done.stdout
    assert "It works: 2 pages in 2 requests brought" in done.stdout


def test_quarantined_items_are_shown_with_path_value_and_reason(patra, write):
    def some_bad(asked):
        status, page = works(asked)
        bad = [{**one, "updated": "soon"} if one["id"] == "w02" else one for one in page["items"]]
        return status, {**page, "items": bad}

    with upstream(some_bad) as source:
        done = patra("test-read", write(source.url), *DAY)

    assert done.returncode == 0
    [line] = [one for one in done.stdout.splitlines() if "quarantined: item" in one]
    assert line.startswith("     quarantined: item 3 (w02) at $.updated: ")
    assert line.endswith("; found soon")
    assert "19 records, and 1 item would be quarantined" in done.stdout.splitlines()[-1]


def test_an_author_is_told_what_is_odd_although_nothing_failed(patra, write):
    def odd(asked):
        status, page = works(asked)
        late = [{**one, "updated": "2025-10-01T00:00:00Z"} for one in page["items"]]
        return status, {**page, "items": late}, {"X-RateLimit-Limit": "50"}

    fields = {"title": "$.title", "doi": "$.DOI"}
    with upstream(odd) as source:
        done = patra("test-read", write(source.url, works=an_endpoint(fields=fields)), *DAY)

    odd_lines = [line for line in done.stdout.splitlines() if line.startswith("  - ")]
    assert done.returncode == 0
    assert len(odd_lines) == 3
    assert "the field doi is empty in all 20 records" in odd_lines[0]
    assert "the source tells its limits in x-ratelimit-limit" in odd_lines[1]
    assert "20 of 20 records say an update time outside the window" in odd_lines[2]


def test_a_key_that_the_source_repeats_is_nowhere_in_the_output(patra, write, home):
    with upstream(works) as source:
        file = write(source.url, {"auth": {"credentials": {"own": OWN}}})
        shown = patra("test-read", file, *DAY, EXAMPLE_KEY=KEY)
        as_json = patra("test-read", file, *DAY, "--json", EXAMPLE_KEY=KEY)

    assert {asked["k"] for asked in source.asked} == {KEY}
    for done in (shown, as_json):
        assert done.returncode == 0
        assert KEY not in done.stdout + done.stderr
    assert not any(KEY.encode() in file.read_bytes() for file in home.rglob("*") if file.is_file())


def test_a_held_endpoint_may_be_looked_at_and_stays_held(patra, write, home):
    with upstream(works) as source:
        patra("registry", "apply", write(source.url))
        patra("hold", "example/works", "--reason", "it lied")
        before = tables(home)["ing_hold"]
        done = patra("test-read", "example", *DAY)

    assert done.returncode == 0
    assert "example/works is held by" in done.stdout
    assert tables(home)["ing_hold"] == before


def test_another_address_is_asked_instead(patra, write):
    with upstream(works) as source:
        file = write("https://api.library.example/v1", {"http": {}})
        done = patra("test-read", file, *DAY, "--base-url", source.url)

    assert done.returncode == 0
    assert len(source.asked) == 2
