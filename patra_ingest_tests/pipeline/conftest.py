"""Sandboxes for the whole run, and a fresh ledger that knows them for every test."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from patra_ingest.ledger.db import Db, open_db
from patra_ingest.packs import builtin_packs
from patra_ingest.registry.pack import read_pack
from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.process import Sandbox, start_sandbox
from patra_ingest.sandbox.world import World
from patra_ingest_tests.pipeline.harness import EndState, Home, end_state, sandbox_trigger

# Six days with some two hundred works each.
WORLD = World(records=1200, start=datetime(2025, 1, 1, tzinfo=UTC), days=6, seed=1)


@pytest.fixture(scope="session")
def in_days() -> Callable[[float], datetime]:
    """Return the instant so many days after the sandbox's world begins."""
    return lambda days: WORLD.start + timedelta(days=days)


@pytest.fixture(scope="session")
def _quick() -> Iterator[Sandbox]:
    with start_sandbox(WORLD) as box:
        yield box


@pytest.fixture(scope="session")
def _slow() -> Iterator[Sandbox]:
    with start_sandbox(WORLD, Behaviour(latency_ms=30)) as box:
        yield box


@pytest.fixture
def box(_quick: Sandbox) -> Sandbox:
    """A sandbox that has forgotten all earlier tests."""
    _quick.reset()
    return _quick


@pytest.fixture
def slow_box(_slow: Sandbox) -> Sandbox:
    """The same world behind a slow line, so that something can happen in the middle."""
    _slow.reset()
    return _slow


@pytest.fixture
def home(db: Db, db_url: str, tmp_path: Path) -> Home:
    """A ledger whose Registry knows the built-in sources."""
    home = Home(db, db_url, tmp_path / "home")
    home.apply(*(read_pack(path) for path in builtin_packs()))
    return home


@pytest.fixture(scope="session")
def undisturbed(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory, _quick: Sandbox
) -> EndState:
    """What a harvest of the whole world ends in when nothing happens to it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    file = folder / "ledger.db"
    file.write_bytes(sqlite_template.read_bytes())
    db = open_db(f"sqlite:///{file}")
    home = Home(db, f"sqlite:///{file}", folder)
    home.apply(*(read_pack(path) for path in builtin_packs()))
    home.plan(sandbox_trigger(_quick, WORLD.start, WORLD.start + timedelta(days=6)))
    home.work(lanes=2)
    ended = end_state(home)
    db.close()
    assert len(ended.records) == WORLD.records
    assert len(ended.pages) >= 50
    return ended
