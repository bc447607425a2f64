"""Values come back from the ledger as they went in, on SQLite and MySQL alike."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from patra_ingest.ledger.db import insert, instant_text, json_text, read_instant, read_json

NOON = datetime(2025, 9, 20, 12, tzinfo=UTC)
IST = timezone(timedelta(hours=5, minutes=30))


def a_quota(start: datetime, **given: object) -> dict[str, object]:
    end = start + timedelta(microseconds=1)
    row = {"rate_key": "ncbi", "window_from": instant_text(start), "window_to": instant_text(end)}
    return row | {"limit_amount": 1} | given


def a_record(provider_id: str, **given: object) -> dict[str, object]:
    key = {"provenance_code": "pubmed", "endpoint_name": "search", "provider_id": provider_id}
    hashes = {"content_hash": "c" * 64, "spec_fingerprint": "5" * 64, "expr_hash": "e" * 64}
    seen = {"first_seen_at": instant_text(NOON), "last_checked_at": instant_text(NOON)}
    return key | hashes | seen | given


def a_signal(**given: object) -> dict[str, object]:
    key = {"provenance_code": "pubmed", "endpoint_name": "search", "provider_id": "1"}
    return key | {"signal_code": "MERGE", "dedup_key": "once"} | given


INSTANTS = [
    datetime(1700, 1, 1, tzinfo=UTC),
    datetime(1700, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999998, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2025, 3, 30, 1, 30, tzinfo=UTC),
    datetime(2025, 9, 20, 12, 0, 0, 123456, tzinfo=UTC),
    datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC),
    datetime(2100, 12, 31, 23, 59, 59, 999998, tzinfo=UTC),
]


@pytest.mark.parametrize("instant", INSTANTS, ids=str)
def test_an_instant_comes_back_to_the_microsecond(db, instant):
    with db.write() as tx:
        insert(tx, "ing_quota_window", a_quota(instant))
        row = tx.execute(text("SELECT window_from, window_to FROM ing_quota_window")).one()

    assert read_instant(row.window_from) == instant
    assert read_instant(row.window_to) == instant + timedelta(microseconds=1)


def test_instants_sort_by_time_whatever_their_century(db):
    with db.write() as tx:
        for instant in reversed(INSTANTS):
            insert(tx, "ing_quota_window", a_quota(instant))
        asked = text("SELECT window_from FROM ing_quota_window ORDER BY window_from")
        found = [read_instant(value) for value in tx.execute(asked).scalars()]

    assert found == INSTANTS


def test_an_instant_of_another_zone_is_kept_as_utc(db):
    with db.write() as tx:
        insert(tx, "ing_quota_window", a_quota(NOON.astimezone(IST)))
        found = tx.execute(text("SELECT window_from FROM ing_quota_window")).scalar_one()

    assert read_instant(found) == NOON
    assert "12:00:00" in str(found)


def test_text_that_is_no_instant_is_refused(db):
    with pytest.raises(DBAPIError), db.write() as tx:
        insert(tx, "ing_quota_window", a_quota(NOON, window_from="yesterday"))


def test_a_row_is_dated_by_the_database_in_utc(db):
    with db.write() as tx:
        insert(tx, "ing_signal", a_signal())
        row = tx.execute(text("SELECT created_at, updated_at FROM ing_signal")).one()
        now = db.now(tx)

    assert abs(now - read_instant(row.created_at)) < timedelta(minutes=5)
    assert abs(now - read_instant(row.updated_at)) < timedelta(minutes=5)


def test_json_comes_back_as_the_same_value(db):
    value = {"b": [1, None, "ü😀"], "a": {"nested": 1.5, "big": 2**53 + 1}, "": True}
    with db.write() as tx:
        insert(tx, "ing_signal", a_signal(payload=json_text(value)))
        found = tx.execute(text("SELECT payload FROM ing_signal")).scalar_one()

    assert read_json(found) == value


def test_text_that_is_no_json_is_refused(db):
    with pytest.raises(DBAPIError), db.write() as tx:
        insert(tx, "ing_signal", a_signal(payload="{not json"))


def test_an_item_is_kept_exactly_as_received(db):
    item = '{"z": 1.10, "a": 123456789012345678901234567890, "a": "again", "text": "ü😀\\u0000"}'
    with db.write() as tx:
        insert(tx, "ing_record", a_record("1", payload=item))
        found = tx.execute(text("SELECT payload FROM ing_record")).scalar_one()

    assert found == item


def test_ids_that_differ_only_in_case_or_accent_are_different_records(db):
    ids = ["10.1/abc", "10.1/ABC", "10.1/äbc", "10.1/a\u0308bc", "😀", "😁"]
    with db.write() as tx:
        for provider_id in ids:
            insert(tx, "ing_record", a_record(provider_id))
        found = tx.execute(text("SELECT provider_id FROM ing_record ORDER BY id")).scalars()
        assert list(found) == ids


def test_the_longest_provider_id_fits_its_key(db):
    longest = "😀" * 512
    with db.write() as tx:
        insert(tx, "ing_record", a_record(longest))
        found = tx.execute(
            text("SELECT COUNT(*) FROM ing_record WHERE provider_id = :id"), {"id": longest}
        )
        assert found.scalar() == 1


def test_a_rate_below_one_request_per_second_is_kept(db):
    row = {"rate_key": "slow", "refilled_at": instant_text(NOON), "burst": "1"}
    with db.write() as tx:
        insert(
            tx,
            "ing_rate_bucket",
            row | {"rate_per_second": "0.333333333", "configured_rate": "0.1"},
        )
        rates = tx.execute(text("SELECT rate_per_second, configured_rate FROM ing_rate_bucket"))
        assert [float(rate) for rate in rates.one()] == [0.333333333, 0.1]


def test_a_page_token_of_any_length_marks_one_position(db):
    row = {"run_id": 1, "provenance_code": "p", "endpoint_name": "e", "operation_code": "HARVEST"}
    token = "https://example.org/next?" + "x" * 5000
    with db.write() as tx:
        batch = row | {"before_token": token, "before_token_hash": "b" * 64}
        insert(tx, "ing_task_run_batch", batch | {"idempotent_key": "1" * 64, "batch_no": 1})
        assert tx.execute(text("SELECT before_token FROM ing_task_run_batch")).scalar() == token
    with pytest.raises(DBAPIError), db.write() as tx:
        insert(tx, "ing_task_run_batch", batch | {"idempotent_key": "2" * 64, "batch_no": 2})
