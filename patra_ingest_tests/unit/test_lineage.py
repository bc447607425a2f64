import pytest

from patra_ingest.model.lineage import (
    BatchId,
    Lineage,
    PlanId,
    RunId,
    ScheduleInstanceId,
    SliceId,
    TaskId,
    correlation_id,
)

WHOLE = Lineage(ScheduleInstanceId(1), PlanId(2), SliceId(3), TaskId(4), RunId(5), BatchId(6))


def test_a_lineage_fills_the_six_columns_in_order():
    assert list(WHOLE.columns().items()) == [
        ("schedule_instance_id", 1),
        ("plan_id", 2),
        ("slice_id", 3),
        ("task_id", 4),
        ("run_id", 5),
        ("batch_id", 6),
    ]


def test_what_is_not_known_yet_is_a_null_column():
    assert Lineage(ScheduleInstanceId(1)).columns() == dict.fromkeys(WHOLE.columns()) | {
        "schedule_instance_id": 1
    }


@pytest.mark.parametrize(
    ("known", "missing"),
    [
        ({"plan_id": 1}, "schedule_instance_id"),
        ({"schedule_instance_id": 1, "slice_id": 1}, "plan_id"),
        ({"schedule_instance_id": 1, "plan_id": 1, "slice_id": 1, "batch_id": 0}, "run_id"),
    ],
)
def test_a_later_id_without_the_one_above_it_is_refused(known, missing):
    with pytest.raises(ValueError, match=missing):
        Lineage(**known)


def test_people_read_a_lineage_from_the_trigger_down():
    assert str(WHOLE) == "schedule 1 › plan 2 › slice 3 › task 4 › run 5 › batch 6"
    assert str(Lineage(ScheduleInstanceId(1), PlanId(2))) == "schedule 1 › plan 2"
    assert str(Lineage()) == "no lineage"


def test_a_request_carries_its_run_and_batch():
    assert correlation_id(RunId(12), 3) == "ing-12-3"
