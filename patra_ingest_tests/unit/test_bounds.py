"""The boundary of one slice."""

import json

import pytest

from patra_ingest.model.bounds import Bounds, IdSet, PageRange, SplitPart, read_bounds
from patra_ingest_tests.builders import days

TIME = {"time": {"from": "2025-09-04T00:00:00.000000Z", "to": "2025-09-06T00:00:00.000000Z"}}
CASES = [
    (Bounds(days(3, 5)), {"dimension": "TIME", "bounds": TIME}),
    (
        Bounds(days(3, 5), partition="bio"),
        {"dimension": "TIME", "bounds": TIME, "partition": "bio"},
    ),
    (
        Bounds(days(3, 5), splits=(SplitPart(0, 0, 9), SplitPart(1, value=""))),
        {
            "dimension": "TIME",
            "bounds": TIME,
            "split": [{"rule": 0, "low": 0, "high": 9}, {"rule": 1, "value": ""}],
        },
    ),
    (
        Bounds(pages=PageRange(1, 201)),
        {"dimension": "PAGE", "bounds": {"page": {"from": 1, "past": 201}}},
    ),
    (Bounds(pages=PageRange(201)), {"dimension": "PAGE", "bounds": {"page": {"from": 201}}}),
    (
        Bounds(ids=IdSet("works", ("b", "a"))),
        {"dimension": "ID", "bounds": {"id": {"endpoint": "works", "ids": ["b", "a"]}}},
    ),
    (
        Bounds(ids=IdSet("works", (), bucket=0)),
        {
            "dimension": "ID",
            "bounds": {"id": {"endpoint": "works", "ids": [], "hashBucket": 0}},
        },
    ),
]


@pytest.mark.parametrize(("bounds", "written"), CASES)
def test_a_boundary_is_written_without_what_is_not_there(bounds, written):
    assert bounds.as_json() == written


@pytest.mark.parametrize("bounds", [bounds for bounds, _ in CASES])
def test_a_boundary_is_the_same_after_writing_and_reading_it(bounds):
    assert read_bounds(json.loads(json.dumps(bounds.as_json()))) == bounds


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"window": days(3, 5), "pages": PageRange(1)},
        {"pages": PageRange(1), "ids": IdSet("works", ("a",))},
        {"window": days(3, 5), "pages": PageRange(1), "ids": IdSet("works", ("a",))},
    ],
)
def test_a_slice_is_cut_by_exactly_one_thing(parts):
    with pytest.raises(ValueError, match="by exactly one of them"):
        Bounds(**parts)
