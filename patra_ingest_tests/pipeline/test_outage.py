"""The ledger goes away while workers work: they live on, and nothing is lost or doubled."""

import signal
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import make_url

from patra_ingest.clock import SystemClock
from patra_ingest.errors import LedgerUnreachable
from patra_ingest.executor.ride_out import LONGEST_OUTAGE_SECONDS
from patra_ingest.executor.work import Order
from patra_ingest.ledger.db import open_db
from patra_ingest.packs import builtin_packs
from patra_ingest.rate.bucket import Limits
from patra_ingest.rate.gate import RETRY_SECONDS, RateGate
from patra_ingest.rate.permit import Decision
from patra_ingest.rate.signals import Complaint
from patra_ingest.registry.pack import read_pack
from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.world import World
from patra_ingest_tests.cut import wire
from patra_ingest_tests.fakes import wait_until
from patra_ingest_tests.pipeline.harness import (
    Home,
    asked_again,
    end_state,
    records_of,
    sandbox_trigger,
    truth_of,
    wait_for_pages,
)

WORLD = World(records=1000, start=datetime(2025, 1, 1, tzinfo=UTC), days=4, seed=3)
END = WORLD.start + timedelta(days=4)
OUTAGE_SECONDS = 5.0
# Who was cut off between two tasks leaves a lease behind, which somebody has to wait for.
SHORT_LEASE = {"PATRA_LEASE_SECONDS": "6"}
HASTE = 200.0


@pytest.fixture(scope="module")
def slow_source():
    with start_sandbox(WORLD, Behaviour(latency_ms=40)) as running:
        yield running


@pytest.fixture
def cable(mysql_url):
    there = make_url(mysql_url)
    with wire(there.host, there.port) as one:
        yield one


@pytest.fixture
def home(mysql_url, tmp_path, slow_source):
    """A ledger with some forty pages in its queue."""
    db = open_db(mysql_url)
    home = Home(db, mysql_url, tmp_path / "home")
    home.apply(*(read_pack(path) for path in builtin_packs() if path.stem == "sandbox"))
    slow_source.reset()
    home.plan(sandbox_trigger(slow_source, WORLD.start, END, page_size=30))
    yield home
    db.close()


@pytest.fixture
def far(home, cable):
    """The environment of a process that reaches the ledger through the wire."""
    url = make_url(home.url).set(host="127.0.0.1", port=cable.port)
    return {"PATRA_DB_URL": url.render_as_string(hide_password=False), **SHORT_LEASE}


class Hasty(SystemClock):
    """A clock whose minutes take no longer than a third of a second."""

    def monotonic(self):
        return time.monotonic() * HASTE

    def sleep(self, seconds):
        time.sleep(seconds / HASTE)

    def wait(self, event, seconds):
        return event.wait(seconds / HASTE)


def one_sentence(said):
    """Return the only line, which is no traceback."""
    (line,) = [line for line in said.splitlines() if not line.endswith("Trying again.")]
    return line


def test_workers_live_through_five_seconds_without_a_ledger(home, cable, far, slow_source):
    with home.worker(1, **far) as one, home.worker(1, **far) as other:
        wait_for_pages(home, 8)
        cable.cut()
        time.sleep(0.5)  # what MySQL has heard it still does
        at_cut = home.pages_done()
        time.sleep(OUTAGE_SECONDS - 0.5)
        assert (one.poll(), other.poll()) == (None, None), "both live on"
        assert home.pages_done() == at_cut
        cable.mend()
        for process in (one, other):
            _, err = process.communicate(timeout=30)
            assert process.returncode == 0, err

    assert at_cut <= 20, "the outage was in the middle"
    assert records_of(home, "works") == truth_of(slow_source, WORLD.start, END)
    ended = end_state(home)
    assert ended.fates["inserted"] == WORLD.records
    assert ended.cursor == END
    assert asked_again(slow_source) <= 2, "at most one page per worker"
    (bucket,) = home.rows("SELECT * FROM ing_rate_bucket WHERE rate_key = 'sandbox'")
    assert bucket.holders is None
    assert float(bucket.tokens) <= float(bucket.burst)


def test_a_worker_that_is_stopped_without_a_ledger_ends_with_one_sentence(home, cable, far):
    with home.worker(1, **far) as worker:
        wait_for_pages(home, 2)
        cable.cut()
        time.sleep(1.0)
        assert worker.poll() is None
        worker.send_signal(signal.SIGTERM)
        _, err = worker.communicate(timeout=20)

    assert worker.returncode == 1
    assert one_sentence(err).startswith("patra: ")


def test_a_worker_that_starts_without_a_ledger_ends_with_one_sentence(home, cable, far):
    cable.cut()

    with home.worker(1, **far) as worker:
        _, err = worker.communicate(timeout=20)

    assert worker.returncode == 1
    assert one_sentence(err).startswith("patra: ")


def test_a_worker_gives_up_when_the_ledger_stays_away(home, cable, far):
    there = Home(home.db, far["PATRA_DB_URL"], home.folder)
    with there.live() as live:
        clock = Hasty()
        worker = replace(live, clock=clock).worker()
        ended: list[BaseException] = []

        def work():
            try:
                worker.work(Order(1, until_empty=True), threading.Event(), lambda _: None)
            except LedgerUnreachable as error:
                ended.append(error)

        lane = threading.Thread(target=work)
        lane.start()
        wait_for_pages(home, 2)
        cable.cut()
        began = clock.monotonic()
        wait_until(lambda: ended, 20)
        lane.join()

    assert clock.monotonic() - began >= LONGEST_OUTAGE_SECONDS * 0.9
    assert "ledger" in str(ended[0]).lower()
    assert home.pages_done() >= 2


def test_a_key_first_used_without_a_ledger_is_known_when_it_is_back(cable, mysql_url):
    url = make_url(mysql_url).set(host="127.0.0.1", port=cable.port)
    db = open_db(url.render_as_string(hide_password=False))
    gate, limits = RateGate(db, SystemClock(), "worker", tended=True), Limits(10, burst=5)
    cable.cut()
    with gate.permit("new", limits) as permit:
        gate.feedback("new", Complaint())
    assert permit.facts.decision is Decision.FALLBACK

    cable.mend()
    time.sleep(RETRY_SECONDS + 0.1)
    with gate.permit("new", limits) as permit:
        assert permit.facts.decision is not Decision.FALLBACK

    assert permit.facts.rate_per_second == 5, "the complaint was told"
    gate.close()
    db.close()
