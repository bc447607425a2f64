"""Real ledgers for the tests: every test that takes `db` or `db_url` runs on SQLite and on MySQL.

MySQL is the server at PATRA_TEST_MYSQL_URL (its user must be allowed to create databases), or a
private one started for this run when `mysqld` is on the PATH. Without either those tests are
skipped, which the summary says in one line; PATRA_TEST_REQUIRE_MYSQL=1 makes that a failure.
"""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pymysql
import pytest
from sqlalchemy import Connection, create_engine, inspect, text
from sqlalchemy.engine import URL, make_url

from patra_ingest.ledger.db import Db, open_db
from patra_ingest.ledger.migrate import migrate
from patra_ingest.sandbox.recordings import Recording, write_recording

NO_MYSQL = "no MySQL: set PATRA_TEST_MYSQL_URL, or put MySQL's mysqld on the PATH"


@pytest.fixture(params=["sqlite", "mysql"])
def db_url(request: pytest.FixtureRequest) -> str:
    """The address of a fresh, migrated ledger."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def db(db_url: str) -> Iterator[Db]:
    """A fresh, migrated ledger; the one at `db_url`."""
    opened = open_db(db_url)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_db(sqlite_url: str) -> Iterator[Db]:
    """A fresh, migrated ledger on SQLite, for tests that do not depend on the engine."""
    opened = open_db(sqlite_url)
    yield opened
    opened.close()


@pytest.fixture(params=["sqlite", "mysql"])
def empty_db_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database without any table."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    server: URL = request.getfixturevalue("mysql_server")
    with _database(server) as url:
        yield url


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """A copy of the migrated SQLite ledger."""
    copy = tmp_path / "ledger.db"
    shutil.copyfile(sqlite_template, copy)
    return f"sqlite:///{copy}"


@pytest.fixture
def mysql_url(mysql_ledger: str) -> Iterator[str]:
    """The run's MySQL ledger, emptied when the test has ended."""
    yield mysql_ledger
    engine = create_engine(mysql_ledger)
    with engine.connect() as tx:
        # A process that a test left behind may still hold a table.
        tx.execute(text("SET SESSION lock_wait_timeout = 20"))
        for table in _tables_with_rows(tx):
            tx.execute(text(f"TRUNCATE TABLE {table}"))
    engine.dispose()


def _tables_with_rows(tx: Connection) -> list[str]:
    tables = [name for name in inspect(tx).get_table_names() if "yoyo" not in name]
    asked = (f"SELECT '{name}' FROM DUAL WHERE EXISTS (SELECT 1 FROM {name})" for name in tables)
    return list(tx.execute(text(" UNION ALL ".join(asked))).scalars())


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty SQLite ledger to copy."""
    file = tmp_path_factory.mktemp("sqlite") / "template.db"
    migrate(f"sqlite:///{file}")
    return file


@pytest.fixture(scope="session")
def mysql_ledger(mysql_server: URL) -> Iterator[str]:
    """One migrated MySQL ledger for the whole run: creating its tables takes a second."""
    with _database(mysql_server) as url:
        migrate(url)
        yield url


@pytest.fixture(scope="session")
def mysql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[URL]:
    """The MySQL server of this run."""
    given = os.environ.get("PATRA_TEST_MYSQL_URL")
    if given:
        yield make_url(given)
        return
    mysqld = _find_mysqld()
    if mysqld is None:
        if os.environ.get("PATRA_TEST_REQUIRE_MYSQL") == "1":
            pytest.fail(f"PATRA_TEST_REQUIRE_MYSQL=1, but {NO_MYSQL}", pytrace=False)
        pytest.skip(NO_MYSQL)
    with _private_server(mysqld, tmp_path_factory.mktemp("mysql")) as url:
        yield url


@contextmanager
def _database(server: URL) -> Iterator[str]:
    """A database that lives as long as the block."""
    url = server.set(database=f"patra_test_{uuid.uuid4().hex[:12]}")
    engine = create_engine(server.set(database=None), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {url.database}"))
    try:
        yield url.render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(text(f"DROP DATABASE {url.database}"))
        engine.dispose()


def _find_mysqld() -> str | None:
    mysqld = shutil.which("mysqld")
    if mysqld is None:
        return None
    version = subprocess.run([mysqld, "--version"], capture_output=True, text=True, check=False)
    return None if "MariaDB" in version.stdout else mysqld


@contextmanager
def _private_server(mysqld: str, folder: Path) -> Iterator[URL]:
    """A throwaway MySQL on a free loopback port, stopped when the block ends."""
    log = folder / "error.log"
    # The folder compiled in for LOAD DATA need not exist on this machine.
    command = [mysqld, "--no-defaults", "--secure-file-priv=NULL", f"--log-error={log}"]
    command += [f"--datadir={folder / 'data'}"]
    if os.geteuid() == 0:
        command += ["--user=root"]  # mysqld refuses to run as root unless it is told to
    subprocess.run([*command, "--initialize-insecure"], check=True, timeout=120)

    port = _free_port()
    # The path of a socket has at most 107 characters; pytest's folders are longer than that.
    unix_socket = Path(tempfile.gettempdir()) / f"patra-test-{port}.sock"
    command += [f"--port={port}", "--bind-address=127.0.0.1", "--mysqlx=OFF"]
    command += [f"--socket={unix_socket}", "--skip-log-bin", "--performance-schema=OFF"]
    process = subprocess.Popen([*command, "--innodb-flush-log-at-trx-commit=0"])
    try:
        if not _answers(process, port):
            pytest.fail(f"mysqld did not start:\n{log.read_text()[-2000:]}", pytrace=False)
        yield make_url(f"mysql+pymysql://root@127.0.0.1:{port}/?ssl_disabled=true")
    finally:
        process.terminate()
        process.wait(timeout=60)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            pymysql.connect(host="127.0.0.1", port=port, user="root", ssl_disabled=True).close()
        except pymysql.Error:
            time.sleep(0.1)
        else:
            return True
    return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give all tests that miss MySQL one place to be skipped at: they become one line."""
    report = yield
    if report.skipped and NO_MYSQL in str(report.longrepr):
        report.longrepr = (__file__, 0, NO_MYSQL)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say that line even when pytest was told not to list what was skipped."""
    skipped = terminalreporter.stats.get("skipped", [])
    count = sum(NO_MYSQL in str(report.longrepr) for report in skipped)
    if count and not terminalreporter.hasopt("s"):
        terminalreporter.write_line(f"SKIPPED [{count}] {NO_MYSQL}", yellow=True)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Answers of the library that the page on packs speaks of, as if somebody had recorded them."""
    times = ("2026-01-01T08:00:00Z", "2026-01-01T09:00:00Z", "soon")
    found = [{"id": f"w{n}", "updated": at, "title": "T"} for n, at in enumerate(times, 1)]
    body = json.dumps({"works": found, "total": len(found)}).encode()
    folder = tmp_path / "recorded"
    folder.mkdir()
    url = "https://api.library.example/works"
    write_recording(folder, Recording("works.json", "GET", url, body), "library")
    return folder
