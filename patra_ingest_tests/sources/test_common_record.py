"""What packs make of our own answers is written as the common record says."""

import pytest

from patra_ingest.ledger.db import open_db, read_json
from patra_ingest.spec.common_shape import COMMON_FIELDS, find_misfits
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.sources.suite.cases import handmade_sources
from patra_ingest_tests.sources.suite.run_case import run_case

CASES = [
    case for source in handmade_sources() for case in source.cases if case.ids and not case.is_error
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.source}-{case.case}")
def test_every_record_fits_the_common_record(case, sqlite_url, tmp_path, monkeypatch):
    for name, value in case.secrets.items():
        monkeypatch.setenv(name, value)
    home = Home(open_db(sqlite_url), sqlite_url, tmp_path / "home")
    try:
        run_case(case, home)
        rows = home.rows("SELECT provider_id, fields FROM ing_record WHERE is_deleted = 0")
        records = {row[0]: read_json(row[1]) for row in rows}
    finally:
        home.db.close()

    assert len(records) == len(case.ids)
    misfits = {name: find_misfits(fields) for name, fields in records.items()}
    assert {name: found for name, found in misfits.items() if found} == {}
    said = [name for name in COMMON_FIELDS if any(one.get(name) for one in records.values())]
    assert {"title", "doi"} & set(said)
