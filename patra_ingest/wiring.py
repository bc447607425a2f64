"""Settings become live objects: the only place that constructs them.

`open_reader` is all that a look at the ledger needs; `open_ingest` imports and opens the rest.
"""

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pydantic import ValidationError

from patra_ingest.clock import Clock, SystemClock
from patra_ingest.errors import PersonMustAct
from patra_ingest.ledger.db import Db, open_db
from patra_ingest.ledger.schema import require_current
from patra_ingest.settings import Settings

if TYPE_CHECKING:
    from patra_ingest.cursor.advance import CursorManager
    from patra_ingest.executor.exchange import Upstream
    from patra_ingest.executor.run_batch import BatchRunner
    from patra_ingest.executor.work import Worker
    from patra_ingest.planner.plan import Planner
    from patra_ingest.rate.gate import RateGate
    from patra_ingest.registry.pack import Pack
    from patra_ingest.transport.client import Transport


# A process that the rate gate does not hear of for so long is taken for dead.
_HOLDER_SECONDS = 15.0


@dataclass(frozen=True)
class Reader:
    """The ledger and the time."""

    db: Db
    clock: Clock


@dataclass(frozen=True)
class Ingest:
    """The live objects of one process; `worker_name` is how the ledger knows it."""

    settings: Settings
    clock: Clock
    db: Db
    gate: "RateGate"
    cursors: "CursorManager"
    planner: "Planner"
    transport: "Transport"
    worker_name: str

    def upstream(self) -> "Upstream":
        """Return the way to the sources: gate, transport, credentials, raw store."""
        settings = self.settings
        return _upstream(settings, self.clock, self.gate, self.transport, settings.raw_folder)

    def worker(self, name: str | None = None) -> "Worker":
        """Return a worker; its name goes into the lease of every task it takes."""
        from patra_ingest.executor.backpressure import Thresholds
        from patra_ingest.executor.execute import TaskExecutor
        from patra_ingest.executor.run_batch import BatchRunner
        from patra_ingest.executor.work import Worker
        from patra_ingest.ledger.leases import Limits

        runner = BatchRunner(self.db, self.clock, self.upstream())
        executor = TaskExecutor(self.db, self.clock, runner, self.cursors)
        settings = self.settings
        return Worker(
            self.db,
            self.clock,
            executor,
            self.cursors,
            name or self.worker_name,
            timedelta(seconds=settings.lease_seconds),
            Limits(settings.max_running_per_partition, settings.max_running),
            Thresholds(latency_ms=settings.slow_page_seconds * 1000),
        )


@dataclass(frozen=True)
class Trial:
    """A source on trial: planned in a ledger that is thrown away, asked at the real one's rate."""

    clock: Clock
    db: Db
    planner: "Planner"
    runner: "BatchRunner"
    shared: Db | None  # the ledger whose rate budget is spent; None: nobody else spends from it


def read_settings() -> Settings:
    """Return the settings of the environment; a value that makes no sense costs one sentence."""
    try:
        return Settings()
    except ValidationError as error:
        wrong = "; ".join(
            f"PATRA_{str(detail['loc'][0]).upper()}={detail['input']!r}"
            f" ({detail['msg'].removeprefix('Value error, ')})"
            for detail in error.errors()
        )
        raise PersonMustAct(f"The environment is wrong: {wrong}.", "Correct it.") from None


@contextmanager
def open_reader(settings: Settings | None = None) -> Iterator[Reader]:
    """Open the ledger, checked to fit this code; leaving the block closes it."""
    settings = settings or read_settings()
    clock = SystemClock()
    db = open_db(settings.ledger_url, settings.db_timeout_seconds, clock)
    try:
        require_current(db)
        yield Reader(db, clock)
    finally:
        db.close()


@contextmanager
def open_ingest(
    settings: Settings | None = None, worker_name: str | None = None
) -> Iterator[Ingest]:
    """Open the ledger and everything over it; leaving the block closes them."""
    from patra_ingest.cursor.advance import CursorManager
    from patra_ingest.planner.plan import Planner
    from patra_ingest.rate.gate import RateGate
    from patra_ingest.rate.keeper import tended
    from patra_ingest.registry.code_book import CachedCodeBook
    from patra_ingest.transport.client import Transport

    settings = settings or read_settings()
    name = worker_name or f"{socket.gethostname()}:{os.getpid()}"
    with (
        open_reader(settings) as reader,
        Transport(reader.clock, user_agent(settings)) as transport,
        tended(RateGate(reader.db, reader.clock, name, _HOLDER_SECONDS, tended=True)) as gate,
    ):
        db, clock = reader.db, reader.clock
        codes = CachedCodeBook(timedelta(seconds=settings.registry_cache_seconds), clock)
        yield Ingest(
            settings,
            clock,
            db,
            gate,
            CursorManager(db, clock),
            Planner(db, clock, codes, settings.has_secret),
            transport,
            name,
        )


@contextmanager
def open_scratch(packs: "Sequence[Pack]") -> Iterator[Reader]:
    """Open a ledger that knows these packs only; leaving the block deletes it."""
    from patra_ingest.ledger.migrate import migrate
    from patra_ingest.registry.apply import apply_pack
    from patra_ingest.registry.dictionary import load_dictionary

    with TemporaryDirectory(prefix="patra-") as folder:
        own = Settings(home=Path(folder), db_url="")
        migrate(own.ledger_url)
        with open_reader(own) as reader:
            with reader.db.write() as tx:
                load_dictionary(tx)
                now = reader.db.now(tx)
                for pack in packs:
                    apply_pack(tx, pack.model_copy(update={"effective_from": None}), now)
            yield reader


@contextmanager
def open_trial(settings: Settings, pack: "Pack", alone: bool = False) -> Iterator[Trial]:
    """Put a pack on trial.

    Requests pass the rate gate of the ledger that there is, and its quotas, so that nobody asks a
    source faster because of a trial; `alone` is for what is no source.
    """
    from patra_ingest.executor.run_batch import BatchRunner
    from patra_ingest.planner.plan import Planner
    from patra_ingest.rate.gate import RateGate
    from patra_ingest.rate.keeper import tended
    from patra_ingest.transport.client import Transport

    with ExitStack() as stack:
        reader = stack.enter_context(open_scratch([pack]))
        raw = Path(stack.enter_context(TemporaryDirectory(prefix="patra-raw-")))
        clock, shared = reader.clock, None
        if not alone and has_ledger(settings):
            shared = stack.enter_context(open_reader(settings)).db
        books = shared or reader.db
        name = f"{socket.gethostname()}:{os.getpid()}"
        transport = stack.enter_context(Transport(clock, user_agent(settings)))
        gate = RateGate(books, clock, name, _HOLDER_SECONDS, tended=True)
        stack.enter_context(tended(gate))
        upstream = _upstream(settings, clock, gate, transport, raw)
        yield Trial(
            clock,
            reader.db,
            Planner(reader.db, clock, has_secret=settings.has_secret),
            BatchRunner(books, clock, upstream),
            shared,
        )


def has_ledger(settings: Settings) -> bool:
    """Return whether there is a ledger where the settings say; a server is taken to have one."""
    kind, _, place = settings.ledger_url.partition(":///")
    return not kind.startswith("sqlite") or Path(place.partition("?")[0]).is_file()


def _upstream(
    settings: Settings, clock: Clock, gate: "RateGate", transport: "Transport", raw: Path
) -> "Upstream":
    from patra_ingest.executor.breaker import Breakers
    from patra_ingest.executor.exchange import Upstream
    from patra_ingest.rawstore.store import RawStore
    from patra_ingest.transport.auth import Authenticator
    from patra_ingest.transport.credentials import Credentials
    from patra_ingest.transport.oauth import Tokens

    credentials = Credentials(settings.secret, settings.credentials_folder)
    tokens = Tokens(transport, gate, credentials, clock)
    signer = Authenticator(credentials, tokens, clock)
    store = RawStore(raw)
    return Upstream(gate, transport, store, settings.contact, signer, Breakers(), settings.tool)


def user_agent(settings: Settings) -> str:
    """Return how we introduce ourselves to upstreams: as told, or by tool, version and contact."""
    if settings.user_agent:
        return settings.user_agent
    ours = f"patra-ingest/{version('patra-ingest')}"
    tool = "" if settings.tool == "patra-ingest" else f"{settings.tool} "
    return f"{tool}{ours}" + (f" (mailto:{settings.contact})" if settings.contact else "")
