"""`patra hold`, `resume` and `cancel`: what they say, what they leave, and what they refuse."""

import json
import re
import sqlite3

import pytest

PLAN = ("plan", "sandbox", "--endpoint=works", "--from=2026-01-01", "--to=2026-01-04")


def ok(done):
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stderr == ""
    return done.stdout


def refused(done):
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert re.fullmatch(r"patra: [^\n]+\.\n", done.stderr), done.stderr
    return done.stderr


def ask(home, query):
    with sqlite3.connect(home / "ledger.db") as ledger:
        found = ledger.execute(query).fetchall()
    ledger.close()
    return found


def remarks(home, table):
    found = ask(home, f"SELECT record_remarks FROM {table} ORDER BY id")
    return [json.loads(value or "[]") for (value,) in found]


@pytest.fixture
def planned(patra, home):
    """A home with plan 1: three slices, three tasks."""
    ok(patra(*PLAN, "--set=request.base_url=http://127.0.0.1:9"))
    return home


def test_a_hold_and_its_end_are_told_and_remembered(patra, home):
    held = ok(patra("hold", "sandbox/works", "--reason=lunch", USER="ada", LOGNAME="ada"))
    again = ok(patra("hold", "sandbox/works", "--reason=tea", USER="bob", LOGNAME="bob"))
    lifted = ok(patra("resume", "sandbox/works", "--reason=fed", USER="eve", LOGNAME="eve"))

    assert held.startswith("sandbox/works is held: nothing more of it is planned or leased")
    assert "`patra resume sandbox/works` lets it go on." in held
    assert re.match(r"sandbox/works was held already \(by ada since [^)]*: lunch\)", again)
    assert lifted.startswith("sandbox/works: 1 holds lifted. Its queued tasks are leased again")
    (said,) = remarks(home, "ing_hold")
    assert [(one["type"], one["by"], one["note"]) for one in said] == [
        ("hold", "ada", "lunch"),
        ("hold", "bob", "tea"),
        ("resume", "eve", "fed"),
    ]


def test_an_endpoint_of_a_held_source_is_told_what_still_stops_it(patra, home):
    ok(patra("hold", "sandbox", "--reason=night"))

    alone = ok(patra("resume", "sandbox/works"))
    ok(patra("hold", "sandbox/works"))
    own = ok(patra("resume", "sandbox/works"))
    assert alone.startswith("sandbox/works was not held by itself, but sandbox is (by ")
    assert own.startswith("sandbox/works: 1 holds lifted, but sandbox is (by ")
    assert own.endswith(": night). `patra resume sandbox` lifts that.\n")
    assert ok(patra("resume", "sandbox")).startswith("sandbox: 1 holds lifted. ")
    assert ok(patra("resume", "sandbox")) == "sandbox was not held.\n"


def test_a_cancelled_plan_says_what_ended_and_what_happens_next(patra, planned):
    ok(patra("cancel", "task", 2))
    said = ok(patra("cancel", "plan", 1, "--reason=wrong window", USER="ada", LOGNAME="ada"))

    assert said == (
        "Plan 1 cancelled: 2 tasks, 2 slices; 1 was final already. A worker still on it writes"
        " nothing more. Its window is a hole again: the next trigger that covers it plans it,"
        " unless the source is held.\n"
    )
    assert ask(planned, "SELECT DISTINCT status_code FROM ing_task") == [("CANCELLED",)]
    last = remarks(planned, "ing_plan")[0][-1]
    assert (last["by"], last["note"]) == ("ada", "wrong window")
    again = ok(patra(*PLAN, "--set=request.base_url=http://127.0.0.1:9"))
    assert again.startswith("Plan 2: ")


@pytest.mark.parametrize(
    ("thing", "said"),
    [("task", "Task 3 cancelled with its slice. "), ("slice", "Slice 3 cancelled with its task. ")],
)
def test_a_task_and_its_slice_are_cancelled_by_either_name(patra, planned, thing, said):
    assert ok(patra("cancel", thing, 3)).startswith(said)

    assert ask(planned, "SELECT id FROM ing_task WHERE status_code = 'CANCELLED'") == [(3,)]
    assert ask(planned, "SELECT id FROM ing_plan_slice WHERE status_code = 'CANCELLED'") == [(3,)]
    assert remarks(planned, "ing_task")[2][-1]["note"] == "cancelled by a person"


def test_a_script_gets_the_numbers(patra, planned):
    assert json.loads(ok(patra("cancel", "plan", 1, "--json"))) == {
        "plans": 1,
        "slices": 3,
        "tasks": 3,
        "already_final": 0,
    }


@pytest.mark.parametrize("thing", ["plan", "slice", "task"])
def test_what_is_final_or_unknown_costs_one_sentence(patra, planned, thing):
    ok(patra("cancel", thing, 1))

    twice = refused(patra("cancel", thing, 1))
    nobody = refused(patra("cancel", thing, 2**63 - 1))
    assert f"{thing.capitalize()} 1 is CANCELLED already; nothing was cancelled." in twice
    assert f"There is no {thing} 9223372036854775807." in nobody


@pytest.mark.parametrize(
    "arguments",
    [("run", 1), ("task", "seven"), ("task", 0), ("task", -1), ("task", 2**63), ("task",), ()],
    ids=str,
)
def test_what_cannot_be_meant_is_wrong_usage(patra, home, arguments):
    done = patra("cancel", *arguments)

    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_reason_that_is_no_text_is_kept_as_well_as_can_be(patra, planned):
    ok(patra("cancel", "task", 1, "--reason=caf\udce9 'n\" :x 图"))

    assert remarks(planned, "ing_task")[0][-1]["note"] == "caf? 'n\" :x 图"
