"""The shape of records: what a change of spec must touch before records are made anew."""

from datetime import timedelta

import pytest

from patra_ingest.model.codes import Operation
from patra_ingest.packs import builtin_packs
from patra_ingest.registry.apply import apply_pack
from patra_ingest.registry.pack import parse_pack, read_pack
from patra_ingest.registry.pack_file import PackText
from patra_ingest.registry.read import read_declaration
from patra_ingest.spec.compile import compile_spec
from patra_ingest.spec.declaration import Overrides
from patra_ingest.spec.record_shape import record_shape
from patra_ingest_tests.builders import NOON, START, a_spec
from patra_ingest_tests.unit.check_packs import a_pair, changed

FIELD = {"name": "title", "path": "$.title", "required": True}


def compiled(db, pack, endpoint, operation):
    with db.engine.connect() as tx, tx.begin() as trial:
        apply_pack(tx, pack, START)
        declared = read_declaration(tx, pack.provenance.code, endpoint, operation, NOON)
        trial.rollback()
    return compile_spec(declared, Overrides()).spec


def of_pair(db, endpoint, operation, **change):
    pack = parse_pack(PackText("the test's pack", changed(a_pair(), change), {}))
    return record_shape(compiled(db, pack, endpoint, operation))


@pytest.mark.parametrize(
    "groups",
    [
        {"rate": {"key": "example", "per_second": 3.0}},
        {"http": {"read_timeout": timedelta(seconds=7)}},
        {"retry": {"max_attempts": 9}},
        {"window": {"zone": "UTC", "safety_lag": timedelta(days=3)}},
        {"paging": {"page_size": 7}},
        {"request": {"base_url": "https://other.example.org"}},
    ],
    ids=lambda groups: next(iter(groups)),
)
def test_how_a_source_is_asked_is_no_part_of_the_shape(groups):
    other = a_spec(**groups)

    assert other != a_spec()
    assert record_shape(other) == record_shape(a_spec())


def test_the_operation_is_no_part_of_the_shape():
    spec = a_spec()

    assert record_shape(spec.model_copy(update={"operation": Operation.BACKFILL})) == record_shape(
        spec
    )


@pytest.mark.parametrize(
    "groups",
    [
        {"response": {"id": "$.doi"}},
        {"response": {"retracted": {"path": "$.state", "equals": "gone"}}},
        {"endpoint": {"fields": [{**FIELD, "path": "$.name"}]}},
        {"endpoint": {"fields": [FIELD, {"name": "journal", "path": "$.journal"}]}},
        {"endpoint": {"fields": [FIELD], "changed": "HASH"}},
    ],
    ids=["id", "retracted", "another path", "another field", "changed"],
)
def test_how_an_item_is_read_is_the_shape(groups):
    assert record_shape(a_spec(**groups)) != record_shape(a_spec())


def test_the_search_that_finds_ids_has_no_part_in_the_shape(sqlite_db):
    shape = of_pair(sqlite_db, "works", Operation.HARVEST)

    other = {"endpoints.works.response.items": "$.found"}
    assert of_pair(sqlite_db, "works", Operation.HARVEST, **other) == shape


def test_a_new_field_of_the_detail_is_another_shape(sqlite_db):
    shape = of_pair(sqlite_db, "works", Operation.HARVEST)

    other = {"endpoints.fetch.fields.journal": "$.x:journal"}
    assert of_pair(sqlite_db, "works", Operation.HARVEST, **other) != shape


@pytest.mark.parametrize(
    ("source", "harvested", "updated"),
    [("pubmed", "new", "fetch"), ("pubmed", "changed", "fetch"), ("crossref", "works", "work")],
)
def test_a_built_in_update_makes_records_of_the_shape_of_its_harvest(
    sqlite_db, source, harvested, updated
):
    (path,) = [path for path in builtin_packs() if path.stem == source]
    pack = read_pack(path)
    first = compiled(sqlite_db, pack, harvested, Operation.HARVEST)
    again = compiled(sqlite_db, pack, updated, Operation.UPDATE)

    assert record_shape(first) == record_shape(again)
