"""The Registry keeps its history: rows are closed and opened, never edited, and found again."""

from datetime import timedelta

import pytest
from sqlalchemy import event, text

from patra_ingest.errors import CompileError, PackError, UnknownName
from patra_ingest.ledger.db import insert, instant_text, read_instant
from patra_ingest.model.codes import Operation
from patra_ingest.registry.apply import Change, apply_checked, apply_pack
from patra_ingest.registry.code_book import builtin_code_book
from patra_ingest.registry.read import read_declaration
from patra_ingest.registry.rows import TABLES
from patra_ingest.registry.unpack import read_source
from patra_ingest.spec.compile import compile_spec
from patra_ingest.spec.declaration import Overrides
from patra_ingest.spec.words import shown_instant
from patra_ingest_tests.builders import START, a_pack, an_endpoint, by_token, day
from patra_ingest_tests.properties.packs import a_book, a_full_pack

MOMENT = timedelta(microseconds=1)
CODES = builtin_code_book()


def apply(db, pack, now=START):
    with db.write() as tx:
        return apply_pack(tx, pack, now)


def apply_well(db, pack, now):
    with db.write() as tx:
        return apply_checked(tx, pack, now, CODES, lambda _secret: False)


def rows(db, *tables):
    with db.read() as tx:
        return {
            (table, row["id"]): dict(row)
            for table in tables or ("reg_provenance", "reg_expr_field_dict", *TABLES)
            for row in tx.execute(text(f"SELECT * FROM {table}")).mappings()
        }


def source(db, at):
    with db.read() as tx:
        return read_source(tx, "example", at)


def spec(db, at=START):
    with db.read() as tx:
        declared = read_declaration(tx, "example", "works", Operation.HARVEST, at)
    return compile_spec(declared, Overrides()).spec


def pages(size, **more):
    return a_pack(works=an_endpoint(paging={"page_size": size}, **more))


def from_day(number, pack):
    return pack.model_copy(update={"effective_from": shown_instant(day(number))})


CHANGED_WORKS = an_endpoint(
    changed="NEWER",
    paging={"page_size": 7},
    window={"max_span": "7h"},
    schedule={"HARVEST": "7 7 * * *"},
)
CHANGES = {
    "http": {"allow_insecure_http": True, "read_timeout": "7s"},
    "rate": {"key": "example", "per_second": 7},
    "retry": {"max_attempts": 7},
    "batching": {"ids_per_request": 7},
    "planning": {"records_per_slice": 7},
    "auth": {"credentials": {"key": {"type": "BEARER", "secret": "env:OTHER_KEY"}}},
    "endpoints": {"works": CHANGED_WORKS, "tokens": by_token()},
    "expressions": a_book(template="t7:{{v}}", param="q7", min_length=7),
}


def test_a_change_closes_the_old_row_and_opens_another_at_that_instant(db):
    apply(db, a_full_pack())
    before = rows(db, *TABLES)
    assert {table for table, _ in before} == {*TABLES}

    changes = apply(db, a_full_pack(**CHANGES), day(1))

    after = rows(db, *TABLES)
    closed = [key for key, row in before.items() if after[key] != row]
    opened = after.keys() - before.keys()
    assert {change.action for change in changes} == {"replaced"}
    assert sorted(table for table, _ in closed) == sorted(TABLES)
    assert sorted(table for table, _ in opened) == sorted(TABLES)
    for key in closed:
        edited = {name for name in before[key] if before[key][name] != after[key][name]}
        assert edited == {"effective_to", "version", "updated_at"}
        assert read_instant(after[key]["effective_to"]) == day(1)
    for key in opened:
        assert read_instant(after[key]["effective_from"]) == day(1)
        assert after[key]["effective_to"] is None


@pytest.mark.parametrize("part", CHANGES)
def test_what_a_change_does_not_name_is_left_alone(db, part):
    changed = a_full_pack(**{part: CHANGES[part]})
    apply(db, a_full_pack())
    before = rows(db)

    changes = apply(db, changed, day(1))

    after = rows(db)
    touched = [key for key, row in before.items() if after[key] != row]
    assert len(touched) == len(changes) == len(after) - len(before) > 0
    assert apply(db, changed, day(2)) == []
    assert rows(db) == after


def test_a_template_that_begins_like_json_can_be_changed(sqlite_db):
    for number, template in enumerate(("{{v}}", "{{quoted}}")):
        apply(sqlite_db, a_full_pack(expressions=a_book(template=template)), day(number))

    assert source(sqlite_db, day(1)).expressions.rules[0].template == "{{quoted}}"


def test_a_removed_endpoint_is_closed_with_all_that_was_its_own(db):
    apply(db, a_full_pack())

    changes = apply(db, a_full_pack(endpoints={"tokens": by_token()}), day(1))

    own = ("endpoint works", "pagination works", "window offset works", "schedule works HARVEST")
    assert {*changes} == {Change("closed", what) for what in own}
    assert list(source(db, day(1)).endpoints) == ["tokens"]
    assert list(source(db, day(1) - MOMENT).endpoints) == ["works", "tokens"]
    with pytest.raises(UnknownName, match="has no endpoint 'works' for HARVEST"):
        spec(db, day(1))


def test_every_state_of_a_source_can_be_read_again(db):
    url, moved = "http://127.0.0.1:9", "http://127.0.0.1:10"
    who = {"code": "example", "name": "Renamed", "base_url": moved, "timezone": "Asia/Tokyo"}
    looked_at = {"date": "2026-11-01", "grade": "RECORDED", "note": "the cap is a guess"}
    documented = {**who, "docs_url": "https://example.org/docs", "evidence": looked_at}
    packs = [
        a_full_pack(),
        a_full_pack(**CHANGES),
        a_full_pack(provenance=who),
        a_full_pack(provenance=documented, auth=None),
        a_pack(),
    ]
    for number, pack in enumerate(packs):
        apply(db, pack, day(number))

    for number, pack in enumerate(packs):
        assert source(db, day(number)) == pack
        assert source(db, day(number + 1) - MOMENT) == pack
    found = [spec(db, day(number)) for number in range(5)]
    assert [one.request.base_url for one in found] == [url, url, moved, moved, url]
    assert [one.window.zone for one in found[1:3]] == ["UTC", "Asia/Tokyo"]


@pytest.mark.parametrize("start", [0, 5])
def test_before_it_begins_a_source_is_not_known(db, start):
    apply(db, from_day(start, a_full_pack()))

    for read in (spec, source):
        with pytest.raises(UnknownName, match="example"):
            read(db, day(start) - MOMENT)
    assert source(db, day(start)) == a_full_pack()


def add_retry(tx, attempts, endpoint=None, operation=None, from_day=0):
    row = {
        "provenance_id": tx.execute(text("SELECT id FROM reg_provenance")).scalar_one(),
        "scope_code": "TASK" if operation else "SOURCE",
        "task_type": operation,
        "endpoint_name": endpoint,
        "effective_from": instant_text(day(from_day)),
        "max_retry_times": attempts - 1,
        "backoff_policy_type_code": "FIXED",
    }
    insert(tx, "reg_prov_retry_cfg", row)


OLD, NEW, OF_TASK = (3,), (4, None, None, 1), (6, None, "HARVEST")
BOUND, BOUND_NEW, BOUND_OF_TASK = (7, "works"), (8, "works", None, 1), (9, "works", "HARVEST")
FOREIGN, OTHER_TASK, TO_COME = (10, "tokens"), (11, "works", "UPDATE"), (12, "works", None, 3)


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        ([FOREIGN, OTHER_TASK, TO_COME], 5),  # the platform's own
        ([OLD, FOREIGN, OTHER_TASK, TO_COME], 3),
        ([NEW, OLD], 4),
        ([OF_TASK, NEW, OLD], 6),
        ([BOUND, OF_TASK, NEW], 7),
        ([BOUND_NEW, BOUND, OF_TASK], 8),
        ([BOUND_OF_TASK, BOUND_NEW, OF_TASK], 9),
    ],
)
def test_the_closest_row_counts_then_that_of_the_operation_then_the_newest(db, added, expected):
    apply(db, a_full_pack(retry=None))
    with db.write() as tx:
        for row in added:
            add_retry(tx, *row)

    assert spec(db, day(2)).retry.max_attempts == expected


def test_the_parameter_names_of_an_endpoint_win_over_those_of_its_paging(db):
    paging = {"size_param": "rows", "offset_param": "skip"}
    apply(db, a_pack(works=an_endpoint(paging=paging, names={"offset": "start"})))

    query = spec(db).request.query

    assert (query["rows"], query["start"]) == ("${page.size}", "${page.offset}")
    assert "skip" not in query


def test_what_holds_later_changes_nothing_until_then(db):
    moved = a_pack("http://127.0.0.1:10", works=an_endpoint(paging={"page_size": 70}))
    apply(db, pages(10))

    changes = apply(db, from_day(5, moved), day(1))

    assert [change.what for change in changes] == ["provenance example", "pagination works"]
    found = [spec(db, at) for at in (START, day(1), day(5) - MOMENT, day(5))]
    assert [one.paging.page_size for one in found] == [10, 10, 10, 70]
    assert [one.request.base_url[-3:] for one in found] == ["1:9", "1:9", "1:9", ":10"]
    assert (source(db, day(2)), source(db, day(5))) == (pages(10), moved)
    assert apply(db, from_day(5, moved), day(2)) == []


def test_a_change_before_one_that_is_to_come_is_refused_and_writes_nothing(db):
    apply(db, pages(10))
    apply(db, from_day(5, pages(70)))
    before = rows(db)

    for now, pack in ((1, pages(30)), (2, pages(30)), (2, from_day(4, pages(30)))):
        with pytest.raises(PackError, match=r"example: pagination works from 2025-09-0.* overlap"):
            apply(db, pack, day(now))
        assert rows(db) == before

    apply(db, pages(30), day(6))
    assert [spec(db, day(number)).paging.page_size for number in (4, 5, 6)] == [10, 70, 30]


def test_history_is_not_rewritten(db):
    apply(db, pages(10))
    before = rows(db)

    with pytest.raises(PackError, match=r"effective_from 2025-09-03\S+ is in the past"):
        apply(db, from_day(2, pages(70)), day(2) + MOMENT)
    assert rows(db) == before


def test_a_pack_that_does_not_compile_changes_nothing(db):
    wrong = pages(70, response={"updated_at": None}, changed="NEWER")
    apply(db, pages(10))
    before = rows(db)

    for pack in (wrong, from_day(5, wrong)):
        with pytest.raises(CompileError, match=r"HARVEST: endpoints\.works\.response\.updated_at"):
            apply_well(db, pack, day(1))
        assert rows(db) == before


def test_a_field_that_another_source_shares_keeps_its_meaning(db):
    other = {"code": "other", "name": "Other", "base_url": "http://127.0.0.1:9"}
    apply(db, a_full_pack(expressions=a_book("Alone")))
    apply(db, a_full_pack())  # nobody else speaks of it yet
    before = rows(db)

    with pytest.raises(PackError, match=r"fields\.title differs in display_name .* example shares"):
        apply(db, a_full_pack(provenance=other, expressions=a_book("Changed")))
    assert rows(db) == before
    assert apply(db, a_full_pack(provenance=other))


@pytest.mark.parametrize("count", [1, 60])
def test_a_declaration_takes_eight_questions_however_many_sources_there_are(db, count):
    with db.write() as tx:
        for number in range(count):
            who = {"code": f"source{number}", "name": "x", "base_url": "https://example.org"}
            apply_pack(tx, a_full_pack(provenance=who), START)

    asked = []
    event.listen(db.engine, "before_cursor_execute", lambda *seen: asked.append(seen[2].split()[0]))
    for codes, most in ((None, 8), (CODES, 7)):
        asked.clear()
        with db.read() as tx:
            read_declaration(tx, "source0", "works", Operation.HARVEST, day(1), codes)
        assert 0 < asked.count("SELECT") <= most
