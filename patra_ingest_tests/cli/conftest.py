"""Runs `patra` as a process of its own, on a ledger of the test's own."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from patra_ingest_tests.builders import pack_text

PATRA = [sys.executable, "-c", "from patra_ingest.cli import main; main()"]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def patra(tmp_path: Path) -> Run:
    """Return a function that runs `patra` with arguments and PATRA_ variables."""

    def run(*arguments: object, **variables: object) -> subprocess.CompletedProcess[str]:
        clean = {name: v for name, v in os.environ.items() if not name.startswith("PATRA_")}
        own = {"PATRA_HOME": tmp_path / "home", "COLUMNS": "200", **variables}
        return subprocess.run(
            [*PATRA, *map(str, arguments)],
            env={**clean, **{name: str(value) for name, value in own.items()}},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def prepared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home after `patra init`, to copy."""
    home = tmp_path_factory.mktemp("prepared") / "home"
    command = [*PATRA, "init"]
    subprocess.run(command, env={**os.environ, "PATRA_HOME": str(home)}, check=True, timeout=60)
    return home


@pytest.fixture
def home(prepared_home: Path, tmp_path: Path) -> Path:
    """The test's home, after `patra init`."""
    return Path(shutil.copytree(prepared_home, tmp_path / "home"))


@pytest.fixture
def write(tmp_path):
    """Return a function that writes the file of a pack and returns its name."""

    def written(url, more=None, **endpoints):
        file = tmp_path / "example.yaml"
        file.write_text(json.dumps({**pack_text(url, **endpoints), **(more or {})}))
        return file.name

    return written
