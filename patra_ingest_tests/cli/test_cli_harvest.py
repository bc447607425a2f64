"""The commands that work: from an empty folder to records, and what is said about it."""

import json
import signal
import subprocess
import sys
from datetime import UTC, datetime

import pytest
import yaml
from sqlalchemy import create_engine, text

from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.world import World
from patra_ingest_tests.builders import pack_text
from patra_ingest_tests.fakes import upstream, wait_until

WORLD = World(records=120, start=datetime(2026, 1, 1, tzinfo=UTC), days=2, seed=1)
WINDOW = ("--from=2026-01-01", "--to=2026-01-03")


@pytest.fixture(scope="module")
def box():
    with start_sandbox(WORLD) as box:
        yield box


def ok(done):
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stderr == ""
    return done.stdout


def at(box):
    return f"--set=request.base_url={box.url}"


def test_init_can_be_repeated(patra, empty_db_url):
    first = ok(patra("init", PATRA_DB_URL=empty_db_url))
    again = ok(patra("init", PATRA_DB_URL=empty_db_url))

    assert "is ready: 16 migrations applied" in first
    assert again.endswith("is up to date.\n")


def test_a_run_from_an_empty_folder_to_the_proof(patra, box, db_url):
    ledger = {"PATRA_DB_URL": db_url}
    ok(patra("init", **ledger))

    said = ok(patra("run", "sandbox", "--endpoint=works", *WINDOW, at(box), **ledger))

    assert "120 seen: 120 inserted" in said
    assert "2: 2 COMPLETE; 120 promised, 120 landed" in said
    assert "2026-01-03 00:00:00Z" in said
    again = ok(patra("run", "sandbox", "--endpoint=works", *WINDOW, at(box), **ledger))
    assert again.startswith("Nothing to plan: the cursor stands at 2026-01-03T00:00:00.000000Z")
    (state,) = json.loads(ok(patra("status", "--json", **ledger)))
    assert (state["records"], state["tasks"]) == (120, {"SUCCEEDED": 2})
    assert state["cursor"] == "2026-01-03T00:00:00+00:00"
    engine = create_engine(db_url)
    with engine.connect() as tx:
        ids = set(tx.execute(text("SELECT provider_id FROM ing_record")).scalars())
    engine.dispose()
    assert ids == set(box.truth().ids)


def test_plan_and_work_are_a_run_in_two_commands_and_a_held_endpoint_waits(patra, box, home):
    asked = ("plan", "sandbox", "--endpoint=works", *WINDOW, at(box), "--json")
    planned = json.loads(ok(patra(*asked)))
    ok(patra("hold", "sandbox/works", "--reason=lunch"))

    (held,) = json.loads(ok(patra("status", "--json")))
    nothing = json.loads(ok(patra("work", "--until-empty", "--json")))

    assert (planned["plan_id"], planned["slices"]) == (1, 2)
    assert held["held"] == "lunch"
    assert (nothing["tasks"], nothing["batches"], nothing["errors"]) == ({}, {}, [])
    assert (nothing["lowered"], nothing["raised"]) == ({}, {})

    assert "1 holds lifted" in ok(patra("resume", "sandbox/works"))
    drained = json.loads(ok(patra("work", "--until-empty", "--lanes=2", "--json")))

    assert drained["tasks"] == {"SUCCEEDED": 2}
    assert drained["batches"]["inserted"] == 120


def test_a_run_behind_a_full_queue_executes_what_is_before_it(patra, box, home):
    few = "--set=planning.max_queued=3"
    early = ("--from=2025-12-20", "--to=2025-12-28")
    said = ok(patra("plan", "sandbox", "--endpoint=works", *early, at(box), few))
    assert "8 slices, 3 tasks queued; 5 slices wait (BACKPRESSURE" in said

    done = ok(patra("run", "sandbox", "--endpoint=works", *WINDOW, at(box), few))

    assert "120 seen: 120 inserted" in done
    (state,) = json.loads(ok(patra("status", "--json")))
    assert state["tasks"]["SUCCEEDED"] >= 5


def test_a_quota_that_is_used_up_says_when_the_rest_is_due(patra, box, home):
    quota = '--set=rate.quotas=[{"limit": 15, "per": "1d"}]'
    said = patra("run", "sandbox", "--endpoint=works", *WINDOW, at(box), quota)

    assert said.returncode == 1
    assert "task due later, the next" in said.stdout
    assert "queued tasks are due later, the next at" in ok(patra("work", "--until-empty"))


def test_a_run_that_fails_prints_nothing_but_its_json(patra, box, home):
    too_big = ("--set=cap.max=1", "--set=window.min_span=1d")
    said = patra("run", "sandbox", "--endpoint=works", *WINDOW, at(box), *too_big, "--json")

    assert (said.returncode, said.stderr) == (1, "")
    assert json.loads(said.stdout)["errors"]


def test_a_worker_that_drains_the_queue_says_what_failed_for_good(patra, home):
    with upstream(lambda _: (404, {"error": "no such path"})) as source:
        for day in (1, 2):
            window = (f"--from=2026-01-0{day}", f"--to=2026-01-0{day + 1}")
            ok(patra("plan", "sandbox", "--endpoint=works", *window, at(source)))
            form = ["--json"] if day == 2 else []
            said = patra("work", "--until-empty", "--lanes=1", *form)
            assert (said.returncode, said.stderr) == (1, "")
            if form:
                (error,) = json.loads(said.stdout)["errors"]
                assert "404" in error
            else:
                assert "Tasks: 1 FAILED" in said.stdout
                assert "Failed in plan 1: L2" in said.stdout
                assert "404" in said.stdout
                assert "`patra run` fills it" in said.stdout


def test_an_empty_status_says_how_to_begin(patra, home):
    assert "patra run SOURCE --from DATE" in ok(patra("status"))


def test_a_pack_can_be_applied_and_shown(patra, home, tmp_path):
    (tmp_path / "pack.yaml").write_text(yaml.safe_dump(pack_text()))

    assert "example: opened endpoint works" in ok(patra("registry", "apply", "pack.yaml"))
    assert ok(patra("registry", "apply", "pack.yaml")) == "example: nothing to change\n"
    told = json.loads(ok(patra("registry", "show", "example", "--origins", "--json")))
    assert told["spec"]["paging"]["page_size"] == 10
    assert told["origins"]["paging.page_size"].startswith("reg_prov_pagination_cfg #")
    assert "✓ example/works" in ok(patra("registry", "check", "example"))


def test_ctrl_c_ends_a_run_after_its_batch_and_says_what_is_left(home, tmp_path):
    command = [sys.executable, "-c", "from patra_ingest.cli import main; main()", "run", "sandbox"]
    with start_sandbox(WORLD, Behaviour(latency_ms=50)) as slow:
        run = subprocess.Popen(
            [*command, *WINDOW, at(slow), "--set=paging.page_size=2", "--lanes=1"],
            env={"PATRA_HOME": str(home), "PATH": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: slow.stats()["requests"] > 3)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=30)
        stats = slow.stats()

    assert (run.returncode, err) == (1, "")
    assert "`patra work` goes on" in out
    assert "1 READY" in out or "2 READY" in out
    assert stats["pages"]["repeated"] == {}


@pytest.mark.parametrize("arguments", [["--help"], ["status"], ["work", "--until-empty"]])
def test_no_command_but_demo_needs_dagster(home, arguments):
    look = (
        "import sys\nfrom patra_ingest.cli import main\ntry:\n    main()\nfinally:\n"
        "    sys.stderr.write(','.join(m for m in sys.modules if m.startswith('dagster')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", look, *arguments],
        env={"PATRA_HOME": str(home), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_a_worker_with_a_deadline_ends_well_and_says_what_is_left(patra, box, home):
    ok(patra("plan", "sandbox", "--endpoint=works", *WINDOW, at(box)))
    ok(patra("hold", "sandbox/works"))
    said = ok(patra("work", "--for=1s"))
    told = json.loads(ok(patra("work", "--for=PT1S", "--json")))
    ok(patra("resume", "sandbox/works"))
    in_time = ok(patra("work", "--for=10m", "--until-empty"))

    assert "The deadline has come; tasks that are left in the queue: 2." in said
    assert (told["deadline"], told["left"]) == (True, 2)
    assert "deadline" not in in_time


def test_a_run_with_a_deadline_says_that_its_plan_is_not_finished(patra, home):
    with start_sandbox(WORLD, Behaviour(latency_ms=400)) as slow:
        small = "--set=paging.page_size=5"
        asked = ("sandbox", "--endpoint=works", *WINDOW, at(slow), small, "--lanes=1")
        done = patra("run", *asked, "--for=2s")
        left = json.loads(ok(patra("work", "--for=1s", "--json")))

    assert (done.returncode, done.stderr) == (1, ""), "it is not proved"
    assert "The deadline has come and plan 1 is not finished: see the slices" in done.stdout
    assert "`patra work` goes on" in done.stdout
    assert left["left"] == 2


@pytest.mark.parametrize("command", [("work",), ("run", "sandbox")])
@pytest.mark.parametrize("time", ["0", "0s", "abc", "-5m", "1month"])
def test_a_deadline_that_cannot_be_meant_is_wrong_usage(patra, home, command, time):
    done = patra(*command, "--for", time)

    assert (done.returncode, done.stdout) == (2, "")
    assert "Invalid value for '--for'" in done.stderr
    assert "Traceback" not in done.stderr
