"""What the upkeep and the sensors ask of the ledger, on both engines."""

from datetime import timedelta

import pytest
from sqlalchemy import text

from patra_ingest.ledger.holds import place_hold
from patra_ingest.ledger.signals import add_signals
from patra_ingest.ledger.silent import Freed, free_silent
from patra_ingest.ledger.upkeep import close_orphans, drop_quota_windows, list_kept_bodies
from patra_ingest.model.codes import Operation, Signal
from patra_ingest.planner.trigger import Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.registry.cadences import list_cadences
from patra_ingest.registry.pack import SchedulePart
from patra_ingest.views.alerts import list_alerts, list_signalled
from patra_ingest.views.health import Thresholds
from patra_ingest_tests.builders import NOON, START, a_pack, day
from patra_ingest_tests.ledger.planning import a_planner, rows

DAY = timedelta(days=1)
OLD, YOUNG = NOON - 40 * DAY, NOON - DAY


def key(letter):
    """Return the key of a body; of capital letters one from a store with two levels of folders."""
    small = letter.lower()
    return f"sha256/{small * 2}/{f'{small * 2}/' * letter.isupper()}{small * 64}.zst"


def written(instant):
    return f"{instant:%Y-%m-%d %H:%M:%S}.000000"


def test_silent_workers_give_back_and_runs_that_nobody_holds_end(db):
    a_planner(db).plan(Trigger("example", "works", asked=Asked(day(0), day(2))))
    first, second = (row["id"] for row in rows(db, "SELECT id FROM ing_task ORDER BY id"))
    run = (
        "INSERT INTO ing_task_run (task_id, attempt_no, provenance_code, endpoint_name,"
        " operation_code, status_code, updated_at) VALUES"
        " (:task, 1, 'example', 'works', 'HARVEST', 'RUNNING', :at)"
    )
    held = "status_code = 'EXECUTING', lease_owner = 'dead/1', leased_until = :at"
    with db.write() as tx:
        tx.execute(
            text(f"UPDATE ing_task SET {held} WHERE id = :id"), {"id": first, "at": written(OLD)}
        )
        tx.execute(text("UPDATE ing_plan_slice SET status_code = 'EXECUTING'"))
        for task in (first, second):
            tx.execute(text(run), {"task": task, "at": written(OLD)})

        assert (free_silent(tx, NOON), close_orphans(tx, NOON)) == (Freed((first,)), 1)
        assert (free_silent(tx, NOON), close_orphans(tx, NOON)) == (Freed(), 0)

    assert {row["status_code"] for row in rows(db, "SELECT * FROM ing_task")} == {"QUEUED"}
    assert {row["status_code"] for row in rows(db, "SELECT * FROM ing_task_run")} == {"FAILED"}


def test_only_quota_windows_that_are_over_and_owe_nothing_are_dropped(db):
    add = (
        "INSERT INTO ing_quota_window (rate_key, window_from, window_to, limit_amount,"
        " reserved_amount) VALUES (:key, :start, :end, 10, :reserved)"
    )
    ends = {"old": OLD, "owed": OLD, "young": YOUNG, "lock": START.replace(year=1970)}
    with db.write() as tx:
        for name, end in ends.items():
            times = {"start": written(end - DAY), "end": written(end)}
            if name == "lock":
                times = {"start": "1970-01-02 00:00:00.000000", "end": "1970-01-03 00:00:00.000000"}
            tx.execute(text(add), {"key": name, "reserved": int(name == "owed"), **times})

        assert drop_quota_windows(tx, NOON - 35 * DAY) == 1

    left = {row["rate_key"] for row in rows(db, "SELECT rate_key FROM ing_quota_window")}
    assert left == {"owed", "young", "lock"}


RETENTIONS = {
    "usual": (30 * DAY, {}, {"B", "c"}),
    "longer": (50 * DAY, {}, {"a", "B", "c"}),
    "for ever": (None, {}, {"a", "B", "c"}),
    "a source of its own": (30 * DAY, {"example": 50 * DAY}, {"a", "B", "c"}),
    "a shorter one": (30 * DAY, {"example": DAY / 2}, set()),
    "another source": (30 * DAY, {"other": None}, {"B", "c"}),
}


@pytest.mark.parametrize(("usual", "own", "kept"), RETENTIONS.values(), ids=RETENTIONS)
def test_a_body_is_kept_while_a_batch_that_speaks_of_it_is_young(db, usual, own, kept):
    add = (
        "INSERT INTO ing_task_run_batch (run_id, batch_no, provenance_code, endpoint_name,"
        " operation_code, before_token_hash, idempotent_key, storage_key, response, updated_at)"
        " VALUES (1, :no, 'example', 'works', 'HARVEST', :hash, :hash, :key, :response, :at)"
    )
    with db.write() as tx:
        for no, (at, first, more) in enumerate([(OLD, "a", "a"), (YOUNG, "B", "c")], start=1):
            values = {"no": no, "hash": str(no) * 64, "key": key(first), "at": written(at)}
            response = f'{{"more": [{{"body": "{key(more)}"}}]}}'
            tx.execute(text(add), {**values, "response": response})
    with db.read() as tx:
        wanted = {key(letter) for letter in "aBcd"}
        found = list_kept_bodies(tx, wanted, NOON, usual, own)

    assert found == {key(letter) for letter in kept}


def test_alerts_and_signals_are_found_on_both_engines(db):
    with db.write() as tx:
        place_hold(tx, "example", "works", "L4", "401", "worker", NOON)
        add_signals(tx, "example", "works", ["1", "2"], Signal.MERGE, "ann", None, NOON)
        tx.execute(
            text(
                "INSERT INTO ing_lease_turn (provenance_code, endpoint_name, operation_code)"
                " VALUES ('example', 'works', 'HARVEST')"
            )
        )
    with db.read() as tx:
        (alert,) = list_alerts(tx, NOON, Thresholds())
        assert list_signalled(tx) == {"example": 2}

    assert (alert.key, alert.level) == ("hold example/works", "ERROR")


def test_the_registry_says_how_often_an_endpoint_is_asked(db):
    pack = a_pack()
    works = pack.endpoints["works"]
    cadence = SchedulePart(cron="0 7 * * *", enabled=False)
    own = works.model_copy(update={"schedule": {Operation.HARVEST: cadence}})
    a_planner(db, pack.model_copy(update={"endpoints": {**pack.endpoints, "works": own}}))

    with db.read() as tx:
        assert list_cadences(tx, Operation.HARVEST, NOON) == {("example", "works"): cadence}
        assert list_cadences(tx, Operation.UPDATE, NOON) == {}
        assert list_cadences(tx, Operation.HARVEST, START - DAY) == {}
