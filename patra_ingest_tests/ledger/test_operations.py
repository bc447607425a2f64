"""Three operations side by side: their windows, their namespaces, and what an UPDATE asks for."""

import pytest
from sqlalchemy import text

from patra_ingest.ledger.candidates import find_spec
from patra_ingest.ledger.db import instant_text, read_instant, read_json
from patra_ingest.ledger.signals import add_signals
from patra_ingest.model.codes import Operation, Signal
from patra_ingest_tests.builders import (
    DAY,
    NOON,
    START,
    a_pack,
    a_record,
    a_trigger,
    an_endpoint,
    day,
)
from patra_ingest_tests.ledger.planning import (
    a_planner,
    finish,
    plan_row,
    rows,
    slices_of,
    tasks_of,
    windows_of,
)


def a_library(**planning):
    """Return a source whose search hands its ids to `one`, which an UPDATE asks directly."""
    search = an_endpoint(detail={"endpoint": "one", "batch": 10}, response={"updated_at": None})
    search.pop("fields")
    search.pop("changed")
    one = an_endpoint(
        usage="DETAIL",
        operations=["UPDATE"],
        request={"path": "/one", "query": {"ids": "${ids|join(',')}"}},
        paging={"type": "NONE", "page_size": 100, "stop": ["ONE_PAGE"]},
        batching={"ids_per_request": 10},
        planning={"ids_per_slice": 10, "refresh_days": 10, **planning},
    )
    for key in ("size_param", "total"):
        one["paging"].pop(key)
    one["request"]["query"] = {"ids": "${ids|join(',')}"}
    return a_pack(works=search, one=one)


def store(db, made_by, *checked):
    """Let records n0, n1, … have been checked so many days after the first."""
    with db.write() as tx:
        for number, days_after in enumerate(checked):
            values = {
                "name": f"n{number:03d}",
                "at": instant_text(START + days_after * DAY),
                "spec": made_by,
                "hash": a_record().content_hash,
            }
            insert = (
                "INSERT INTO ing_record (provenance_code, endpoint_name, provider_id, content_hash,"
                " spec_fingerprint, expr_hash, first_seen_at, last_checked_at)"
                " VALUES ('example', 'works', :name, :hash, :spec, :hash, :at, :at)"
            )
            tx.execute(text(insert), values)


def update(**more):
    return a_trigger("one", operation=Operation.UPDATE, **more)


def ids_of(db, plan_id):
    found = [read_json(one["slice_spec"])["bounds"]["id"] for one in slices_of(db, plan_id)]
    return [name for bounds in found for name in bounds["ids"]]


@pytest.fixture
def library(db):
    """A planner over the library, and the fingerprint its records were made by."""
    planner = a_planner(db, a_library())
    made_by = planner.compile(a_trigger(start=day(0))).compiled.fingerprint
    planner.plan(a_trigger(start=day(0), end=day(1)))
    with db.read() as tx:
        assert find_spec(tx, made_by) is not None
    return planner, made_by


def test_an_update_asks_for_a_share_of_the_records_oldest_check_first(db, library):
    planner, made_by = library
    store(db, made_by, *[n % 7 for n in range(70)])

    planned = planner.plan(update())

    # One day is a tenth of the ten days in which every record is asked for: 7 of 70.
    assert planned.queued == 1
    assert ids_of(db, planned.plan_id) == [f"n{n:03d}" for n in range(0, 49, 7)]
    (one,) = slices_of(db, planned.plan_id)
    assert (one["window_from"], one["operation_code"]) == (None, "UPDATE")
    assert read_json(one["slice_spec"])["dimension"] == "ID"
    assert read_json(plan_row(db, planned.plan_id)["slice_params"])["candidates"] == {"STALE": 7}


def test_the_next_update_asks_for_others_while_the_first_is_in_work(db, library):
    planner, made_by = library
    store(db, made_by, *[n % 7 for n in range(70)])
    first = planner.plan(update(at=NOON))
    second = planner.plan(update(at=NOON + DAY))

    assert not set(ids_of(db, first.plan_id)) & set(ids_of(db, second.plan_id))
    assert len(ids_of(db, second.plan_id)) == 7


def test_an_update_without_candidates_plans_nothing_and_says_why(db, library):
    planner, _ = library

    planned = planner.plan(update())

    assert planned.plan_id is None
    assert planned.reason.startswith("there is no candidate: no signal, nothing in quarantine")


def test_signals_come_first_and_are_used_up(db, library):
    planner, made_by = library
    store(db, made_by, 18, 18, 18)
    with db.write() as tx:
        add_signals(
            tx, "example", "works", ["n002", "new one"], Signal.RETRACTION, "ann", "withdrawn", NOON
        )

    planned = planner.plan(update())
    again = planner.plan(update(at=NOON + DAY))

    assert {"n002", "new one"} <= set(ids_of(db, planned.plan_id))
    left = rows(db, "SELECT status_code FROM ing_signal")
    assert {row["status_code"] for row in left} == {"CONSUMED"}
    assert "new one" not in (ids_of(db, again.plan_id) if again.plan_id else [])


def test_records_that_another_spec_made_are_asked_for_again(db, library):
    planner, made_by = library
    store(db, made_by, 18, 18, 18)
    changed = an_endpoint(
        usage="DETAIL",
        operations=["UPDATE"],
        fields={"name": "$.title"},
    )
    pack = a_library()
    own = pack.endpoints["one"].model_copy(
        update={"fields": a_pack(works=changed).endpoints["works"].fields}
    )
    from patra_ingest.registry.apply import apply_pack

    with db.write() as tx:
        new = pack.model_copy(update={"endpoints": {**pack.endpoints, "one": own}})
        apply_pack(tx, new, day(2))

    planned = planner.plan(update())

    assert read_json(plan_row(db, planned.plan_id)["slice_params"])["candidates"] == {"SHAPE": 3}


def test_a_window_of_an_update_names_what_was_checked_in_it(db, library):
    planner, made_by = library
    store(db, made_by, *range(10))

    planned = planner.plan(update(start=day(3), end=day(6)))

    assert ids_of(db, planned.plan_id) == ["n003", "n004", "n005"]


def test_buckets_cut_the_ids_by_hash(db):
    planner = a_planner(db, a_library(buckets=4, refresh_days=1))
    planner.plan(a_trigger(start=day(0), end=day(1)))
    made_by = rows(db, "SELECT spec_fingerprint FROM ing_plan")[0]["spec_fingerprint"]
    store(db, made_by, *[0] * 100)

    planned = planner.plan(update())

    bounds = [read_json(s["slice_spec"])["bounds"]["id"] for s in slices_of(db, planned.plan_id)]
    assert {one["hashBucket"] for one in bounds} == {0, 1, 2, 3}
    assert sorted(ids_of(db, planned.plan_id)) == [f"n{n:03d}" for n in range(100)]
    assert len(tasks_of(db, planned.plan_id)) == len(bounds)


def test_backfill_ends_where_harvest_has_come_to_and_never_moves_its_cursor(db):
    planner = a_planner(db)
    planner.plan(a_trigger(start=day(10), end=day(12)))
    finish(db, 1, 2)
    from patra_ingest.cursor.advance import CursorManager
    from patra_ingest_tests.fakes import FakeClock

    cursors = CursorManager(db, FakeClock(NOON))
    cursors.catch_up()

    past = planner.plan(a_trigger(start=day(8), end=day(15), operation=Operation.BACKFILL))
    finish(db, past.plan_id, 9)
    cursors.catch_up()

    assert windows_of(db, past.plan_id) == [(day(9), day(10)), (day(8), day(9))], (
        "newest first, and not what HARVEST has"
    )
    found = rows(db, "SELECT operation_code, namespace_key, normalized_instant FROM ing_cursor")
    reached = {row["operation_code"]: read_instant(row["normalized_instant"]) for row in found}
    assert reached == {"HARVEST": day(12), "BACKFILL": day(8)}
    assert len({row["namespace_key"] for row in found}) == 2
    cuts = read_json(plan_row(db, past.plan_id)["record_remarks"])[0]["data"]["cuts"]
    assert any("HARVEST stands there" in cut for cut in cuts)


def test_a_campaign_is_an_intended_second_run(db):
    planner = a_planner(db)
    first = planner.plan(a_trigger(start=day(0), end=day(3)))
    finish(db, first.plan_id, 3)
    again = planner.plan(a_trigger(start=day(0), end=day(3), campaign="after the outage"))
    repeated = planner.plan(a_trigger(start=day(0), end=day(3), campaign="after the outage"))

    assert (again.queued, repeated.plan_id, repeated.queued) == (3, again.plan_id, 0)
    keys = [row["idempotent_key"] for row in rows(db, "SELECT idempotent_key FROM ing_task")]
    assert len(keys) == len(set(keys)) == 6
    assert plan_row(db, again.plan_id)["namespace_scope_code"] == "CUSTOM"


def test_every_partition_is_a_plan_in_a_namespace_of_its_own(db):
    query = {"from": "${window.from}", "to": "${window.last}", "set": "${partition.set}"}
    works = an_endpoint(
        request={"query": {**query, "offset": "${page.offset}"}},
        partitions={"maths": {"set": "m"}, "physics": {"set": "p"}},
    )
    planner = a_planner(db, a_pack(works=works))

    planned = planner.plan(a_trigger(start=day(0), end=day(2)))
    one = planner.plan(a_trigger(start=day(2), end=day(4), partition="maths"))

    assert [part.partition for part in planned.parts] == ["maths", "physics"]
    assert (planned.slices, one.slices) == (4, 2)
    namespaces = [plan_row(db, plan)["namespace_key"] for plan in (*planned.plan_ids, one.plan_id)]
    assert namespaces[0] == namespaces[2] != namespaces[1]
    marks = [read_json(s["slice_spec"])["partition"] for s in slices_of(db, one.plan_id)]
    assert marks == ["maths", "maths"]
