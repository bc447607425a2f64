"""Which window a trigger means."""

from datetime import UTC, datetime, timedelta

import pytest

from patra_ingest.errors import PlanError
from patra_ingest.model.window import Window
from patra_ingest.planner.windowing import Asked, NothingNew, harvest_window
from patra_ingest_tests.builders import NOON, a_window, day, days

HOUR = timedelta(hours=1)
TODAY = day(19)


def window(cursor=None, start=None, end=None, now=NOON, **spec):
    return harvest_window(a_window(**spec), cursor, Asked(start, end), now)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            {"cursor": day(3), "safety_lag": 3600},
            Window(day(3), NOON - HOUR),
            id="from the cursor to now minus the lag",
        ),
        pytest.param({"start": day(1), "end": day(4)}, days(1, 4), id="what was asked"),
        pytest.param(
            {"cursor": day(9), "start": day(1), "end": day(4)}, days(1, 4), id="asked beats cursor"
        ),
        pytest.param({"cursor": day(9), "end": day(12)}, days(9, 12), id="cursor, up to"),
        pytest.param(
            {"initial_from": "2025-09-03T00:00:00Z", "end": day(4)}, days(2, 4), id="declared start"
        ),
        pytest.param(
            {"initial_from": "2025-09-03T00:00:00Z", "cursor": day(3), "end": day(4)},
            days(3, 4),
            id="the cursor beats the declared start",
        ),
        pytest.param(
            {"cursor": day(3), "end": NOON + 9 * HOUR, "safety_lag": 3600},
            Window(day(3), NOON - HOUR),
            id="nobody is asked beyond the lag",
        ),
        pytest.param(
            {"cursor": day(3), "safety_lag": 0, "now": NOON + timedelta(microseconds=999_999)},
            Window(day(3), NOON),
            id="the end is rounded down to the second",
        ),
        pytest.param(
            {"cursor": day(3), "granularity": "DAY"}, Window(day(3), TODAY), id="to the day"
        ),
        pytest.param(
            {"start": day(3) + HOUR, "granularity": "DAY"},
            Window(day(3), TODAY),
            id="the start is rounded down, too",
        ),
        pytest.param(
            {"cursor": datetime(2025, 9, 4, 4, tzinfo=UTC), "granularity": "DAY"}
            | {"zone": "America/New_York"},
            Window(datetime(2025, 9, 4, 4, tzinfo=UTC), datetime(2025, 9, 20, 4, tzinfo=UTC)),
            id="days of the source",
        ),
    ],
)
def test_the_window(given, expected):
    assert window(**given) == expected


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"cursor": NOON - HOUR, "safety_lag": 3600}, id="the cursor is at the lag"),
        pytest.param({"cursor": NOON, "safety_lag": 3600}, id="the cursor is beyond it"),
        pytest.param({"cursor": TODAY, "granularity": "DAY"}, id="today is not over"),
        pytest.param({"cursor": day(5), "end": day(4)}, id="the cursor is beyond what was asked"),
        pytest.param({"start": NOON + HOUR}, id="the future"),
    ],
)
def test_nothing_new_is_an_answer_with_its_reason(given):
    answer = window(**given)

    assert isinstance(answer, NothingNew)
    assert "is planned already" in answer.reason


def test_a_source_without_a_start_must_be_told_one():
    with pytest.raises(PlanError, match=r"declares no start\. Say where to begin.*--from"):
        window()


@pytest.mark.parametrize("end", [day(3), day(4)])
def test_an_empty_window_is_refused_at_once(end):
    with pytest.raises(PlanError, match=r"is empty\. Give a start that is earlier than the end"):
        Asked(day(4), end)
