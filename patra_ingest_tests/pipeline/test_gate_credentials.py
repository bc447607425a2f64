"""What a source counts by credential is counted so: who has some left is used next."""

import pytest

from patra_ingest_tests.builders import an_endpoint
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.pipeline.walks import (
    a_source,
    between,
    harvest,
    ids,
    last_error,
    listening,
    records,
    works,
)

KEYS = {"a": "a-key-of-the-first-one", "b": "b-key-of-the-other-one"}


@pytest.fixture
def home(db, db_url, tmp_path, monkeypatch):
    for name, secret in KEYS.items():
        monkeypatch.setenv(f"PATRA_TEST_KEY_{name.upper()}", secret)
    return Home(db, db_url, tmp_path / "home")


def harvested(home, pages, scope, limit=4):
    """Harvest so many pages with two keys; return how it ended, and which key was sent when."""
    used = []

    def answer(asked):
        used.append(asked["headers"]["X-Key"][0])
        found, start = between(works(10 * pages), asked), int(asked["offset"])
        return 200, {"items": found[start : start + 10], "total": len(found)}

    def credential(name, **more):
        secret = f"env:PATRA_TEST_KEY_{name.upper()}"
        place = {"location": "HEADER", "field": "X-Key"}
        return {"type": "API_KEY", "secret": secret, **place, **more}

    named = {"a": credential("a", preferred=True), "b": credential("b")}
    parts = {
        "auth": {"required": True, "rotation": "FIRST", "credentials": named},
        "rate": {"per_second": 100, "burst": 50},
    }
    parts["rate"]["quotas"] = [{"limit": limit, "per": "1d", "scope": scope}]
    with listening(answer) as server:
        home.apply(a_source(server.url, parts, works=an_endpoint()))
        ends = harvest(home)
    return ends, "".join(used)


def test_the_next_credential_goes_on_where_the_first_one_is_spent(home):
    ends, used = harvested(home, pages=6, scope="CREDENTIAL")

    assert ends == ["SUCCEEDED"], last_error(home)
    assert used == "aaaabbb", "the last page is empty"
    assert records(home) == ids(60)


def test_when_all_are_spent_the_task_waits_for_the_next_day(home):
    ends, used = harvested(home, pages=9, scope="CREDENTIAL")

    assert (ends, used) == (["RELEASED"], "aaaabbbb")
    assert home.one("SELECT status_code FROM ing_task") == "QUEUED"


def test_what_is_counted_by_address_is_not_more_for_two_keys(home):
    ends, used = harvested(home, pages=6, scope="IP")

    assert (ends, used) == (["RELEASED"], "aaaa")
