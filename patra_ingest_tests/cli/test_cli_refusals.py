"""Bad input: one clear sentence, exit code 1, and nothing half-written. No traceback, ever."""

import re
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

LOCK = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


def one_sentence(done):
    """Insist on exit code 1 and one line that says what is wrong; return it."""
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr + done.stdout
    assert re.fullmatch(r"patra: [^\n]+\.\n", done.stderr), done.stderr
    return done.stderr


def content(home):
    """Return how many rows each table of a ledger has."""
    with sqlite3.connect(home / "ledger.db") as ledger:
        found = ledger.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        counts = {t: ledger.execute(f"SELECT COUNT(*) FROM {t}").fetchone() for (t,) in found}
    ledger.close()
    # A trigger is remembered, whatever becomes of it.
    return {
        t: n for t, n in counts.items() if t not in ("ing_schedule_instance", "sqlite_sequence")
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(
            ("plan", "nosuch", "--from", "2026-01-01"),
            r"There is no source 'nosuch' in the Registry\. Known sources: .*sandbox",
            id="an unknown source",
        ),
        pytest.param(
            ("plan", "sandbox", "--endpoint", "nope", "--from", "2026-01-01"),
            r"sandbox has no endpoint 'nope' for HARVEST\. Its endpoints .*works",
            id="an unknown endpoint",
        ),
        pytest.param(
            ("plan", "sandbox", "--op", "GUESS"),
            r"There is no operation 'GUESS'\. Known operations: HARVEST",
            id="an unknown operation",
        ),
        pytest.param(
            ("plan", "sandbox", "--op", "METRICS"),
            r"METRICS is known but disabled.*Use HARVEST, BACKFILL or UPDATE",
            id="a disabled operation",
        ),
        pytest.param(
            ("plan", "sandbox", "--from", "2999-01-01"),
            r"begins at 2999-01-01T.*, which is in the future .*Give a start in the past",
            id="the future",
        ),
        pytest.param(
            ("plan", "sandbox", "--op=BACKFILL", "--from=1826-01-01", "--set=window.max_span=1m"),
            r"cut into about [0-9,]+ slices; a plan has 200,000 at most\. Ask for a shorter window",
            id="two centuries of minutes",
        ),
        pytest.param(
            ("plan", "sandbox", "--from", "2026-01-01T00:00"),
            r"--from: '2026-01-01T00:00' has no time zone; add Z",
            id="no zone",
        ),
        pytest.param(
            ("plan", "sandbox", "--partition", "maths", "--from", "2026-01-01"),
            r"There is no partition 'maths'\. Declared partitions: none",
            id="an unknown partition",
        ),
        pytest.param(
            ("plan", "sandbox", "--from", "2026-01-02", "--to", "2026-01-02"),
            r"is empty\. Give a start that is earlier than the end",
            id="from = to",
        ),
        pytest.param(
            ("run", "sandbox", "--from", "2026-01-03", "--to", "2026-01-02"),
            r"is empty\. Give a start that is earlier than the end",
            id="from > to",
        ),
        pytest.param(
            ("plan", "sandbox", "--from", "yesterday"),
            r"--from: 'yesterday' is not an instant; .*Use 2026-01-31",
            id="no instant",
        ),
        pytest.param(
            ("plan", "sandbox", "--from", "2026-01-01", "--set", "page_size=5"),
            "'page_size=5' is not an override",
            id="no override",
        ),
        pytest.param(("registry", "show", "nosuch"), "There is no source 'nosuch'", id="show"),
        pytest.param(
            ("registry", "apply", "none.yaml"),
            r"The pack none\.yaml cannot be read \(No such file or directory\)\. Check the path",
            id="a pack that is not there",
        ),
    ],
)
def test_a_request_nobody_can_fulfil_plans_nothing(patra, home, arguments, said):
    before = content(home)

    assert re.search(said, one_sentence(patra(*arguments)))

    assert content(home) == before


def test_a_harvest_without_a_start_is_one_window_long_and_says_so(patra, home):
    done = patra("plan", "sandbox")

    assert done.returncode == 0
    assert "one window, for nobody says where to begin" in done.stdout
    assert content(home)["ing_task"] == (1,)


@pytest.mark.parametrize(
    "override", ["paging.page_size=many", "window.max_span=1 month", "window.zone=Mars"]
)
def test_an_override_of_the_wrong_kind_is_refused_in_words(patra, home, override):
    done = patra("plan", "sandbox", "--from", "2026-01-01", "--set", override)

    assert override.partition("=")[0] in one_sentence(done)


@pytest.mark.parametrize("command", [("init",), ("status",)])
def test_a_mysql_that_is_not_there(patra, command):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    url = f"mysql+pymysql://root:hush@127.0.0.1:{port}/patra"

    said = one_sentence(patra(*command, PATRA_DB_URL=url))

    assert f"mysql+pymysql://root:***@127.0.0.1:{port}/patra cannot be reached" in said
    assert "Check PATRA_DB_URL and that the database is running." in said
    assert "hush" not in said


@pytest.mark.parametrize("command", [("init",), ("status",)])
def test_a_sqlite_file_inside_a_file(patra, tmp_path, command):
    (tmp_path / "file").write_text("I am no folder")

    said = one_sentence(patra(*command, PATRA_DB_URL=f"sqlite:///{tmp_path}/file/ledger.db"))

    assert "file/ledger.db" in said
    assert (tmp_path / "file").read_text() == "I am no folder"


def test_a_file_that_is_no_ledger(patra, tmp_path):
    (tmp_path / "text.db").write_text("I am no database, and longer than one page header " * 50)

    one_sentence(patra("status", PATRA_DB_URL=f"sqlite:///{tmp_path}/text.db"))


@pytest.mark.parametrize("url", ["nonsense", "postgresql://x/y"])
def test_an_address_that_is_none(patra, url):
    said = one_sentence(patra("status", PATRA_DB_URL=url))

    assert "PATRA_DB_URL is not a ledger address" in said


def test_a_setting_that_is_none(patra, home):
    said = one_sentence(patra("status", PATRA_LEASE_SECONDS="long"))

    assert "PATRA_LEASE_SECONDS" in said


@pytest.mark.parametrize("command", [("status",), ("plan", "sandbox")])
def test_a_ledger_that_was_never_made_asks_for_init(patra, tmp_path, command):
    assert "has no schema yet. Run `patra init`." in one_sentence(patra(*command))


def test_a_ledger_newer_than_the_code(patra, home):
    with sqlite3.connect(home / "ledger.db") as ledger:
        ledger.execute(
            "INSERT INTO _yoyo_migration (migration_hash, migration_id) VALUES ('x', '9999-future')"
        )
    ledger.close()

    said = one_sentence(patra("init"))

    assert "is newer than this code: it has 9999-future. Upgrade" in said


def test_a_port_that_is_taken(patra):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = one_sentence(patra("sandbox", "--port", port))

    assert f"cannot listen on port {port} of 127.0.0.1" in said
    assert "Choose another port" in said


def test_a_world_that_cannot_be(patra):
    assert "cannot be built" in one_sentence(patra("sandbox", "--days", 0))


@pytest.mark.parametrize(
    "command",
    [
        ("init",),
        ("plan", "sandbox", "--from", "2026-01-01"),
        ("work", "--until-empty", "--lanes=1"),
    ],
    ids=lambda command: command[0],
)
def test_a_ledger_locked_by_another_process(patra, home, command):
    before = content(home)
    holder = subprocess.Popen(
        [sys.executable, "-c", LOCK, home / "ledger.db"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout.readline() == "held\n"
        said = one_sentence(patra(*command, PATRA_DB_TIMEOUT_SECONDS=1))
    finally:
        holder.communicate("")

    assert "is locked by another process" in said
    assert "Wait for that process or stop it" in said
    assert content(home) == before


def test_a_mysql_ledger_locked_by_another_connection(patra, mysql_url):
    assert patra("init", PATRA_DB_URL=mysql_url).returncode == 0
    engine = create_engine(mysql_url)
    with engine.connect() as other, other.begin():
        other.execute(text("SELECT id FROM reg_provenance FOR UPDATE"))
        said = one_sentence(
            patra(
                "plan",
                "sandbox",
                "--from=2026-01-01",
                "--to=2026-01-02",
                PATRA_DB_URL=mysql_url,
                PATRA_DB_TIMEOUT_SECONDS=1,
            )
        )
    with engine.connect() as tx:
        assert tx.execute(text("SELECT COUNT(*) FROM ing_task")).scalar() == 0
    engine.dispose()

    assert "is locked by another process" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("plan",),
        ("plan", "sandbox", "--nonsense"),
        ("work", "--lanes", "0"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2(patra, arguments):
    done = patra(*arguments)

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr


def test_refusals_leave_no_file_behind(patra, tmp_path):
    patra("plan", "sandbox", "--op", "GUESS")
    patra("sandbox", "--days", 0)

    assert list(Path(tmp_path).iterdir()) == []


@pytest.mark.parametrize("place", ["nosuch", "sandbox/nosuch"])
def test_what_does_not_exist_cannot_be_held(patra, home, place):
    said = one_sentence(patra("hold", place))

    assert f"There is nothing called {place!r} to hold. Known: " in said
    assert "sandbox/works" in said
    assert content(home)["ing_hold"] == (0,)
