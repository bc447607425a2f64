"""Each habit can be switched on alone, and then shows in the answers of its face."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from urllib.error import HTTPError

import httpx
import pytest
from typer.testing import CliRunner

from patra_ingest.cli.app import app
from patra_ingest.errors import PersonMustAct
from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.habits.table import HABITS, list_habits, read_habits
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.world import World

WORLD = World(records=600, start=datetime(2025, 10, 30, tzinfo=UTC), days=6, seed=7)
ALL = ("2025-10-30", "2025-11-04")
SECONDS = ("2025-10-30T00:00:00Z", "2025-11-04T23:59:59Z")


@pytest.fixture(scope="module")
def sandbox():
    with start_sandbox(WORLD) as running:
        yield running


@pytest.fixture
def client(sandbox):
    sandbox.behave()
    with direct(sandbox.url) as opened:
        yield opened


def direct(url):
    return httpx.Client(base_url=url, trust_env=False, verify=False)


def get(client, path, **params):
    return client.get(path, params={key.replace("__", "."): v for key, v in params.items()})


def epmc(client, cursor="*", size=600):
    query = "UPDATE_DATE:[{} TO {}]".format(*ALL)
    return get(client, "/epmc/search", query=query, pageSize=size, cursorMark=cursor)


def last_epmc(client):
    first = epmc(client).json()
    return epmc(client, first["nextCursorMark"]) if "nextCursorMark" in first else first


def works(client, cursor="*"):
    return get(client, "/works", rows=40, cursor=cursor)


def studies(client, size):
    area = "AREA[LastUpdatePostDate]RANGE[{},{}]".format(*ALL)
    first = client.get("/ctgov/studies", params={"filter.advanced": area, "pageSize": size})
    token = first.json().get("nextPageToken")
    more = {"filter.advanced": area, "pageSize": size, "pageToken": token}
    return client.get("/ctgov/studies", params=more) if token else first


def preprints(client):
    return client.get("/biorxiv/details/biorxiv/{}/{}/0".format(*ALL))


def esearch(client, days=("2025/10/30", "2025/11/04")):
    term = '("{}"[crdt] : "{}"[crdt])'.format(*days)
    return get(client, "/pubmed/esearch.fcgi", term=term, retmax=600)


def efetch(client):
    ids = ",".join(str(1000 + 3 * index) for index in range(50))
    return client.post("/pubmed/efetch.fcgi", data={"id": ids})


def dois(client, **page):
    own = {f"page[{key}]": value for key, value in page.items()}
    query = "updated:[{} TO {}]".format(*SECONDS)
    return client.get("/datacite/dois", params={"query": query, **own})


def third_doi_link(client):
    found = dois(client, size=50, cursor="1")
    for _ in range(3):
        found = client.get(found.json()["links"]["next"])
    return found


def articles(client):
    span = "last_updated:[{} TO {}]".format(*SECONDS)
    return get(client, f"/doaj/search/articles/{span}", page=5, pageSize=50)


def oai(client):
    until = SECONDS[1]
    return client.get("/oai", params={"verb": "ListRecords", "from": SECONDS[0], "until": until})


def events(client, days="[20251030 TO 20251104]", **more):
    search = f"receiptdate:{days}"
    return get(client, "/openfda/drug/event.json", search=search, limit=50, **more)


def feed(client):
    return get(
        client, "/arxiv/api/query", search_query="lastUpdatedDate:[202510300000 TO 202511042359]"
    )


def batch(client, path="/s2/batch"):
    span = {"from": SECONDS[0], "until": SECONDS[1]}
    found = client.get("/s2/search", params={**span, "limit": 50}).json()
    return client.post(path, json={"ids": [one["paperId"] for one in found["data"]]})


def hal(client, end="2025-11-02"):
    fq = f"modifiedDate_tdate:[2025-10-30T00:00:00Z TO {end}T00:00:00Z}}"
    found = get(client, "/hal/search", fq=fq, rows=40)
    for _ in range(2):
        found = get(
            client, "/hal/search", fq=fq, rows=40, cursorMark=found.json()["nextCursorMark"]
        )
    return found


def seven(client):
    return [works(client) for _ in range(7)][-1]


# How each habit is seen by whoever asks; without it the same question is answered otherwise.
PROBES = {
    "echo-cursor": lambda c: last_epmc(c),
    "same-cursor": lambda c: works(c, works(c).json()["message"]["next-cursor"]),
    "full-last-page": lambda c: studies(c, 600),
    "empty-middle": lambda c: studies(c, 50),
    "small-pages": preprints,
    "clamped-count": esearch,
    "clamped-page": lambda c: dois(c, size=50, number=9),
    "restarting-cursor": third_doi_link,
    "lost-params": lambda c: dois(c, size=50, cursor="1"),
    "next-past-cap": articles,
    "clamped-until": oai,
    "zoned-days": lambda c: esearch(c, ("2025/11/02", "2025/11/02")),
    "eastern-days": lambda c: esearch(c, ("2025/11/02", "2025/11/02")),
    "nothing-is-404": lambda c: events(c, "[20200101 TO 20200102]"),
    "error-code": epmc,
    "bare-envelope": epmc,
    "error-entry": feed,
    "rate-text": feed,
    "text-total": epmc,
    "no-total": epmc,
    "total-off-by-two": epmc,
    "lost-ids": efetch,
    "null-ids": batch,
    "merged-ids": batch,
    "poison-id": batch,
    "skip-degrades": lambda c: events(c, skip=250),
    "burst-429": seven,
    "budget-gone": works,
    "reset-as-epoch": works,
    "restamped": hal,
    "descending": hal,
    "odd-xml": oai,
    "big-day": lambda c: esearch(c, ("2025/11/02", "2025/11/02")),
}
ELSEWHERE = {"dying-token", "one-at-a-time"}  # they need time, or company: see below


def shown(answer):
    return answer if isinstance(answer, dict) else (answer.status_code, answer.content)


@pytest.mark.parametrize("habit", PROBES)
def test_a_habit_shows_only_while_it_is_switched_on(sandbox, client, habit):
    before = shown(PROBES[habit](client))

    sandbox.behave(habit)
    sandbox.reset()
    during = shown(PROBES[habit](client))
    sandbox.behave()
    sandbox.reset()
    after = shown(PROBES[habit](client))

    assert before == after
    assert during != before


def test_every_habit_of_the_table_is_tried_and_all_22_behaviours_are_there():
    assert PROBES.keys() | ELSEWHERE == HABITS.keys()
    assert {habit.number for habit in HABITS.values()} == set(range(1, 23))


def test_a_token_dies_of_age_and_each_face_says_it_in_its_own_way():
    behaviour = Behaviour(habits=frozenset({"dying-token"}), token_life_ms=1)
    with start_sandbox(WORLD, behaviour) as box, direct(box.url) as client:
        cursor = works(client).json()["message"]["next-cursor"]
        token = oai(client).text.partition("completeListSize")[2].split(">")[1].split("<")[0]
        later = {"verb": "ListRecords", "resumptionToken": token}

        assert works(client, cursor).status_code == 404
        assert "badResumptionToken" in client.get("/oai", params=later).text
        assert client.get("/zenodo/oai2d", params=later).status_code == 422


def test_a_second_request_in_flight_is_rejected():
    behaviour = Behaviour(latency_ms=500, habits=frozenset({"one-at-a-time"}))
    with start_sandbox(WORLD, behaviour) as box, ThreadPoolExecutor(2) as both:
        urls = [f"{box.url}/works"] * 2
        found = both.map(lambda url: httpx.get(url, trust_env=False, verify=False), urls)
        said = sorted(one.status_code for one in found)

    assert said == [200, 429]


def test_an_unknown_habit_is_refused_with_the_one_that_was_meant(sandbox):
    with pytest.raises(ValueError, match="did you mean echo-cursor"):
        read_habits(["echo-cursr"])
    with pytest.raises(ValueError, match="'nonsense'"):
        Behaviour(habits=frozenset({"nonsense"}))
    with pytest.raises(HTTPError):
        sandbox.behave("nonsense")


def test_the_list_names_every_habit_once_with_its_number():
    lines = list_habits().splitlines()

    assert [line.split()[1] for line in lines] == list(HABITS)
    assert all(line.endswith("]") for line in lines)


def test_the_command_lists_the_habits_and_refuses_unknown_ones():
    listed = CliRunner().invoke(app, ["sandbox", "--list-habits"])
    refused = CliRunner().invoke(app, ["sandbox", "--port", "0", "--behave", "echo"])

    assert listed.output.split() == list_habits().split()
    assert isinstance(refused.exception, PersonMustAct)
    assert "no source has the habit 'echo'" in str(refused.exception)


def test_the_truth_about_a_face_is_told_for_any_span(sandbox):
    sandbox.behave("lost-ids")
    day = sandbox.truth(WORLD.start, WORLD.start + timedelta(days=1), "pubmed")
    oai_day = sandbox.truth(WORLD.start, WORLD.start + timedelta(days=1), "oai")

    assert day.count == len(day.ids) == 100 - len(day.gone)
    assert set(day.versions) == set(day.titles) == set(day.ids)
    assert day.gone == [str(1000 + 3 * index) for index in range(11, 100, 17)]
    assert (oai_day.count, len(oai_day.deleted)) == (92, 8)
    assert oai_day.updated_at.keys() == set(oai_day.ids)
    with pytest.raises(HTTPError):
        sandbox.truth(face="nobody")
