import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.model.codes import BatchStatus, PlanStatus, RunStatus, SliceStatus, TaskStatus
from patra_ingest.model.lifecycle import (
    MACHINES,
    ensure_transition,
    is_final,
    mermaid,
    next_statuses,
)

KINDS = [PlanStatus, SliceStatus, TaskStatus, RunStatus, BatchStatus]
kinds = st.sampled_from(KINDS)

# Final statuses, and which of them may be left on request: the promise, written apart from the
# table that keeps it.
FINALS = {
    PlanStatus: {"FAILED", "COMPLETED", "CANCELLED"},
    SliceStatus: {"SUCCEEDED", "FAILED", "PARTIAL", "CANCELLED"},
    TaskStatus: {"SUCCEEDED", "FAILED", "PARTIAL", "CANCELLED"},
    RunStatus: {"SUCCEEDED", "FAILED", "PARTIAL", "CANCELLED"},
    BatchStatus: {"SUCCEEDED", "FAILED", "SKIPPED"},
}
REOPENED = {
    PlanStatus: {"FAILED": {"SLICING", "READY"}},
    SliceStatus: {"FAILED": {"READY"}},
    TaskStatus: {"FAILED": {"QUEUED"}},
    RunStatus: {},
    BatchStatus: {"FAILED": {"RUNNING"}},
}


def reachable(kind, start):
    seen, ahead = set(), {start}
    while ahead:
        seen |= ahead
        ahead = {new for old in ahead for new in MACHINES[kind].moves[old]} - seen
    return seen


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_speaks_of_every_status_and_of_no_other_kind(kind):
    machine = MACHINES[kind]
    named = {*machine.moves, *machine.reopens, machine.start}.union(
        *machine.moves.values(), *machine.reopens.values()
    )

    assert set(machine.moves) == set(kind)
    assert {type(status) for status in named} == {kind}
    assert all({type(s) for s in moves} <= {kind} for moves in machine.moves.values())


@pytest.mark.parametrize("kind", KINDS)
def test_every_status_can_be_reached_without_anyone_asking(kind):
    assert reachable(kind, MACHINES[kind].start) == set(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_every_status_leads_to_an_end(kind):
    assert all(any(is_final(end) for end in reachable(kind, status)) for status in kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_final_status_is_left_only_on_request(kind):
    finals = {status for status in kind if is_final(status)}

    assert finals == FINALS[kind]
    assert {s: next_statuses(s) for s in finals if next_statuses(s)} == REOPENED[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_no_status_moves_to_itself(kind):
    assert not [status for status in kind if status in next_statuses(status)]


@given(kinds.flatmap(lambda kind: st.lists(st.sampled_from(list(kind)), min_size=1, max_size=8)))
def test_no_walk_leaves_the_table(wished):
    """Try any sequence of statuses; what is refused does not happen."""
    machine = MACHINES[type(wished[0])]
    status = machine.start
    for new in wished:
        allowed = machine.moves[status] | machine.reopens.get(status, frozenset())
        if new in allowed:
            status = ensure_transition(status, new)
            assert status is new
        else:
            with pytest.raises(ValueError, match="cannot become"):
                ensure_transition(status, new)


@given(kinds, kinds, st.data())
def test_no_status_becomes_a_status_of_another_thing(kind, other, data):
    old, new = data.draw(st.sampled_from(list(kind))), data.draw(st.sampled_from(list(other)))

    if kind is not other:
        with pytest.raises(ValueError, match="different things"):
            ensure_transition(old, new)


@pytest.mark.parametrize("kind", KINDS)
def test_the_drawing_shows_every_way_and_no_other(kind):
    lines = [line.strip() for line in mermaid(kind).splitlines()[1:]]
    drawn = {tuple(line.split(" : ")[0].split(" --> ")) for line in lines}

    ways = {(str(old), str(new)) for old in kind for new in next_statuses(old)}
    ends = {(str(status), "[*]") for status in kind if is_final(status)}
    assert drawn == ways | ends | {("[*]", str(MACHINES[kind].start))}
