"""A worker with a deadline: no new task, every lane ends after its batch, the next one goes on."""

from datetime import timedelta

from patra_ingest.clock import Stop
from patra_ingest.executor.work import Order
from patra_ingest_tests.fakes import FakeClock
from patra_ingest_tests.pipeline.harness import end_state, sandbox_trigger

MINUTES = timedelta(minutes=1)


def work_for(home, minutes, lanes=1, until_empty=False):
    """Work by a clock on which every batch takes ten minutes."""
    clock, stop = FakeClock(), Stop()
    stop.give(clock, minutes * MINUTES)
    with home.live() as live:
        order = Order(lanes, until_empty)
        return live.worker().work(order, stop, lambda _: clock.sleep(600))


def test_the_deadline_ends_a_task_after_its_batch_and_nothing_is_asked_for_twice(
    home, box, in_days, undisturbed
):
    home.plan(sandbox_trigger(box, in_days(0), in_days(6)))

    drained = work_for(home, 30, until_empty=True)

    assert drained.is_late
    assert (drained.tasks, home.pages_done()) == ({"STOPPED": 1}, 3)
    (run,) = home.rows("SELECT status_code, error FROM ing_task_run")
    assert run.status_code == "PARTIAL"
    assert run.error == "DEADLINE: the time that the worker was given is over"
    tasks = home.rows("SELECT status_code, scheduled_at, lease_owner, retry_count FROM ing_task")
    assert {tuple(task) for task in tasks} == {("QUEUED", None, None, 0)}
    assert {row[0] for row in home.rows("SELECT status_code FROM ing_plan_slice")} == {"READY"}

    home.work(lanes=2)
    assert end_state(home) == undisturbed
    assert box.stats()["pages"]["repeated"] == {}


def test_every_lane_ends_and_none_takes_another_task(home, box, in_days):
    home.plan(sandbox_trigger(box, in_days(0), in_days(6)))

    drained = work_for(home, 10, lanes=3)

    assert drained.is_late
    assert set(drained.tasks) == {"STOPPED"}
    assert 1 <= drained.tasks.total() <= 3
    assert home.pages_done() <= 3
    assert home.one("SELECT COUNT(*) FROM ing_task WHERE lease_owner IS NOT NULL") == 0


def test_work_that_is_done_in_time_knows_no_deadline(home, box, in_days):
    home.plan(sandbox_trigger(box, in_days(0), in_days(1)))

    drained = work_for(home, 100_000, until_empty=True)

    assert (drained.is_late, drained.tasks) == (False, {"SUCCEEDED": 1})
