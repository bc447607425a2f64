"""The processes of `deploy/compose`, started with its own commands on a real MySQL."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from urllib.request import ProxyHandler, Request, build_opener

import pytest
import yaml
from sqlalchemy import create_engine, text

ROOT = Path(__file__).parents[2]
SERVICES = yaml.safe_load((ROOT / "deploy/compose/compose.yaml").read_text())["services"]
BIN = Path(sys.executable).parent
START_SECONDS = 90.0
LOCATIONS = """
{ workspaceOrError { ... on Workspace { locationEntries { name loadStatus
  locationOrLoadError { __typename } } } }
  instance { daemonHealth { allDaemonStatuses { daemonType healthy required } } } }
"""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


@pytest.fixture
def stage(mysql_server, tmp_path):
    """Secrets, folders and two empty databases, as compose would have them."""
    secrets, homes = tmp_path / "secrets", {"PATRA_HOME": "patra", "DAGSTER_HOME": "dagster"}
    secrets.mkdir()
    names = {"PATRA_DB_URL": "patra", "DAGSTER_MYSQL_URL": "dagster"}
    engine = create_engine(mysql_server.set(database=None), isolation_level="AUTOCOMMIT")
    made = []
    with engine.connect() as connection:
        for variable, what in names.items():
            made.append(f"patra_test_{what}_{uuid.uuid4().hex[:8]}")
            connection.execute(text(f"CREATE DATABASE {made[-1]} COLLATE utf8mb4_bin"))
            url = mysql_server.set(database=made[-1]).render_as_string(hide_password=False)
            (secrets / variable).write_text(url)
    for folder in homes.values():
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / "deploy/mysql/dagster.yaml", tmp_path / "dagster")
    yield Stage(tmp_path, {name: str(tmp_path / folder) for name, folder in homes.items()})
    with engine.connect() as connection:
        for name in made:
            connection.execute(text(f"DROP DATABASE {name}"))
    engine.dispose()


class Stage:
    """Runs the services of compose as processes of this machine, on ports of their own."""

    def __init__(self, folder, homes):
        self.folder, self.homes = folder, homes
        self.ports = {"4000": free_port(), "3000": free_port()}
        workspace = (ROOT / "deploy/compose/workspace.yaml").read_text()
        workspace = workspace.replace("host: code", "host: 127.0.0.1")
        workspace = workspace.replace("4000", self.ports["4000"])
        (folder / "workspace.yaml").write_text(workspace)

    def words(self, command):
        moved = {"0.0.0.0": "127.0.0.1", "/etc/patra/workspace.yaml": "workspace.yaml"}
        said = [{**moved, **self.ports}.get(word, word) for word in command]
        return ["sh", str(ROOT / "deploy/compose/enter.sh"), *said]

    def environment(self):
        own = {"SECRETS_FOLDER": str(self.folder / "secrets"), **self.homes}
        return {**os.environ, **own, "PATH": f"{BIN}:{os.environ['PATH']}", "NO_PROXY": "*"}

    def run(self, command):
        options = {"env": self.environment(), "cwd": self.folder, "timeout": 120}
        done = subprocess.run(self.words(command), capture_output=True, text=True, **options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def running(self, service):
        with (self.folder / f"{service}.log").open("w") as log:
            process = subprocess.Popen(
                self.words(SERVICES[service]["command"]),
                env=self.environment(),
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            try:
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def wait_until_healthy(self, service):
        check = SERVICES[service]["healthcheck"]["test"][1:]
        words = self.words([word.replace("3000", self.ports["3000"]) for word in check])
        deadline = time.monotonic() + START_SECONDS
        options = {"env": self.environment(), "cwd": self.folder}
        while subprocess.run(words, capture_output=True, check=False, **options).returncode:
            log = (self.folder / f"{service}.log").read_text()
            assert time.monotonic() < deadline, f"{service} is not healthy:\n{log[-3000:]}"
            time.sleep(1)

    def ask(self, query):
        url = f"http://127.0.0.1:{self.ports['3000']}/graphql"
        body = json.dumps({"query": query}).encode()
        request = Request(url, body, {"Content-Type": "application/json"})
        with build_opener(ProxyHandler({})).open(request, timeout=60) as answer:
            return json.load(answer)["data"]


@pytest.mark.timeout(600)
def test_the_services_of_compose_start_in_its_order_and_find_each_other(stage):
    assert "is ready" in stage.run(SERVICES["ledger-init"]["command"])
    assert "up to date" in stage.run(SERVICES["ledger-init"]["command"])
    stage.run(SERVICES["dagster-init"]["command"])
    with stage.running("code"):
        stage.wait_until_healthy("code")
        with stage.running("webserver"), stage.running("daemon"), stage.running("worker") as worker:
            stage.wait_until_healthy("webserver")
            stage.wait_until_healthy("daemon")
            seen = stage.ask(LOCATIONS)
            worker.terminate()
            assert worker.wait(30) == 0, (stage.folder / "worker.log").read_text()

    (location,) = seen["workspaceOrError"]["locationEntries"]
    assert location["name"] == "patra_ingest"
    assert location["locationOrLoadError"]["__typename"] == "RepositoryLocation"
    daemons = seen["instance"]["daemonHealth"]["allDaemonStatuses"]
    needed = {one["daemonType"]: one["healthy"] for one in daemons if one["required"]}
    assert {"SCHEDULER", "SENSOR", "QUEUED_RUN_COORDINATOR", "MONITORING"} <= set(needed)
    assert all(needed.values()), needed
