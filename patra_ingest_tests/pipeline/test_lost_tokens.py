"""A repository that loses its resumptionToken once, read with the template for OAI-PMH."""

import pytest

from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import parse_pack
from patra_ingest.registry.pack_file import read_pack_file
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.pipeline.walks import (
    harvest,
    last_error,
    listening,
    proofs,
    records,
    stamp,
)

COUNT, SIZE = 9, 3
RECORD = (
    "<record><header><identifier>oai:x:{0}</identifier><datestamp>{1}</datestamp></header>"
    '<metadata><oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"'
    ' xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>T{0}</dc:title></oai_dc:dc>'
    "</metadata></record>"
)


@pytest.fixture
def home(sqlite_db, sqlite_url, tmp_path):
    return Home(sqlite_db, sqlite_url, tmp_path / "home")


def a_repository(url):
    text = read_pack_file(FOLDER / "oaipmh.yaml")
    text.value["http"]["allow_insecure_http"] = True
    return parse_pack(text, None, {"code": "example", "base_url": url, "per_second": 100})


def listed(inside):
    return 200, (
        '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
        "<responseDate>2026-11-01T00:00:00Z</responseDate>"
        f"<ListRecords>{inside}</ListRecords></OAI-PMH>"
    ).encode()


def page(start, token):
    shown = range(start, min(COUNT, start + SIZE))
    return listed("".join(RECORD.format(n, stamp(n)) for n in shown) + token)


def next_token(start, size):
    after = start + SIZE if start + SIZE < COUNT else ""
    return f"<resumptionToken{size}>{after}</resumptionToken>"


@pytest.mark.parametrize("size", [f' completeListSize="{COUNT}"', ""], ids=["counts", "does not"])
def test_a_resumption_token_that_is_lost_once_is_not_the_end(home, size):
    lost = []

    def answer(asked):
        start = int(asked.get("resumptionToken", 0))
        if start == SIZE and not lost:
            lost.append(start)
            return page(start, "")
        return page(start, next_token(start, size))

    with listening(answer) as server:
        home.apply(a_repository(server.url))

        assert harvest(home, endpoint="records") == ["SUCCEEDED"], last_error(home)
        asked = [one.get("resumptionToken") for one in server.asked]
    assert asked == [None, "3", "3", "6", "6"]
    assert records(home) == [f"oai:x:{n}" for n in range(COUNT)]
    (proof,) = proofs(home)
    assert (proof["verdict"], proof["landed"]) == ("COMPLETE", COUNT)
