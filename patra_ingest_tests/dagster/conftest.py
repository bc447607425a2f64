"""A prepared ledger that the environment names, a sandbox, and a way to execute a job.

This folder is no package on purpose: with an `__init__.py` it would be imported as `dagster`.
"""

import shutil
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import ProxyHandler, build_opener

import dagster as dg
import pytest
from dagster._core.errors import DagsterUserCodeProcessError
from sqlalchemy import text

from patra_ingest.cli.setup import prepare
from patra_ingest.definitions import defs
from patra_ingest.ledger.db import Db, open_db
from patra_ingest.sandbox.process import Sandbox, start_sandbox
from patra_ingest.sandbox.world import World
from patra_ingest.settings import Settings
from patra_ingest_tests.builders import day

FIRST = {
    "execute_job": "open_lanes",
    "publish_outbox_job": "publish_messages",
    "replay_job": "replay_batches",
    "update_candidates_job": "plan_updates",
}
Execute = Callable[..., dg.ExecuteInProcessResult]
Rows = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """An upstream with 700 works over the first four days of September 2025."""
    with start_sandbox(World(700, day(0), 4, 1)) as box:
        yield box


@pytest.fixture(scope="session")
def ready_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared SQLite ledger to copy."""
    settings = Settings(home=tmp_path_factory.mktemp("ready"), db_url="")
    prepare(settings)
    return settings.home / "ledger.db"


@pytest.fixture
def home(ready_ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PATRA_HOME with a prepared ledger, also for child processes."""
    folder = tmp_path / "home"
    folder.mkdir()
    shutil.copy(ready_ledger, folder / "ledger.db")
    monkeypatch.setenv("PATRA_HOME", str(folder))
    monkeypatch.delenv("PATRA_DB_URL", raising=False)
    return folder


@pytest.fixture
def prepared(db_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A prepared ledger on each engine, named by PATRA_DB_URL."""
    monkeypatch.setenv("PATRA_HOME", str(tmp_path))
    monkeypatch.setenv("PATRA_DB_URL", db_url)
    prepare(Settings())
    return db_url


@pytest.fixture
def ledger() -> Iterator[Db]:
    """The ledger that the environment names now."""
    opened = open_db(Settings().ledger_url)
    yield opened
    opened.close()


@pytest.fixture
def rows(ledger: Db) -> Rows:
    """Ask the ledger."""

    def ask(query: str) -> list[tuple[Any, ...]]:
        with ledger.read() as tx:
            return [tuple(row) for row in tx.execute(text(query))]

    return ask


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """Dagster's storage, in memory."""
    with dg.DagsterInstance.ephemeral() as memory:
        yield memory


@pytest.fixture
def execute(instance: dg.DagsterInstance) -> Execute:
    """Execute a job of the definitions with the config of its first op."""

    def run(job: str, **config: Any) -> dg.ExecuteInProcessResult:
        first = FIRST.get(job, "compile_spec")
        return defs.resolve_job_def(job).execute_in_process(
            run_config={"ops": {first: {"config": config}}} if config else None,
            instance=instance,
            raise_on_error=False,
        )

    return run


@pytest.fixture
def refused(refused_ops: Callable[..., str]) -> Callable[..., str]:
    """Launch a job with a config of its first op that must be refused; return the sentence."""
    return lambda job, **config: refused_ops(job, **{FIRST.get(job, "compile_spec"): config})


@pytest.fixture
def refused_ops(instance: dg.DagsterInstance) -> Callable[..., str]:
    """Launch what must be refused; return the one sentence that the Launchpad shows."""

    def launch(job: str, **ops: Any) -> str:
        before = instance.get_runs_count()
        with pytest.raises(DagsterUserCodeProcessError) as error:
            defs.resolve_job_def(job).execute_in_process(
                run_config={"ops": {op: {"config": config} for op, config in ops.items()}},
                instance=instance,
            )
        assert instance.get_runs_count() == before  # nothing is kept, no secret either
        (told,) = error.value.user_code_process_error_infos
        assert (told.stack, told.cause, told.context) == ([], None, None)
        return str(told.message).strip()

    return launch


@pytest.fixture
def tick(instance: dg.DagsterInstance) -> Callable[..., Any]:
    """Let a sensor look once."""

    def look(sensor: str, cursor: str | None = None) -> Any:
        resources = {"ledger": defs.resources["ledger"]}
        with dg.build_sensor_context(
            instance=instance, cursor=cursor, resources=resources
        ) as context:
            return defs.resolve_sensor_def(sensor).evaluate_tick(context)

    return look


class Grumpy(ThreadingHTTPServer):
    """Hands requests on to the sandbox, but rejects those for the day that begins at `refused`."""

    daemon_threads = True
    refused = "2025-09-02T00"

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Grump)
        self.upstream = upstream
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Grump(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Grumpy)
        status, body = 400, b'{"message": "no such day"}'
        if self.server.refused not in self.path:
            direct = build_opener(ProxyHandler({}))
            with direct.open(self.server.upstream + self.path) as answer:
                status, body = 200, answer.read()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def grumpy(sandbox: Sandbox) -> Iterator[Grumpy]:
    with Grumpy(sandbox.url) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()
