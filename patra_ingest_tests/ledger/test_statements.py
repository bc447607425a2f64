"""The statements of every batch, written by hand for two drivers."""

from datetime import timedelta

import pytest
from sqlalchemy import text

from patra_ingest.ledger.records import mark_gone, upsert_newer
from patra_ingest.ledger.statements import execute, execute_for_ids
from patra_ingest.model.records import ChangeRule
from patra_ingest_tests.builders import NOON, a_record

STAMP = {"spec_fingerprint": "f" * 64, "expr_hash": "e" * 64}
SECOND = timedelta(seconds=1)


def upsert(db, *records, provenance="example", endpoint="works"):
    with db.write() as tx:
        return upsert_newer(tx, provenance, endpoint, records, ChangeRule.NEWER, STAMP, NOON)


def rows(db):
    with db.read() as tx:
        found = tx.execute(text("SELECT * FROM ing_record ORDER BY provider_id"))
        return {row["provider_id"]: row for row in found.mappings()}


@pytest.mark.parametrize(
    "odd", ["50%", "%s", "%(a)s", "it's", 'a "b"', "back\\slash", ":name", "é"]
)
def test_what_all_rows_share_is_kept_letter_by_letter(db, odd):
    upsert(db, a_record("a"), a_record("b"), provenance=odd, endpoint=odd)

    assert {(row["provenance_code"], row["endpoint_name"]) for row in rows(db).values()} == {
        (odd, odd)
    }


def test_json_stays_text_whatever_is_in_it(db):
    said = """{"title": "50% of \\\\n \\u0000 é 中 😀 it's :a ?"}""".encode()

    upsert(db, a_record("a")._replace(fields_json=b'{"t": "it\'s 5%"}', payload=said))

    assert rows(db)["a"]["payload"] == said.decode()
    with db.read() as tx:
        found = tx.execute(text("SELECT JSON_EXTRACT(fields, '$.t') FROM ing_record")).scalar_one()
    assert found.strip('"') == "it's 5%"


@pytest.mark.parametrize("size", [10, 400_000])
def test_more_than_one_statement_holds_is_written_and_written_again(db, size):
    many = [
        a_record(f"{n:04d}")._replace(payload=b'"' + bytes([97 + n % 26]) * size + b'"')
        for n in range(2500 if size < 1000 else 12)
    ]
    newer = [one._replace(source_updated_at=NOON + SECOND, content_hash="2" * 64) for one in many]

    assert upsert(db, *many).counts.inserted == len(many)
    assert upsert(db, *newer).counts.updated == len(many)

    found = rows(db)
    assert [found[one.provider_id]["payload"].encode() for one in many] == [
        one.payload for one in many
    ]
    assert {row["version"] for row in found.values()} == {1}


def test_a_change_knows_the_row_and_the_revision_that_it_became(db):
    first = upsert(db, a_record("a"), a_record("b"), a_record("c")).changes
    again = upsert(db, a_record("b", NOON + SECOND, "2"), a_record("d")).changes
    with db.write() as tx:
        gone = mark_gone(tx, "example", "works", ["b", "c", "unknown"], NOON).changes

    ids = {name: row["id"] for name, row in rows(db).items()}
    assert [change.record for change in first] == [(ids[name], 0) for name in "abc"]
    assert [change.record for change in again] == [(ids["b"], 1), (ids["d"], 0)]
    assert [change.record for change in gone] == [(ids["b"], 2), (ids["c"], 1)]
    assert {name: row["version"] for name, row in rows(db).items()} == dict(a=0, b=2, c=1, d=0)


def test_names_are_values_and_everything_else_is_left_alone(db):
    said = "SELECT :one AS one, :one_more AS more, '5%' AS part, '12:30' AS clock"
    with db.read() as tx:
        row = execute(tx, said, {"one": "it's", "one_more": None}).one()

    assert tuple(row) == ("it's", None, "5%", "12:30")


@pytest.mark.parametrize("count", [0, 1, 1000, 1001])
def test_any_number_of_ids_is_asked_for(db, count):
    names = [f"{n:04d}" for n in range(count)]
    upsert(db, *(a_record(name) for name in names))
    said = "SELECT provider_id FROM ing_record WHERE endpoint_name = {0} AND provider_id IN ({1})"

    with db.read() as tx:
        found = execute_for_ids(tx, said, ("works",), names)
        assert [row[0] for result in found for row in result] == names
