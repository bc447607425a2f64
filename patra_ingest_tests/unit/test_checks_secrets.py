"""Secrets: none is written into a pack, a trigger or the Registry, and no refusal repeats one."""

import pytest

from patra_ingest.errors import PackError
from patra_ingest.registry.pack import parse_pack
from patra_ingest.registry.pack_file import PackText
from patra_ingest.spec.checks import request
from patra_ingest.spec.declaration import Overrides
from patra_ingest_tests.unit.check_packs import (
    Case,
    assert_refused,
    changed,
    problems_of,
    refusal,
    with_a_key,
)

CANARY = "s3cret"
K = "auth.credentials.k"
WORKS = "endpoints.works"
IN_PLAIN = "holds a secret in plain"
IN_ADDRESS = "holds a user or password"
REMEDY = "declare it under auth.credentials and refer to it, as secret: env:NAME"
OAUTH = {"type": "OAUTH2", "client_id": "env:EXAMPLE_ID", "client_secret": "env:EXAMPLE_SECRET"}


def asked(group, **values):
    return Overrides({group: values})


CASES = (
    Case(
        request.no_secret_is_written_down,
        "a key in a trigger's query",
        {},
        "--set request.query.api_key",
        IN_PLAIN,
        "declare it under auth.credentials",
        asked=asked("request", query={"api_key": CANARY}),
    ),
    Case(
        request.no_secret_is_written_down,
        "a password in a trigger's body",
        {"endpoints.works.request.method": "POST"},
        "--set request.body.login.password",
        IN_PLAIN,
        "as secret: env:NAME",
        asked=asked("request", body={"login": {"password": CANARY}}),
    ),
    Case(
        request.no_secret_is_written_down,
        "a token in a trigger's headers",
        {},
        "--set http.headers.Authorization",
        IN_PLAIN,
        "as secret: env:NAME",
        asked=asked("http", headers={"Authorization": f"Bearer {CANARY}"}),
    ),
    Case(
        request.no_secret_is_written_down,
        "a proxy with its password",
        {},
        "--set http.proxy",
        IN_ADDRESS,
        "as secret: env:NAME",
        asked=asked("http", proxy=f"http://me:{CANARY}@proxy.example.org"),
    ),
    Case(
        request.no_secret_is_written_down,
        "a parameter of a trigger that is a secret",
        {"endpoints.works.request.query.q": "${params.api_key}"},
        "--set params.api_key",
        "would be stored with the trigger",
        "never written into a pack or a trigger",
        asked=Overrides(params={"api_key": CANARY}),
    ),
    Case(
        request.no_secret_is_written_down,
        "a key in a trigger's probe",
        {},
        "--set cap.probe.query.api_key",
        IN_PLAIN,
        "as secret: env:NAME",
        asked=asked("cap", max=100, probe={"query": {"api_key": CANARY}}),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_secret_in_a_trigger_is_refused_and_not_repeated(sqlite_template, case):
    assert_refused(sqlite_template, case)
    assert CANARY not in str(refusal(sqlite_template, case).problems)


PROBE = {"max": 100, "probe": {"query": {"api_key": CANARY}}}
LOGIN = {**OAUTH, "token_url": f"https://me:{CANARY}@login.example.org/token"}


@pytest.mark.parametrize(
    ("place", "value", "below", "reason"),
    [
        (f"{K}.unlocks.http.headers.Authorization", f"Bearer {CANARY}", "", IN_PLAIN),
        (f"{K}.unlocks.request.query.api_key", CANARY, "", IN_PLAIN),
        (f"{K}.unlocks.http.query.token", {"value": CANARY}, "", IN_PLAIN),
        (f"{K}.unlocks.cap", PROBE, ".probe.query.api_key", IN_PLAIN),
        (K, LOGIN, ".token_url", IN_ADDRESS),
        (f"{WORKS}.auth.credentials.k", LOGIN, ".token_url", IN_ADDRESS),
        (f"{WORKS}.cap", PROBE, ".probe.query.api_key", IN_PLAIN),
        (f"{WORKS}.cap.probe", {"form": {"api_key": CANARY}}, ".form.api_key", IN_PLAIN),
        (f"{WORKS}.cap.probe", {"body": {"password": CANARY}}, ".body.password", IN_PLAIN),
        (f"{WORKS}.request.query.api_key", CANARY, "", IN_PLAIN),
        (f"{WORKS}.request.query.api_key", "${params.api_key}", "", IN_PLAIN),
        (f"{WORKS}.request.first.apikey", {"clauses": ["a", CANARY]}, "", IN_PLAIN),
        (f"{WORKS}.request.headers.X-Api-Key", CANARY, "", IN_PLAIN),
        (f"{WORKS}.request.body", {"a": [{"password": CANARY}]}, ".a[0].password", IN_PLAIN),
        (f"{WORKS}.operations.HARVEST.request.query.api_key", CANARY, "", IN_PLAIN),
        ("operations.BACKFILL.http.query.api_key", CANARY, "", IN_PLAIN),
        ("http.headers.Cookie", CANARY, "", IN_PLAIN),
        ("http.proxy", f"http://me:{CANARY}@proxy.example.org", "", IN_ADDRESS),
        ("provenance.base_url", f"https://me:{CANARY}@api.example.org", "", IN_ADDRESS),
        (f"{WORKS}.request.base_url", f"https://{CANARY}@api.example.org", "", IN_ADDRESS),
    ],
)
def test_a_secret_in_a_pack_is_refused_when_it_is_read(place, value, below, reason):
    said = refused({place: value})
    assert f" {place}{below}: {reason} ({REMEDY})" in said
    assert CANARY not in said


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({f"{K}.secret": CANARY}, id="where its reference belongs"),
        pytest.param(
            {K: {"type": "BASIC", "username": "env:ME", "password": CANARY}}, id="a password"
        ),
        pytest.param(
            {K: {**OAUTH, "token_url": "https://login.example.org", "client_secret": CANARY}},
            id="a client secret",
        ),
        pytest.param({K: {"secret": CANARY}}, id="in a credential without a type"),
        pytest.param({K: CANARY}, id="in place of a credential"),
    ],
)
def test_a_secret_in_place_of_its_reference_is_refused_and_not_repeated(change):
    said = refused(change)
    assert K in said
    assert CANARY not in said


def test_a_secret_that_a_hand_wrote_into_the_registry_is_refused_and_not_repeated(sqlite_template):
    unlocks = f'{{"unlocks":{{"http":{{"headers":{{"Authorization":"Bearer {CANARY}"}}}}}}}}'
    by_hand = f"UPDATE reg_prov_credential SET extra_json = '{unlocks}'".replace(":", "\\:")
    [problem] = problems_of(sqlite_template, with_a_key(), by_hand=by_hand)
    assert problem == f"{K}.unlocks.http.headers.Authorization: {IN_PLAIN} ({REMEDY})"


def refused(change) -> str:
    """Return what is said of a pack that cannot be read."""
    with pytest.raises(PackError) as refused:
        parse_pack(PackText("the case", changed(with_a_key(), change), {}))
    return str(refused.value)
