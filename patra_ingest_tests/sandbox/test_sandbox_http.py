"""What callers of `/works` get, over real HTTP from a real process."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.world import World

START = datetime(2025, 3, 1, tzinfo=UTC)
WORLD = World(records=1200, start=START, days=4, seed=3)
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def sandbox():
    with start_sandbox(WORLD) as running:
        yield running


@pytest.fixture(scope="module")
def client(sandbox):
    with httpx.Client(base_url=sandbox.url, trust_env=False, verify=False) as opened:
        yield opened


def get(client, **params):
    response = client.get("/works", params=params)
    assert response.status_code == 200, response.text
    return response.json()["message"]


def dois(message):
    return [item["DOI"] for item in message["items"]]


def index_dates(first, last):
    written = "%Y-%m-%dT%H:%M:%S"
    bounds = f"from-index-date:{first:{written}}", f"until-index-date:{last:{written}}"
    return {"filter": ",".join(bounds)}


def walk(client, rows, **params):
    """Follow the cursor until a short page, as Crossref asks its clients to do."""
    found, cursor = [], "*"
    while True:
        message = get(client, rows=rows, cursor=cursor, **params)
        found += dois(message)
        if len(message["items"]) < rows:
            return found
        cursor = message["next-cursor"]


def test_walking_by_cursor_gives_exactly_the_truth(client, sandbox):
    truth = sandbox.truth()

    found = walk(client, rows=97)

    assert found == truth.ids
    assert truth.count == len(set(found)) == WORLD.records


def test_walking_by_offset_gives_exactly_the_truth(client, sandbox):
    found = []
    for offset in range(0, WORLD.records, 100):
        message = get(client, rows=100, offset=offset)
        assert message["query"]["start-index"] == offset
        assert "next-cursor" not in message
        found += dois(message)

    assert found == sandbox.truth().ids


@settings(max_examples=15, deadline=None)
@given(st.integers(-3600, 5 * 86_400), st.integers(1, 2 * 86_400), st.integers(1, 400))
def test_any_window_is_walked_to_exactly_its_truth(client, sandbox, first, length, rows):
    start = START + timedelta(seconds=first)
    end = start + timedelta(seconds=length)

    # Both bounds of the filter are inclusive; a half-open window ends a second earlier.
    found = walk(client, rows, **index_dates(start, end - timedelta(seconds=1)))

    assert found == sandbox.truth(start, end).ids


def test_the_days_add_up_to_the_whole(client, sandbox):
    days = [START + DAY * number for number in range(4)]

    found = [
        doi
        for day in days
        for doi in walk(
            client, 100, filter=f"from-index-date:{day:%Y-%m-%d},until-index-date:{day:%Y-%m-%d}"
        )
    ]

    assert found == sandbox.truth().ids
    assert sum(sandbox.truth(day, day + DAY).count for day in days) == WORLD.records


def test_the_truth_tells_when_each_work_was_indexed(client, sandbox):
    items = get(client, rows=1000, filter="until-index-date:2025-03-02")["items"]

    told = sandbox.truth(end=START + 2 * DAY).updated_at

    assert told == {item["DOI"]: item["indexed"]["date-time"] for item in items}


def test_the_truth_is_half_open_to_the_microsecond(sandbox):
    at = WORLD.indexed_at(500)
    tick = timedelta(microseconds=1)
    here = sum(WORLD.indexed_at(index) == at for index in range(WORLD.records))

    assert sandbox.truth(at, at + tick).count == here
    assert sandbox.truth(at + tick, at + timedelta(seconds=1)).count == 0
    assert sandbox.truth(at - timedelta(seconds=1), at).count == 0


def test_both_bounds_are_inclusive_to_the_second(client):
    seconds = Counter(WORLD.indexed_at(index) for index in range(WORLD.records))
    shared = next(at for at, times in seconds.items() if times > 1)

    assert get(client, **index_dates(shared, shared))["total-results"] == seconds[shared]
    after = shared + timedelta(seconds=1)
    assert get(client, **index_dates(after, after))["total-results"] == seconds[after]


@pytest.mark.parametrize(
    ("written", "length"),
    [
        pytest.param("2025-03-02", DAY, id="a day is the whole day"),
        pytest.param("2025-03-02T00", DAY / 24, id="an hour is the whole hour"),
        pytest.param("2025-03-02T00:00", DAY / 1440, id="a minute is the whole minute"),
    ],
)
def test_a_coarse_date_means_all_of_it(client, sandbox, written, length):
    message = get(client, filter=f"from-index-date:{written},until-index-date:{written}")

    start = START + DAY
    assert message["total-results"] == sandbox.truth(start, start + length).count


def test_there_is_a_next_cursor_on_the_last_page_and_after_it(client):
    last = get(client, rows=1000, cursor=get(client, rows=1000, cursor="*")["next-cursor"])
    after = get(client, rows=1000, cursor=last["next-cursor"])

    assert len(last["items"]) == 200
    assert (after["items"], after["total-results"]) == ([], WORLD.records)
    assert after["next-cursor"] == last["next-cursor"]


def test_without_rows_the_cursor_is_repeated_and_the_total_told(client):
    message = get(client, rows=0, cursor="*")

    assert (message["items"], message["next-cursor"]) == ([], "*")
    assert (message["total-results"], message["items-per-page"]) == (WORLD.records, 0)


def test_a_page_has_the_shape_of_crossref(client):
    response = client.get("/works", params={"mailto": "someone@example.org"})

    assert {key: response.headers[key] for key in ("content-type", "x-api-pool")} == {
        "content-type": "application/json",
        "x-api-pool": "polite",
    }
    assert "date" in response.headers
    page = response.json()
    message = page.pop("message")
    assert page == {"status": "ok", "message-type": "work-list", "message-version": "1.0.0"}
    assert len(message.pop("items")) == message["items-per-page"]
    assert message == {
        "facets": {},
        "total-results": WORLD.records,
        "items-per-page": 20,
        "query": {"start-index": 0, "search-terms": None},
    }


def test_the_order_can_be_reversed(client, sandbox):
    assert walk(client, 500, sort="indexed", order="desc") == sandbox.truth().ids[::-1]


def test_only_selected_fields_are_sent(client):
    assert set(get(client, select="DOI,indexed")["items"][0]) == {"DOI", "indexed"}


def test_a_cursor_needs_percent_encoding(client):
    cursor = get(client, cursor="*")["next-cursor"]

    assert all(sign in cursor for sign in "+/=")
    assert client.get(f"/works?cursor={cursor}").status_code == 404


def test_a_cursor_belongs_to_its_filter(client):
    cursor = get(client, cursor="*", filter="from-index-date:2025-03-02")["next-cursor"]

    assert client.get("/works", params={"cursor": cursor}).status_code == 404


@pytest.mark.parametrize(
    ("params", "status", "kind"),
    [
        ({"rows": "things"}, 400, "integer-not-valid"),
        ({"rows": "1001"}, 400, "integer-not-valid"),
        ({"rows": "-1"}, 400, "integer-not-valid"),
        ({"offset": "9" * 5000}, 400, "integer-not-valid"),
        ({"offset": "9901", "rows": "100"}, 400, "integer-not-valid"),
        ({"offset": "0", "cursor": "*"}, 400, "parameter-not-allowed"),
        ({"page": "2"}, 400, "parameter-not-allowed"),
        ({"filter": "from-idx-date:2025-01-01"}, 400, "filter-not-available"),
        ({"filter": "from-index-date:yesterday"}, 400, "date-not-valid"),
        ({"filter": "from-index-date:2025-02-30"}, 400, "date-not-valid"),
        ({"filter": "until-index-date:2025-01-01T00:00:00Z"}, 400, "date-not-valid"),
        ({"sort": "title"}, 400, "sort-not-valid"),
        ({"order": "up"}, 400, "order-not-valid"),
        ({"cursor": "thing"}, 404, "cursor-invalid"),
        ({"cursor": "DnF1+/AAAA"}, 404, "cursor-invalid"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_bad_request_is_refused_as_crossref_does(client, params, status, kind):
    response = client.get("/works", params=params)

    assert response.status_code == status
    told = response.json()
    assert told["status"] == "failed"
    assert told["message-type"] == ("resource-failure" if status == 404 else "validation-failure")
    assert [set(reason) for reason in told["message"]] == [{"type", "value", "message"}]
    assert told["message"][0]["type"] == kind


def test_the_last_reachable_offset_is_answered(client):
    assert get(client, offset=9900, rows=100)["items"] == []


def test_an_open_or_empty_span_is_answered(client):
    assert get(client, filter="until-index-date:9999-12-31")["total-results"] == WORLD.records
    assert get(client, **index_dates(START + DAY, START))["total-results"] == 0


def test_filters_of_one_name_are_joined_by_or(client, sandbox):
    twice = "from-index-date:2025-03-03,from-index-date:2025-03-02,until-index-date:2025-03-03"

    message = get(client, filter=twice)

    assert message["total-results"] == sandbox.truth(START + DAY, START + 3 * DAY).count


@pytest.mark.parametrize(
    ("method", "path"),
    [("HEAD", "/works"), ("POST", "/works"), ("GET", "/works/10.5555/x"), ("GET", "/__nothing")],
)
def test_everything_else_is_not_found(client, method, path):
    assert client.request(method, path).status_code == 404


def test_a_bad_question_for_the_truth_is_refused(client):
    assert client.get("/__truth", params={"from": "soon"}).status_code == 400
