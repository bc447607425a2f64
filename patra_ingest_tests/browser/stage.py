"""`make dev` on a free port, with a ledger of its own, and a sandbox beside it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

from sqlalchemy import text

from patra_ingest.ledger.db import Db, open_db
from patra_ingest.sandbox.process import Sandbox, start_sandbox
from patra_ingest.sandbox.world import World

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
DAYS = 12
RECORDS = 1440  # 120 a day: a full page and a short one
_START_SECONDS = 180.0
_END_SECONDS = 30.0
_LOADED = """
{ workspaceOrError { ... on Workspace { locationEntries { loadStatus
  locationOrLoadError { __typename } } } } }
"""
_DIRECT = build_opener(ProxyHandler({}))


@dataclass(frozen=True)
class Stage:
    """Dagster's UI at `url`, the ledger that it works on, and the sandbox that it harvests."""

    url: str
    db: Db
    sandbox: Sandbox
    first: datetime

    def day(self, number: int) -> str:
        """Return the date of a day of the sandbox's world."""
        return self.instant(number).date().isoformat()

    def instant(self, number: int) -> datetime:
        """Return the midnight at which a day begins."""
        return self.first + timedelta(days=number)

    def ledger(self, query: str) -> Any:
        """Return the only value that a query finds in the ledger."""
        with self.db.read() as tx:
            return tx.execute(text(query)).scalar_one()

    def ask(self, query: str) -> Any:
        """Ask Dagster itself."""
        return _ask(self.url, query)

    def count_runs(self) -> int:
        """Return how many runs Dagster keeps."""
        return int(self.ask("{ runsOrError { ... on Runs { count } } }")["runsOrError"]["count"])


@contextmanager
def open_stage(folder: Path) -> Iterator[Stage]:
    """Run the sandbox and `make dev` for the length of the block; both end with it."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first = today - timedelta(days=DAYS + 2)
    with start_sandbox(World(RECORDS, first, DAYS, 1)) as box, _dev(folder) as url:
        # After `make dev`, whose `patra init` says once more where the built-in sources are.
        _move_source(folder, box.url)
        db = open_db(f"sqlite:///{folder / 'home' / 'ledger.db'}")
        yield Stage(url, db, box, first)
        db.close()


def _environment(folder: Path) -> dict[str, str]:
    home = folder / "home"
    own = {"PATRA_HOME": str(home), "DAGSTER_HOME": str(home / "dagster"), "NO_PROXY": "*"}
    kept = {name: value for name, value in os.environ.items() if name != "PATRA_DB_URL"}
    return {**kept, **own}


@contextmanager
def _dev(folder: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # The environment is there: this test runs in it.
    command = ["make", "-o", ".venv/ready", "dev", f"PORT={port}", f"BIN={BIN}"]
    log = folder / "dev.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # With Ctrl-C ignored, as in a shell's background jobs, Dagster could not be ended.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_loaded(process, url, log)
        yield url
    finally:
        _end(process)


def _wait_until_loaded(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not _is_loaded(url):
        so_far = f"`make dev` does not answer:\n{log.read_text()[-3000:]}"
        assert process.poll() is None, so_far
        assert time.monotonic() < deadline, so_far
        time.sleep(0.3)


def _is_loaded(url: str) -> bool:
    try:
        entries = _ask(url, _LOADED)["workspaceOrError"]["locationEntries"]
    except (URLError, ConnectionError, TimeoutError):
        return False
    kinds = {(one["locationOrLoadError"] or {}).get("__typename") for one in entries}
    return kinds == {"RepositoryLocation"}


def _ask(url: str, query: str) -> Any:
    body = json.dumps({"query": query}).encode()
    request = Request(f"{url}/graphql", body, {"Content-Type": "application/json"})
    with _DIRECT.open(request, timeout=30) as answer:
        return json.load(answer)["data"]


def _move_source(folder: Path, address: str) -> None:
    pack = folder / "sandbox.yaml"
    shipped = (ROOT / "patra_ingest/packs/sandbox.yaml").read_text()
    pack.write_text(shipped.replace("http://127.0.0.1:8765", address))
    command = [str(BIN / "patra"), "registry", "apply", str(pack)]
    subprocess.run(command, env=_environment(folder), check=True, capture_output=True, timeout=120)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the whole group: make, `dagster dev`, and the servers that it started."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _END_SECONDS
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
            while time.monotonic() < deadline:
                process.poll()  # takes make's end; the group is empty when all others have ended
                os.killpg(process.pid, 0)
                time.sleep(0.1)
            continue
        return
