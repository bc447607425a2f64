"""Three hosts on one ledger, one of them cut off: the others finish, and it writes nothing more."""

import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import create_engine, make_url, text

from patra_ingest.ledger.db import open_db
from patra_ingest.packs import builtin_packs
from patra_ingest.registry.pack import read_pack
from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.world import World
from patra_ingest_tests.fakes import wait_until
from patra_ingest_tests.pipeline.harness import (
    Home,
    end_state,
    end_well,
    records_of,
    sandbox_trigger,
    truth_of,
    wait_for_pages,
)
from patra_ingest_tests.pipeline.hosts import can_make_namespaces, namespace_hosts, wired_hosts

DAYS = 12
WORLD = World(records=1200, start=datetime(2025, 1, 1, tzinfo=UTC), days=DAYS, seed=5)
END = WORLD.start + timedelta(days=DAYS)
LEASE_SECONDS = 6.0
SHORT_LEASE = {"PATRA_LEASE_SECONDS": f"{LEASE_SECONDS:g}"}
# MySQL ends the transaction of a client that it has not heard of for so long: docs/deploying.md.
SILENCE = "SET SESSION wait_timeout=3"
KINDS = {"wires": wired_hosts, "namespaces": namespace_hosts}
DATA = ("record", "outbox_message", "quarantine", "task_run_batch", "task_run", "task", "plan")
DATA += ("plan_slice", "cursor", "cursor_event", "reslice_request")


@pytest.fixture(scope="module")
def slow_source():
    with start_sandbox(WORLD, Behaviour(latency_ms=60)) as running:
        yield running


@pytest.fixture
def short_url(mysql_url):
    """The ledger's address as the deployment gives it: a silent client is let go."""
    url = make_url(mysql_url).update_query_dict({"init_command": SILENCE, "connect_timeout": "5"})
    return url.render_as_string(hide_password=False)


@pytest.fixture
def home(mysql_url, tmp_path, slow_source):
    """The ledger, looked at from outside."""
    db = open_db(mysql_url)
    home = Home(db, mysql_url, tmp_path / "outside")
    home.apply(*(read_pack(path) for path in builtin_packs() if path.stem == "sandbox"))
    slow_source.reset()
    yield home
    db.close()


@pytest.fixture(params=KINDS)
def hosts(request, tmp_path, short_url, slow_source):
    if request.param == "namespaces" and not can_make_namespaces():
        pytest.skip("this machine does not let us make network namespaces")
    with KINDS[request.param](tmp_path, short_url, slow_source.url) as running:
        yield running


def leases_of(home, process):
    query = "SELECT COUNT(*) FROM ing_task WHERE lease_owner LIKE :name AND status_code = :now"
    return home.one(query, name=f"%:{process.pid}/%", now="EXECUTING")


def everything(home):
    return {one: home.rows(f"SELECT * FROM ing_{one} ORDER BY id") for one in DATA}


def bodies(home, hosts):
    """Count the bodies that lie on each host, of those that the ledger names."""
    keys = {row.storage_key for row in home.rows(_BODIES)}
    found = Counter(
        number
        for number, host in enumerate(hosts)
        for key in keys
        if (host.folder / "raw" / key).exists()
    )
    return len(keys), found


_BODIES = "SELECT storage_key FROM ing_task_run_batch WHERE status_code = 'SUCCEEDED'"


def test_a_host_that_is_cut_off_loses_its_tasks_and_nothing_else(home, hosts, slow_source):
    home.plan(sandbox_trigger(slow_source, WORLD.start, END, page_size=20))
    lost, *others = hosts
    with (
        lost.worker(**SHORT_LEASE) as cut_off,
        others[0].worker(**SHORT_LEASE) as one,
        others[1].worker(**SHORT_LEASE) as other,
    ):
        wait_for_pages(home, 8)
        wait_until(lambda: leases_of(home, cut_off) == 2)
        lost.cut()
        at_cut = home.pages_done()
        assert at_cut <= 40, "it was in the middle"

        for process in (one, other):
            _, err = process.communicate(timeout=60)
            assert process.returncode == 0, err

        assert cut_off.poll() is None, "it lives on, and knows nothing"
        assert records_of(home, "works") == truth_of(slow_source, WORLD.start, END)
        ended, before = end_state(home), everything(home)
        lost.mend()
        said, err = cut_off.communicate(timeout=60)

    assert cut_off.returncode == 0, err
    assert "LEASE_LOST" in said
    assert everything(home) == before, "it wrote nothing more"
    assert ended.fates["inserted"] == WORLD.records
    assert ended.fates["updated"] == 0
    assert ended.tasks == {"SUCCEEDED": DAYS}
    assert ended.cursor == END
    repeated = slow_source.stats()["pages"]["repeated"]
    assert len(repeated) <= 2, "one page for each of its lanes"
    # By itself, by who took it over, and perhaps by itself again before it learned of that.
    assert max(repeated.values(), default=0) <= 3
    named, found = bodies(home, hosts)
    assert found.total() >= named > max(found.values()), "each host has kept what it was answered"


_TURN = """
    INSERT INTO ing_lease_turn (provenance_code, endpoint_name, operation_code)
    VALUES ('', '', 'HARVEST')
"""


@pytest.fixture
def silent(home, short_url):
    """A client that has taken the lock of leasing, and of which nothing is heard any more."""
    home.execute(_TURN)
    engine = create_engine(short_url)
    client = engine.connect()
    client.execute(text("SELECT id FROM ing_lease_turn FOR UPDATE"))
    yield client
    client.invalidate()
    engine.dispose()


@pytest.mark.usefixtures("silent")
def test_a_host_that_falls_silent_while_it_leases_holds_the_others_up_only_for_a_moment(
    home, short_url, slow_source
):
    home.plan(sandbox_trigger(slow_source, WORLD.start, WORLD.start + timedelta(days=1)))
    began = time.monotonic()

    there = Home(home.db, short_url, home.folder)
    with there.worker(1) as worker:
        end_well(worker)

    assert time.monotonic() - began >= 2, "it had to wait"
    assert end_state(home).tasks == {"SUCCEEDED": 1}
