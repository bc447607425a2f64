"""How often and how slowly the same thing is asked again."""

import gc
import random
import threading
import weakref
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.clock import SystemClock
from patra_ingest.errors import (
    CredentialRefused,
    EndpointHalted,
    PageTooBig,
    RequestRejected,
    SliceMustRestart,
    Throttled,
    TransientError,
    Unreachable,
)
from patra_ingest.executor.patience import Tried, delay, patience
from patra_ingest.model.codes import BackoffPolicyType
from patra_ingest_tests.builders import NOON, a_spec
from patra_ingest_tests.fakes import FakeClock, wait_until

SPEC = a_spec().retry
MINUTE = timedelta(minutes=1)


def a_retry(**values):
    for name in ("initial_delay", "max_delay"):
        if name in values:
            values[name] = timedelta(seconds=values[name])
    return SPEC.model_copy(update=values)


class Asked:
    """A question that is answered by the errors in turn, then well; knows when it was asked."""

    def __init__(self, clock, *errors):
        self.clock, self.errors, self.at = clock, list(errors), []

    def __call__(self, answer="fine"):
        self.at.append((self.clock.now() - NOON).total_seconds())
        if self.errors:
            raise self.errors.pop(0)
        return answer


def run(retry, *errors, longest=MINUTE, stop=None):
    """Ask until it is over; return the question, what was listed and the error, if any."""
    clock, listed = FakeClock(), []
    asked = Asked(clock, *errors)
    calls = patience(
        retry, clock, stop or threading.Event(), listed.append, longest, random.Random(1)
    )
    try:
        assert calls(asked, "good") == "good"
    except (TransientError, EndpointHalted) as error:
        return asked, listed, error
    return asked, listed, None


def lost(number=1):
    return [TransientError(f"lost {n}") for n in range(number)]


def test_a_good_answer_is_asked_for_once():
    asked, listed, error = run(SPEC)

    assert (asked.at, listed, error) == ([0.0], [], None)


def test_a_transient_error_is_asked_again_and_every_failed_try_is_listed():
    retry = a_retry(backoff=BackoffPolicyType.EXP, initial_delay=1)

    asked, listed, error = run(retry, *lost(3))

    assert error is None
    assert asked.at == [0.0, 1.0, 3.0, 7.0]
    assert listed == [
        Tried(1, NOON, "lost 0", "TransientError", 1.0),
        Tried(2, NOON + timedelta(seconds=1), "lost 1", "TransientError", 2.0),
        Tried(3, NOON + timedelta(seconds=3), "lost 2", "TransientError", 4.0),
    ]


@pytest.mark.parametrize("most", [1, 2, 5])
def test_the_tries_are_counted_in_all_and_the_last_error_is_raised(most):
    asked, listed, error = run(a_retry(max_attempts=most), *lost(9))

    assert len(asked.at) == most
    assert [tried.no for tried in listed] == list(range(1, most))
    assert type(error) is TransientError
    assert str(error) == f"lost {most - 1}"


@pytest.mark.parametrize(
    "error",
    [
        RequestRejected("400"),
        EndpointHalted("403"),
        PageTooBig("504"),
        SliceMustRestart("404"),
        ZeroDivisionError("ours"),
        KeyboardInterrupt(),
    ],
)
def test_what_asking_again_cannot_mend_is_raised_at_once(error):
    clock, listed = FakeClock(), []
    asked = Asked(clock, error)

    with pytest.raises(type(error)) as raised:
        patience(SPEC, clock, threading.Event(), listed.append, MINUTE)(asked)

    assert raised.value is error
    assert (asked.at, listed) == ([0.0], [])


def test_a_refused_credential_is_asked_again_for_there_may_be_another():
    asked, listed, error = run(SPEC, CredentialRefused("401"))

    assert error is None
    assert len(asked.at) == 2
    assert listed[0].kind == "CredentialRefused"


@pytest.mark.parametrize(("network_errors", "tries"), [(True, 2), (False, 1)])
def test_the_pack_says_whether_a_lost_connection_is_tried_again(network_errors, tries):
    retry = a_retry(network_errors=network_errors)

    asked, _, _ = run(retry, Unreachable("reset by peer"))
    answered, _, error = run(retry, TransientError("502"))

    assert len(asked.at) == tries
    assert (len(answered.at), error) == (2, None)


@pytest.mark.parametrize(
    ("pause", "longest", "expected"), [(7, 60, [0, 7]), (60, 60, [0, 60]), (61, 60, [0])]
)
def test_a_throttled_question_waits_until_it_may_leave_or_goes_back_to_the_queue(
    pause, longest, expected
):
    error = Throttled(NOON + timedelta(seconds=pause), "429")

    asked, listed, raised = run(SPEC, error, longest=timedelta(seconds=longest))

    assert asked.at == expected
    assert (raised is error) is (len(expected) == 1)
    assert [tried.kind for tried in listed] == ["Throttled"] * (len(expected) - 1)


def test_a_pause_that_is_over_leaves_the_usual_delay():
    retry = a_retry(backoff=BackoffPolicyType.FIXED, initial_delay=2)

    asked, _, _ = run(retry, Throttled(NOON - MINUTE), Throttled(NOON))

    assert asked.at == [0.0, 2.0, 4.0]


def test_once_we_are_to_stop_nothing_is_asked_again():
    stop = threading.Event()
    stop.set()

    asked, listed, error = run(SPEC, *lost(), stop=stop)

    assert (len(asked.at), listed, str(error)) == (1, [], "lost 0")


class WatchedClock(SystemClock):
    """The machine's clock; tells when somebody begins to wait."""

    def __init__(self):
        self.is_waited_for = threading.Event()

    def wait(self, event, seconds):
        self.is_waited_for.set()
        return super().wait(event, seconds)


def test_a_stop_ends_a_pause_and_nothing_is_asked_afterwards():
    stop, clock, listed, raised = threading.Event(), WatchedClock(), [], []
    asked = Asked(clock, *lost(2))
    slow = a_retry(initial_delay=600, max_delay=600)

    def lane():
        try:
            patience(slow, clock, stop, listed.append, MINUTE)(asked)
        except TransientError as error:
            raised.append(str(error))

    thread = threading.Thread(target=lane)
    thread.start()
    assert clock.is_waited_for.wait(10)
    stop.set()
    wait_until(lambda: not thread.is_alive(), seconds=10)

    assert (len(asked.at), listed, raised) == (1, [], ["lost 0"])


def test_one_patience_counts_every_call_from_the_start():
    clock, listed = FakeClock(), []
    calls = patience(SPEC, clock, threading.Event(), listed.append, MINUTE)

    assert calls(Asked(clock, *lost(4))) == "fine"
    assert calls(Asked(clock, *lost(4))) == "fine"
    assert [tried.no for tried in listed] == [1, 2, 3, 4] * 2


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (BackoffPolicyType.FIXED, [2, 2, 2, 2, 2]),
        (BackoffPolicyType.EXP, [2, 6, 18, 20, 20]),
    ],
)
def test_delays_grow_as_the_kind_of_backoff_says(kind, expected):
    retry = a_retry(backoff=kind, initial_delay=2, max_delay=20, multiplier=3.0, jitter=1.0)

    assert [delay(retry, no, 0.0, random.Random()) for no in range(1, 6)] == expected


@given(st.integers(0, 2**32), st.integers(1, 20), st.floats(0, 1), st.floats(1, 10))
def test_jitter_is_a_share_of_the_delay_and_never_above_the_longest(seed, no, jitter, multiplier):
    retry = a_retry(initial_delay=0.1, max_delay=30, multiplier=multiplier, jitter=jitter)
    exact = min(0.1 * multiplier ** (no - 1), 30)

    found = delay(retry, no, 0.0, random.Random(seed))

    assert exact * (1 - jitter) - 1e-9 <= found <= min(exact * (1 + jitter) + 1e-9, 30)


def test_jitter_spreads_to_both_sides():
    retry, dice = a_retry(initial_delay=1), random.Random(7)

    found = [delay(retry, 1, 0.0, dice) for _ in range(500)]

    assert 0.8 <= min(found) < 0.82
    assert 1.18 < max(found) <= 1.2


@given(st.integers(0, 2**32), st.floats(0, 100))
def test_decorrelated_delays_lie_between_the_first_and_a_multiple_of_the_last(seed, before):
    retry = a_retry(backoff=BackoffPolicyType.DECOR_JITTER, initial_delay=1, max_delay=30)

    found = delay(retry, 3, before, random.Random(seed))

    assert 1 <= found <= min(max(before, 1) * 2, 30)


def test_decorrelated_delays_build_on_the_pause_before():
    retry = a_retry(
        backoff=BackoffPolicyType.DECOR_JITTER,
        initial_delay=1,
        max_delay=10_000,
        multiplier=10.0,
        max_attempts=20,
    )

    _, listed, _ = run(retry, *lost(19))

    assert max(tried.waited_seconds for tried in listed) > 10


def test_two_workers_do_not_come_back_at_the_same_moment():
    pauses = []
    for _ in range(2):
        clock, listed = FakeClock(), []
        calls = patience(SPEC, clock, threading.Event(), listed.append, MINUTE)
        calls(Asked(clock, *lost(3)))
        pauses.append([tried.waited_seconds for tried in listed])

    assert pauses[0] != pauses[1]


def test_what_was_seen_while_asking_is_not_kept_afterwards():
    """A page is large, and the collector is kept from looking for what holds itself alive."""

    class Page:
        pass

    page = Page()
    gone = weakref.ref(page)
    seen = [page]
    gc.disable()
    try:
        patience(SPEC, FakeClock(), threading.Event(), seen.append, MINUTE)(lambda: "fine")
        del page, seen

        assert gone() is None
    finally:
        gc.enable()
