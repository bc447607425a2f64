"""kill -9, SIGTERM, a second worker, a worker that slept too long: real processes, real signals."""

import signal
import time
from collections import Counter

import pytest

from patra_ingest.errors import LedgerBusy
from patra_ingest.ledger.db import open_db
from patra_ingest.planner.trigger import Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest_tests.builders import day
from patra_ingest_tests.fakes import upstream, wait_until
from patra_ingest_tests.pipeline.crashes import library, library_pack, place_of, traces
from patra_ingest_tests.pipeline.harness import (
    asked_again,
    end_state,
    end_well,
    records_of,
    sandbox_trigger,
    truth_of,
    wait_for_pages,
)
from patra_ingest_tests.pipeline.laws import messages_of, require_one_walk, require_sums

LANES = 2
SHORT_LEASE = {"PATRA_LEASE_SECONDS": "3"}


@pytest.fixture
def planned(home, slow_box, in_days):
    """The whole world in the queue: six slices, more than fifty pages."""
    home.plan(sandbox_trigger(slow_box, in_days(0), in_days(6)))
    return home


def test_a_killed_worker_costs_at_most_the_page_in_flight(planned, slow_box, undisturbed):
    with planned.worker(LANES, **SHORT_LEASE) as worker:
        wait_for_pages(planned, 12)
        worker.kill()
        worker.wait()
        at_death = planned.pages_done()

    assert at_death < len(undisturbed.pages)
    with planned.worker(LANES, **SHORT_LEASE) as worker:
        end_well(worker)

    assert end_state(planned) == undisturbed
    assert asked_again(slow_box) <= LANES
    runs = counted(planned, "ing_task_run")
    assert runs["SUCCEEDED"] == 6
    assert 1 <= runs["FAILED"] <= LANES
    told = messages_of(planned, "sandbox")
    assert len(told) == len(undisturbed.records), "each record is told of once"
    require_sums(planned, "sandbox")
    require_one_walk(planned)


def slow_library(asked):
    time.sleep(0.1)
    return library(asked)


def test_a_worker_killed_amid_the_details_leaves_no_trace(home):
    with upstream(slow_library) as source:
        for name in ("calm", "killed"):
            home.apply(library_pack(source.url, name))
        home.plan(Trigger("calm", "found", asked=Asked(day(0), day(1))))
        home.work()
        source.asked.clear()
        home.plan(Trigger("killed", "found", asked=Asked(day(0), day(1))))
        before = home.pages_done()
        with home.worker(**SHORT_LEASE) as worker:
            wait_for_pages(home, before + 2)
            worker.kill()
            worker.wait()
        assert home.pages_done() < 2 * before
        with home.worker(**SHORT_LEASE) as worker:
            end_well(worker)

        places = Counter(place_of(asked) for asked in source.asked)
    assert traces(home, "killed") == traces(home, "calm")
    assert sum(times > 1 for place, times in places.items() if place != ("fetch", "2")) <= 1


def test_two_workers_share_the_work_and_fetch_every_page_once(planned, slow_box, undisturbed):
    with planned.worker() as one, planned.worker() as other:
        end_well(one)
        end_well(other)

    assert end_state(planned) == undisturbed
    assert slow_box.stats()["pages"]["repeated"] == {}
    runs = planned.rows("SELECT task_id, lease_owner FROM ing_task_run")
    assert Counter(task for task, _ in runs) == Counter(set(task for task, _ in runs))
    assert len({owner.partition("/")[0] for _, owner in runs}) == 2


def test_a_worker_told_to_stop_ends_its_batch_and_gives_its_tasks_back(
    planned, slow_box, undisturbed
):
    with planned.worker(LANES) as worker:
        wait_for_pages(planned, 8)
        worker.send_signal(signal.SIGTERM)
        said = end_well(worker)

    assert "STOPPED" in said
    queue = planned.rows("SELECT status_code, scheduled_at, lease_owner, retry_count FROM ing_task")
    assert {row.status_code for row in queue} <= {"QUEUED", "SUCCEEDED"}
    assert all(row[1:] == (None, None, 0) for row in queue if row.status_code == "QUEUED")
    assert 1 <= counted(planned, "ing_task_run")["CANCELLED"] <= LANES
    assert planned.one("SELECT COUNT(*) FROM ing_rate_bucket WHERE holders IS NOT NULL") == 0

    with planned.worker(LANES) as worker:
        end_well(worker)

    assert end_state(planned) == undisturbed
    assert slow_box.stats()["pages"]["repeated"] == {}


def test_a_worker_that_slept_through_its_lease_writes_nothing_more(home, slow_box, in_days):
    home.plan(sandbox_trigger(slow_box, in_days(0), in_days(1)))
    with home.worker(PATRA_LEASE_SECONDS="1") as sleeper:
        wait_for_pages(home, 3)
        freeze_outside_a_transaction(home, sleeper)
        with home.worker() as other:
            wait_until(lambda: counted(home, "ing_task_run")["FAILED"])
            sleeper.send_signal(signal.SIGCONT)
            end_well(other)
            assert "1 LEASE_LOST" in end_well(sleeper)

    ended = end_state(home)
    assert records_of(home, "works") == truth_of(slow_box, in_days(0), in_days(1))
    assert ended.fates["inserted"] == len(ended.records)
    assert ended.cursor == in_days(1)
    assert asked_again(slow_box) <= 1
    ((error,),) = home.rows("SELECT error FROM ing_task_run WHERE status_code = 'FAILED'")
    assert error.startswith("LEASE_LOST")
    assert counted(home, "ing_task_run_batch")["FAILED"] <= 1


def counted(home, table):
    return Counter(status for (status,) in home.rows(f"SELECT status_code FROM {table}"))


def freeze_outside_a_transaction(home, process):
    """Stop a process where it holds no lock of the ledger: whoever takes over must not wait."""
    while True:
        process.send_signal(signal.SIGSTOP)
        impatient = open_db(home.url, timeout_seconds=0.2)
        try:
            with impatient.write() as tx:
                tx.exec_driver_sql("UPDATE ing_task SET updated_at = updated_at")
                tx.exec_driver_sql("UPDATE ing_rate_bucket SET updated_at = updated_at")
            return
        except LedgerBusy:
            process.send_signal(signal.SIGCONT)
            time.sleep(0.03)  # let it end that transaction
        finally:
            impatient.close()
