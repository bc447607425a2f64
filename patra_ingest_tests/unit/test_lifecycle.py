import pytest

from patra_ingest.model.codes import (
    BatchStatus,
    Operation,
    PlanStatus,
    RunStatus,
    SliceStatus,
    TaskStatus,
)
from patra_ingest.model.lifecycle import ensure_transition, is_final, mermaid


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(PlanStatus.DRAFT, PlanStatus.PARTIAL, id="a full queue stops slicing early"),
        pytest.param(PlanStatus.PARTIAL, PlanStatus.SLICING, id="a partial plan is continued"),
        pytest.param(PlanStatus.READY, PlanStatus.COMPLETED, id="every slice succeeded"),
        pytest.param(PlanStatus.FAILED, PlanStatus.SLICING, id="a failed plan is asked for again"),
        pytest.param(SliceStatus.PENDING, SliceStatus.READY, id="localised and valid"),
        pytest.param(SliceStatus.EXECUTING, SliceStatus.READY, id="a slice follows its task back"),
        pytest.param(SliceStatus.EXECUTING, SliceStatus.CANCELLED, id="replaced, nothing produced"),
        pytest.param(SliceStatus.FAILED, SliceStatus.READY, id="a slice follows a requeued task"),
        pytest.param(TaskStatus.QUEUED, TaskStatus.DISPATCHED, id="leased"),
        pytest.param(TaskStatus.DISPATCHED, TaskStatus.QUEUED, id="the lease ran out unused"),
        pytest.param(TaskStatus.EXECUTING, TaskStatus.QUEUED, id="the lease ran out half-way"),
        pytest.param(TaskStatus.EXECUTING, TaskStatus.PARTIAL, id="the budget is used up"),
        pytest.param(TaskStatus.FAILED, TaskStatus.QUEUED, id="an operator asks for it again"),
        pytest.param(RunStatus.PLANNED, RunStatus.FAILED, id="the worker died before it began"),
        pytest.param(RunStatus.RUNNING, RunStatus.PARTIAL, id="a run ends early"),
        pytest.param(BatchStatus.RUNNING, BatchStatus.SKIPPED, id="nothing to do"),
        pytest.param(BatchStatus.FAILED, BatchStatus.RUNNING, id="a batch is retried in place"),
    ],
)
def test_a_status_may_move(old, new):
    assert ensure_transition(old, new) is new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(PlanStatus.COMPLETED, PlanStatus.SLICING, id="what is complete stays"),
        pytest.param(PlanStatus.CANCELLED, PlanStatus.READY, id="what is cancelled stays"),
        pytest.param(SliceStatus.READY, SliceStatus.SUCCEEDED, id="no success without a task"),
        pytest.param(SliceStatus.PARTIAL, SliceStatus.READY, id="its rest is in other slices"),
        pytest.param(TaskStatus.QUEUED, TaskStatus.EXECUTING, id="no execution without a lease"),
        pytest.param(TaskStatus.QUEUED, TaskStatus.SUCCEEDED, id="no success without execution"),
        pytest.param(TaskStatus.SUCCEEDED, TaskStatus.QUEUED, id="success is not repeated"),
        pytest.param(TaskStatus.CANCELLED, TaskStatus.QUEUED, id="a cancelled task stays so"),
        pytest.param(TaskStatus.EXECUTING, TaskStatus.EXECUTING, id="not to itself"),
        pytest.param(RunStatus.FAILED, RunStatus.RUNNING, id="a new attempt is a new run"),
        pytest.param(BatchStatus.SUCCEEDED, BatchStatus.RUNNING, id="a stored batch is read"),
    ],
)
def test_a_status_may_not_move(old, new):
    with pytest.raises(ValueError, match=f"{type(old).__name__}: {old} cannot become {new}"):
        ensure_transition(old, new)


def test_the_refusal_says_what_would_be_allowed():
    with pytest.raises(ValueError, match="only DISPATCHED, CANCELLED"):
        ensure_transition(TaskStatus.QUEUED, TaskStatus.SUCCEEDED)
    with pytest.raises(ValueError, match="only nothing"):
        ensure_transition(TaskStatus.SUCCEEDED, TaskStatus.FAILED)


def test_statuses_of_different_things_do_not_mix_although_they_are_equal_as_text():
    assert TaskStatus.FAILED == RunStatus.FAILED
    with pytest.raises(ValueError, match="different things"):
        ensure_transition(TaskStatus.EXECUTING, RunStatus.FAILED)


def test_what_is_no_status_has_no_lifecycle():
    with pytest.raises(ValueError, match="Operation has no lifecycle"):
        ensure_transition(Operation.HARVEST, Operation.UPDATE)


def test_a_partial_plan_waits_while_a_partial_task_is_over():
    assert not is_final(PlanStatus.PARTIAL)
    assert is_final(TaskStatus.PARTIAL)


def test_a_lifecycle_can_be_drawn():
    assert mermaid(BatchStatus) == (
        "stateDiagram-v2\n"
        "    [*] --> RUNNING\n"
        "    RUNNING --> SUCCEEDED\n"
        "    RUNNING --> FAILED\n"
        "    RUNNING --> SKIPPED\n"
        "    SUCCEEDED --> [*]\n"
        "    FAILED --> RUNNING : on request\n"
        "    FAILED --> [*]\n"
        "    SKIPPED --> [*]\n"
    )
