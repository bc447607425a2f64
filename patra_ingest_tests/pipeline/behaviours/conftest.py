"""One sandbox for all behaviours, and a fresh SQLite ledger for each harvest of it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from patra_ingest.ledger.db import Db
from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.process import Sandbox, start_sandbox
from patra_ingest_tests.pipeline.behaviours.drill import WORLD, Drill
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.sources.packs import behaviour_pack


@pytest.fixture(scope="session")
def _any_source() -> Iterator[Sandbox]:
    with start_sandbox(WORLD, Behaviour(cap=200, token_life_ms=300)) as box:
        yield box


@pytest.fixture
def drill(
    sqlite_db: Db, sqlite_url: str, tmp_path: Path, _any_source: Sandbox
) -> Callable[..., Drill]:
    """Return a harvest of the behaviour of this number, from a source with these habits."""

    def begin(number: int, *habits: str) -> Drill:
        home = Home(sqlite_db, sqlite_url, tmp_path / "home")
        pack = behaviour_pack(number, _any_source.url)
        home.apply(pack)
        _any_source.behave(*habits)
        _any_source.reset()
        return Drill(home, _any_source, pack)

    return begin
