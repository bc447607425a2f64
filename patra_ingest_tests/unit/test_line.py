"""The lanes of one process that want the same key, as real threads."""

import threading
from contextlib import suppress

import pytest

from patra_ingest.rate.line import Line
from patra_ingest_tests.fakes import wait_until


class Tired(Exception):
    """A caller that waits no longer."""


def patient():
    """Never give up."""


def standing(line, name, served, go_on, give_up=patient):
    """Send a thread into the line and return when it stands there."""
    before = len(line)

    def stand():
        with suppress(Tired), line.turn(give_up):
            served.append(name)
            go_on.wait(30)

    thread = threading.Thread(target=stand, daemon=True)
    thread.start()
    wait_until(lambda: len(line) > before)
    return thread


def test_first_come_first_served():
    line, served, go_on = Line(), [], threading.Event()
    threads = [standing(line, name, served, go_on) for name in range(20)]
    assert served == [0]

    go_on.set()
    for thread in threads:
        thread.join(30)

    assert served == list(range(20))
    assert len(line) == 0


def test_one_at_a_time():
    line, inside, most = Line(), [], []

    def enter(number):
        for _ in range(50):
            with line.turn(patient):
                inside.append(number)
                most.append(len(inside))
                inside.remove(number)

    threads = [threading.Thread(target=enter, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert (len(most), set(most), len(line)) == (400, {1}, 0)


def test_a_waiter_that_gives_up_leaves_the_line_and_the_others_go_on():
    line, served, go_on, tired = Line(), [], threading.Event(), threading.Event()

    def give_up():
        if tired.is_set():
            raise Tired

    standing(line, "first", served, go_on)
    quitter = standing(line, "quitter", served, go_on, give_up)
    last = standing(line, "last", served, go_on)
    tired.set()
    quitter.join(30)
    assert (served, len(line)) == (["first"], 2)

    go_on.set()
    last.join(30)
    assert served == ["first", "last"]


def test_whoever_fails_in_his_turn_lets_the_next_one_in():
    line, served, go_on = Line(), [], threading.Event()
    go_on.set()
    waiters = []

    def fail():
        with line.turn(patient):
            waiters.append(standing(line, "next", served, go_on))
            raise Tired

    with pytest.raises(Tired):
        fail()

    waiters[0].join(30)
    assert served == ["next"]


def test_nobody_is_asked_to_give_up_who_need_not_wait():
    def give_up():
        raise Tired

    line = Line()
    with line.turn(give_up):
        assert len(line) == 1
