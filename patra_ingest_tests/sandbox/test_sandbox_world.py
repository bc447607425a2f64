"""The works of the sandbox: where they lie in time, and what they look like."""

import hashlib
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.bodies import Bodies
from patra_ingest.sandbox.world import World

NEW_YEAR = datetime(2025, 1, 1, tzinfo=UTC)
WORLD = World(records=2000, start=NEW_YEAR, days=3.5, seed=11)

worlds = st.builds(
    World,
    records=st.integers(0, 300),
    start=st.integers(0, 2**31).map(lambda second: datetime.fromtimestamp(second, UTC)),
    days=st.floats(0.001, 40),
    seed=st.integers(0, 2**32),
)


def read(world, works):
    return json.loads(b"".join(Bodies(world).write(works)))


@given(worlds)
def test_index_times_never_fall_and_stay_inside_the_world(world):
    seconds = [world.indexed_second(index) for index in range(world.records)]

    assert seconds == sorted(seconds)
    end = world.first_second + world.days * 86_400
    assert all(world.first_second <= second < end for second in seconds)


@given(worlds, st.data())
def test_adjacent_windows_share_no_work_and_miss_none(world, data):
    inside = st.integers(world.first_second, world.first_second + world.seconds)
    cuts = [None, *sorted(data.draw(st.lists(inside, max_size=8))), None]

    parts = [world.within(first, past) for first, past in pairwise(cuts)]

    assert [index for part in parts for index in part] == list(range(world.records))


@given(worlds, st.data())
def test_a_window_holds_exactly_the_works_indexed_in_it(world, data):
    bound = st.integers(world.first_second - 10, world.first_second + world.seconds + 10)
    first, past = data.draw(bound), data.draw(bound)

    expected = [i for i in range(world.records) if first <= world.indexed_second(i) < past]
    assert list(world.within(first, past)) == expected


def test_some_works_share_a_second_even_in_a_thin_world():
    thin = World(records=80, start=NEW_YEAR, days=365, seed=1)

    distinct = {thin.indexed_second(index) for index in range(80)}

    assert len(distinct) == 60


def test_another_process_writes_the_same_works():
    program = (
        "import hashlib; from datetime import UTC, datetime\n"
        "from patra_ingest.sandbox.bodies import Bodies\n"
        "from patra_ingest.sandbox.world import World\n"
        "world = World(records=2000, start=datetime(2025, 1, 1, tzinfo=UTC), days=3.5, seed=11)\n"
        "print(hashlib.sha256(b''.join(Bodies(world).write(range(500, 900)))).hexdigest())\n"
    )
    env = os.environ | {"PYTHONHASHSEED": "4711"}
    there = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    )

    here = hashlib.sha256(b"".join(Bodies(WORLD).write(range(500, 900)))).hexdigest()
    assert there.stdout.strip() == here


def test_another_seed_gives_other_works():
    other = World(records=2000, start=NEW_YEAR, days=3.5, seed=12)

    assert read(WORLD, [5])[0]["DOI"] != read(other, [5])[0]["DOI"]
    assert read(WORLD, [5])[0]["author"] != read(other, [5])[0]["author"]


def test_a_work_carries_its_own_id_and_index_time():
    works = read(WORLD, range(WORLD.records))

    assert [work["DOI"] for work in works] == [WORLD.doi(i) for i in range(WORLD.records)]
    for index, work in enumerate(works):
        at = WORLD.indexed_at(index)
        assert work["indexed"]["date-parts"] == [[at.year, at.month, at.day]]
        assert work["indexed"]["date-time"] == at.strftime("%Y-%m-%dT%H:%M:%SZ")
        assert work["indexed"]["timestamp"] == at.timestamp() * 1000


def test_works_are_as_uneven_as_real_ones():
    works = read(WORLD, range(WORLD.records))

    assert {len(work["published"]["date-parts"][0]) for work in works} == {1, 2, 3}
    assert {"abstract" in work for work in works} == {True, False}
    assert {"update-to" in work for work in works} == {True, False}
    assert {"SBX" in work["URL"] for work in works} == {True, False}
    assert all(work["DOI"] == work["DOI"].lower() for work in works)
    assert all(len(work["reference"]) == work["reference-count"] for work in works)
    assert len({work["type"] for work in works}) > 3


def test_a_work_weighs_about_four_kilobytes():
    size = len(b"".join(Bodies(WORLD).write(range(WORLD.records)))) / WORLD.records

    assert 3_500 < size < 4_500


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"records": -1}, id="a negative number of works"),
        pytest.param({"seed": -1}, id="a negative seed"),
        pytest.param({"days": 0}, id="no time at all"),
        pytest.param({"start": NEW_YEAR.replace(tzinfo=None)}, id="a start without a zone"),
        pytest.param({"start": NEW_YEAR.replace(microsecond=1)}, id="a start inside a second"),
    ],
)
def test_an_impossible_world_is_refused(wrong):
    with pytest.raises(ValueError, match=r"never|whole second|at least"):
        World(**({"records": 1, "start": NEW_YEAR, "days": 1, "seed": 1} | wrong))


def test_an_impossible_behaviour_is_refused():
    with pytest.raises(ValueError, match="never negative"):
        Behaviour(fail_every=-1)
