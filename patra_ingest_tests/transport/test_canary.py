"""A canary secret through every way of signing and every way of failing: it never comes out."""

import logging
import traceback
from urllib.parse import quote

import pytest

from patra_ingest.errors import IngestError
from patra_ingest.transport.messages import Options, Request, Timeouts
from patra_ingest_tests.transport.desk import spec_of

CANARY = "kanarie/8f3a+Gg=="
SPELLINGS = (CANARY, quote(CANARY), quote(CANARY, safe=""), "kanarie")
KEY = {"type": "API_KEY", "secret": "env:KEY", "field": "k"}
CREDENTIALS = {
    "query": KEY,
    "header": {**KEY, "location": "HEADER", "field": "X-Who"},
    "body": {**KEY, "location": "BODY"},
    "bearer": {"type": "BEARER", "secret": "env:KEY", "field": "X-Any"},
    "basic": {"type": "BASIC", "username": "env:KEY", "password": "env:KEY"},
}
FAILURES = {
    "an answer": "/",
    "no answer": "/drop",
    "garbage": "/garbage",
    "half an answer": "/truncated",
    "damaged": "/badgzip",
    "unknown packing": "/packed/br",
    "too large": "/huge",
    "too late": "/slow",
    "not there": "/status/404",
    "echoed": "/kanarie%2f8f3a+Gg%3d%3d",
}


@pytest.mark.parametrize("credential", CREDENTIALS.values(), ids=CREDENTIALS)
@pytest.mark.parametrize("path", FAILURES.values(), ids=FAILURES)
def test_no_spelling_of_a_key_reaches_a_message_a_repr_or_a_log(
    desk, upstream, permit, caplog, credential, path
):
    caplog.set_level(logging.DEBUG)
    # Dagster's migrations switch off every logger they do not know, also in the tests before us.
    logging.getLogger("httpx").disabled = False
    desk.secrets["env:KEY"] = CANARY
    asked = Request(
        "POST", upstream.url + path, timeouts=Timeouts(read=0.2), options=Options(100_000)
    )

    signed = desk.auth.sign(asked, spec_of(mine=credential), "lib")
    told = [repr(signed), signed.request.shown_url, str(signed.request.shown_headers)]
    try:
        told.append(repr(desk.transport.send(signed.request, permit())))
    except IngestError as error:
        told += [*traceback.format_exception(error), str(error)]

    everything = "\n".join([*told, caplog.text])
    assert [spelling for spelling in SPELLINGS if spelling in everything] == []
    assert "kanarie" not in everything.lower()


def test_the_key_itself_does_reach_the_upstream(desk, upstream, permit):
    desk.secrets["env:KEY"] = CANARY
    for credential in CREDENTIALS.values():
        signed = desk.auth.sign(Request("POST", upstream.url), spec_of(mine=credential), "lib")
        desk.transport.send(signed.request, permit())

    assert upstream.seen[0] == f"/?k={quote(CANARY, safe='')}"
    assert [told.get("X-Who") or told.get("X-Any") for told in upstream.told[1:4]] == [
        CANARY,
        None,
        f"Bearer {CANARY}",
    ]
    assert upstream.told[2]["body"] == f"k={quote(CANARY, safe='')}"
    assert upstream.told[4]["Authorization"].startswith("Basic ")
