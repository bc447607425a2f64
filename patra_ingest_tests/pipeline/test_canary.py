"""A secret is written down nowhere: not from a pack, not from a trigger, not from an answer."""

import orjson
import pytest
from sqlalchemy import inspect

from patra_ingest.errors import CompileError, PackError
from patra_ingest.rawstore.store import RawStore
from patra_ingest_tests.builders import a_pack, a_trigger, an_endpoint, day
from patra_ingest_tests.fakes import upstream
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.pipeline.walks import a_source, listening

CANARY = "CANARY-8f3a91"
QUERY = {"from": "${window.from|iso}", "to": "${window.last|iso}", "offset": "${page.offset}"}


def answer(status):
    """Return an upstream's answer that repeats the secret: in a bad item, or in an error text."""
    item = {"id": "a", "updated": "2025-09-01T00:00:00Z", "title": "t"}
    bad = {"id": None, "api_key": CANARY}
    echo = {"error": f"the api_key={CANARY} at https://me:{CANARY}@example.org was refused"}
    return (status, {"items": [item, bad], "total": 2} if status == 200 else echo)


def tables_with_canary(home):
    with home.db.read() as tx:
        tables = [name for name in inspect(tx).get_table_names() if "yoyo" not in name]
    return [
        name
        for name in tables
        if any(CANARY in str(value) for row in home.rows(f"SELECT * FROM {name}") for value in row)
    ]


@pytest.fixture
def home(db, db_url, tmp_path):
    return Home(db, db_url, tmp_path / "home")


@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_a_secret_that_the_upstream_repeats_reaches_no_table(home, status):
    with upstream(lambda _: answer(status)) as source:
        home.apply(a_pack(source.url))
        home.plan(a_trigger(start=day(0), end=day(1)))
        home.work()

        assert source.asked

    assert tables_with_canary(home) == []


def asking_with(key, monkeypatch):
    """Return the part of a pack that sends this key."""
    monkeypatch.setenv("CANARY_KEY", key)
    credential = {"type": "API_KEY", "location": "HEADER", "field": "X-Key"}
    return {"required": True, "credentials": {"k": {**credential, "secret": "env:CANARY_KEY"}}}


def test_a_key_that_an_answer_writes_in_its_own_way_reaches_no_table(home, monkeypatch):
    key = "Zm9vYmFy/QmF6MTIzNDU2Nzg5MA"
    auth = asking_with(key, monkeypatch)
    item = {"id": "a", "updated": "2025-09-01T00:00:00Z", "title": "t", "href": f"/?key={key}"}
    body = orjson.dumps({"items": [item], "total": 1}).replace(b"/", b"\\/")
    with listening(lambda _: (200, body)) as source:
        home.apply(a_source(source.url, {"auth": auth}, works=an_endpoint()))
        home.plan(a_trigger(start=day(0), end=day(1)))
        home.work()

    assert orjson.loads(home.one("SELECT payload FROM ing_record"))["href"] == "/?key=***"


@pytest.mark.parametrize("echo", ["k3y-42", "&#x6b;3y-42"], ids=["as it is", "as an entity"])
def test_a_short_key_that_an_answer_repeats_reaches_no_table_and_no_body(home, monkeypatch, echo):
    auth = asking_with("k3y-42", monkeypatch)
    item = {"id": "a", "updated": "2025-09-01T00:00:00Z", "title": f"you are {echo}"}
    bad = {"id": None, "note": f"you are {echo}"}
    with listening(lambda _: (200, {"items": [item, bad], "total": 2})) as source:
        home.apply(a_source(source.url, {"auth": auth}, works=an_endpoint()))
        home.plan(a_trigger(start=day(0), end=day(1)))
        home.work()

    assert orjson.loads(home.one("SELECT payload FROM ing_record"))["title"] == "you are ***"
    assert "you are ***" in home.one("SELECT fragment FROM ing_quarantine")
    raw, key = RawStore(home.folder / "raw"), home.one("SELECT storage_key FROM ing_task_run_batch")
    assert echo.encode() not in raw.get(key)


@pytest.mark.parametrize(
    ("url", "query"),
    [
        pytest.param(f"http://me:{CANARY}@127.0.0.1:9", {}, id="user and password"),
        pytest.param("http://127.0.0.1:9", {"api_key": CANARY}, id="a key as parameter"),
    ],
)
def test_a_pack_with_a_secret_is_refused(url, query):
    with pytest.raises(PackError, match="declare it under auth") as refusal:
        a_pack(url, works=an_endpoint(request={"query": {**QUERY, **query}}))

    assert CANARY not in str(refusal.value)


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param({"base_url": f"http://me:{CANARY}@127.0.0.1:9"}, id="user and password"),
        pytest.param({"query": {**QUERY, "token": CANARY}}, id="a token as parameter"),
        pytest.param({"headers": {"Authorization": f"Bearer {CANARY}"}}, id="a header"),
    ],
)
def test_a_trigger_with_a_secret_is_refused_and_leaves_no_trace_of_it(home, request_):
    home.apply(a_pack())

    with pytest.raises(CompileError, match="declare it under auth") as refusal:
        home.plan(a_trigger(start=day(0), end=day(1), values={"request": request_}))

    assert CANARY not in str(refusal.value)
    assert tables_with_canary(home) == []
    assert home.one("SELECT COUNT(*) FROM ing_schedule_instance WHERE problems IS NOT NULL") == 1


def test_a_parameter_of_a_trigger_cannot_carry_a_secret(home):
    with pytest.raises(PackError, match="declare it under auth"):
        a_pack(works=an_endpoint(request={"query": {**QUERY, "api_key": "${params.k}"}}))

    home.apply(a_pack(works=an_endpoint(request={"query": {**QUERY, "q": "${params.apiKey}"}})))
    with pytest.raises(CompileError, match="never written"):
        home.plan(a_trigger(start=day(0), end=day(1), params={"apiKey": CANARY}))

    assert tables_with_canary(home) == []


def test_our_mail_address_goes_to_the_upstream_and_only_its_host_is_written_down(home, monkeypatch):
    monkeypatch.setenv("PATRA_CONTACT", f"{CANARY}@patra-tests.org")
    query = {**QUERY, "mailto": "${identity.contact}"}
    with upstream(lambda _: answer(200)) as source:
        home.apply(a_pack(source.url, works=an_endpoint(request={"query": query})))
        home.plan(a_trigger(start=day(0), end=day(1)))
        home.work()

        assert source.asked[0]["mailto"] == f"{CANARY}@patra-tests.org"
    assert tables_with_canary(home) == []
    assert "@patra-tests.org" in home.rows("SELECT request FROM ing_task_run_batch")[0][0]
