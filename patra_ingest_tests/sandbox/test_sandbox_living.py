"""A living world: works come, change and go as time passes, and the truth goes with them."""

import re
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from patra_ingest.clock import SystemClock
from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.living import CHANGES_EVERY, DIES_AFTER, entry_at
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.world import World

PAST = World(records=1300, start=datetime(2025, 10, 30, tzinfo=UTC), days=1 / 48, seed=7)
BEGIN, END = PAST.first_second, PAST.first_second + PAST.seconds


def at(second):
    found = (entry_at(PAST, index, second) for index in range(PAST.records))
    return {one.index: one for one in found if one is not None}


def test_works_come_one_after_the_other():
    counts = [len(at(second)) for second in range(BEGIN - 1, END, 60)]

    assert counts[0] == 0
    assert counts == sorted(counts)
    assert 40 < counts[3] - counts[2] < 47
    assert len(at(END)) == PAST.records


def test_nothing_is_ever_stamped_with_a_second_to_come_or_moves_back():
    before = {}
    for second in range(BEGIN, END + 300, 37):
        now = at(second)
        assert all(one.second <= second for one in now.values())
        assert all(now[index].key >= one.key for index, one in before.items())
        assert all(now[index].version >= one.version for index, one in before.items())
        before = now


def test_some_change_again_and_again_and_some_are_deleted():
    born = PAST.indexed_second(2)
    versions = [entry_at(PAST, 2, born + age) for age in (0, CHANGES_EVERY - 1, CHANGES_EVERY)]
    assert [one.version for one in versions] == [1, 1, 2]
    assert versions[-1].second == born + CHANGES_EVERY

    born = PAST.indexed_second(5)
    assert not entry_at(PAST, 5, born + DIES_AFTER - 1).deleted
    assert entry_at(PAST, 5, born + DIES_AFTER).deleted
    assert entry_at(PAST, 5, END + 9 * DIES_AFTER).version == 2


def test_when_the_world_has_ended_everything_stays_as_it_is():
    assert at(END) == at(END + 100_000)
    assert max(one.second for one in at(END).values()) < END


@pytest.fixture(scope="module")
def sandbox():
    """A world that began ten minutes ago and lasts for ten more."""
    start = (SystemClock().now() - timedelta(minutes=10)).replace(microsecond=0)
    world = World(records=2000, start=start, days=20 / 1440, seed=1)
    with start_sandbox(world, Behaviour(living=True)) as running:
        yield running


@pytest.fixture
def client(sandbox):
    with httpx.Client(base_url=sandbox.url, trust_env=False, verify=False) as opened:
        yield opened


def read_list(client, first):
    """Walk over a list; return its ids, stamps and sizes."""
    pages = [first]
    while token := re.search(r">([^<]+)</resumptionToken>", pages[-1].text):
        asked = {"verb": "ListRecords", "resumptionToken": token[1]}
        pages.append(client.get("/oai", params=asked))
    text = "".join(page.text for page in pages)
    sizes = set(re.findall(r'completeListSize="(\d+)"', text))
    return re.findall(r"<identifier>([^<]+)", text), sizes


def test_only_what_has_come_is_answered_and_told(sandbox, client):
    count = client.get("/works", params={"rows": 0}).json()["message"]["total-results"]
    truth = sandbox.truth()

    assert 950 < count <= truth.count < 2000
    assert truth.updated_at[truth.ids[-1]] <= f"{SystemClock().now():%FT%TZ}"
    to_come = {"filter": "doi:10.5555/sbx.1.0001999", "rows": 1}
    assert client.get("/works", params=to_come).json()["message"]["total-results"] == 0


def test_a_list_stays_as_it_was_while_it_is_walked_over(sandbox, client):
    now = SystemClock().now()
    asked = {"from": f"{now - timedelta(minutes=9):%FT%TZ}", "until": f"{now:%FT%TZ}"}
    first = client.get("/oai", params={"verb": "ListRecords", **asked})
    waited = SystemClock()
    while waited.now() < now + timedelta(seconds=3):  # some change, some come, some go
        waited.sleep(0.2)

    ids, sizes = read_list(client, first)

    assert sizes == {str(len(ids))}
    assert len(set(ids)) == len(ids)
    again, _ = read_list(client, client.get("/oai", params={"verb": "ListRecords", **asked}))
    assert set(again) < set(ids), "what has changed since is behind the window now"


def test_a_face_tells_the_truth_about_what_changed_and_what_went(sandbox):
    truth = sandbox.truth(face="oai")

    assert len(truth.deleted) > 50
    assert {1, 2, 3, 4} <= set(truth.versions.values())
    assert truth.count == len(truth.ids) == len(truth.updated_at)


def test_life_can_be_switched_on_and_off(sandbox):
    sandbox.change(living=0)
    still = sandbox.truth(), sandbox.truth(face="oai")
    sandbox.change(living=1)

    assert still[0].count == 2000
    assert set(still[1].versions.values()) == {1}
    assert sandbox.truth().count < 2000
