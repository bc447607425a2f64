"""Which window a trigger means, for each operation, and why there is none."""

from datetime import UTC, datetime, timedelta

import pytest

from patra_ingest.errors import PlanError
from patra_ingest.model.codes import Operation, WindowMode
from patra_ingest.model.registry_codes import CalendarAlign
from patra_ingest.model.window import Window, parse_instant
from patra_ingest.planner.windowing import Asked, Standing, decide_window
from patra_ingest.spec.planning import PlanningSpec
from patra_ingest_tests.builders import NOON, a_window, day, days

HOUR = timedelta(hours=1)
TODAY = day(19)
SAFE = NOON - HOUR
STANDING = ("now", "cursor", "forward", "begun", "fresh_until", "by_ids", "paced_until")
HARVEST, BACKFILL, UPDATE = Operation.HARVEST, Operation.BACKFILL, Operation.UPDATE


def decide(operation=HARVEST, start=None, end=None, earliest=None, **more):
    """Decide with one hour of lag and spans of one day, unless told otherwise."""
    known = {name: more.pop(name) for name in STANDING if name in more}
    spec = a_window(**{"safety_lag": 3600, "max_span": 86_400, **more})
    standing = Standing(**{"now": NOON, **known})
    return decide_window(
        operation, spec, PlanningSpec(earliest=earliest), Asked(start, end), standing
    )


CASES = [
    (HARVEST, {"cursor": day(3)}, Window(day(3), SAFE), "from the cursor to now minus the lag"),
    (HARVEST, {"cursor": day(3), "lookback": 2 * 24 * HOUR}, Window(day(3), SAFE), "lookback"),
    (HARVEST, {"cursor": day(3), "overlap": 7200}, Window(day(3), SAFE), "overlap"),
    (HARVEST, {"start": day(1), "end": day(4)}, days(1, 4), "what was asked"),
    (HARVEST, {"cursor": day(9), "end": day(12)}, days(9, 12), "cursor, up to"),
    (HARVEST, {"cursor": day(3), "start": day(1), "end": day(4)}, days(3, 4), "asked before it"),
    (HARVEST, {"cursor": day(3), "start": day(5), "end": day(6)}, days(5, 6), "asked after it"),
    (
        HARVEST,
        {"cursor": day(3), "end": NOON + HOUR},
        Window(day(3), SAFE),
        "nobody beyond the lag",
    ),
    (HARVEST, {"initial_from": "2025-09-03", "end": day(4)}, days(2, 4), "declared start"),
    (
        HARVEST,
        {"initial_from": "2025-09-03", "cursor": day(3), "end": day(4)},
        days(3, 4),
        "cursor",
    ),
    (HARVEST, {"initial_from": "2025-09-03", "start": day(3), "end": day(4)}, days(3, 4), "asked"),
    (HARVEST, {}, Window(SAFE - 24 * HOUR, SAFE), "one window"),
    (HARVEST, {"max_span": 7200}, Window(SAFE - 2 * HOUR, SAFE), "one shorter window"),
    (HARVEST, {"cursor": day(3), "forward": day(4)}, Window(day(3), SAFE), "HARVEST is forward"),
    (BACKFILL, {"start": day(1), "forward": day(9)}, days(1, 9), "up to where HARVEST has come"),
    (BACKFILL, {"start": day(1), "end": day(4), "forward": day(9)}, days(1, 4), "less than that"),
    (BACKFILL, {"start": day(1), "end": NOON}, Window(day(1), SAFE), "without HARVEST, to safe"),
    (BACKFILL, {"cursor": day(5), "forward": day(9)}, days(4, 5), "down from its own cursor"),
    (BACKFILL, {"cursor": day(5), "forward": day(9), "begun": day(7)}, days(4, 5), "not again"),
    (BACKFILL, {"cursor": day(5), "end": day(3), "forward": day(9)}, days(2, 3), "asked below"),
    (BACKFILL, {"cursor": day(5), "end": day(8), "forward": day(9)}, days(7, 8), "asked above"),
    (BACKFILL, {"forward": day(9), "begun": day(7)}, days(6, 7), "first below HARVEST's start"),
    (BACKFILL, {"start": day(1), "forward": day(9), "begun": day(7)}, days(1, 9), "as asked"),
    (
        BACKFILL,
        {"cursor": day(5), "earliest": "2025-09-05T06:00:00Z"},
        Window(day(4) + 6 * HOUR, day(5)),
        "to the end of the past",
    ),
    (BACKFILL, {"cursor": day(5), "start": day(2), "forward": day(9)}, days(2, 9), "asked past"),
    (BACKFILL, {"forward": day(9)}, days(8, 9), "the window before HARVEST"),
    (BACKFILL, {"start": day(1), "initial_from": "2025-08-01", "end": day(2)}, days(1, 2), "own"),
    (UPDATE, {"cursor": day(3)}, Window(day(3), SAFE), "from its cursor to safe"),
    (UPDATE, {"cursor": day(3), "start": day(1)}, Window(day(3), SAFE), "never before its cursor"),
    (UPDATE, {"start": day(1), "end": day(2)}, days(1, 2), "as asked"),
    (UPDATE, {"initial_from": "2025-08-01"}, Window(SAFE - 24 * HOUR, SAFE), "no declared start"),
    (UPDATE, {"by_ids": True}, Window(SAFE - 24 * HOUR, SAFE), "by ids: a day"),
    (UPDATE, {"by_ids": True, "paced_until": day(18)}, Window(day(18), SAFE), "by ids: since then"),
    (
        UPDATE,
        {"by_ids": True, "paced_until": day(18), "start": day(1)},
        Window(day(1), SAFE),
        "own",
    ),
]


@pytest.mark.parametrize(
    ("operation", "given", "expected"),
    [pytest.param(op, given, window, id=f"{op} {why}") for op, given, window, why in CASES],
)
def test_the_window_of_an_operation(operation, given, expected):
    assert decide(operation, **given).window == expected


@pytest.mark.parametrize(
    ("given", "start", "end"),
    [
        ({"now": NOON + timedelta(microseconds=999_999)}, "2025-09-04", "2025-09-20T11:00Z"),
        ({"granularity": "HOUR", "now": NOON + HOUR / 2}, "2025-09-04", "2025-09-20T11:00Z"),
        ({"granularity": "DAY"}, "2025-09-04", "2025-09-20"),
        ({"granularity": "DAY", "cursor": day(3) + HOUR}, "2025-09-04", "2025-09-20"),
        (
            {"granularity": "DAY", "zone": "America/New_York"},
            "2025-09-03T04:00Z",
            "2025-09-20T04:00Z",
        ),
        (
            {"granularity": "DAY", "zone": "Asia/Kathmandu"},
            "2025-09-03T18:15Z",
            "2025-09-19T18:15Z",
        ),
        ({"align": CalendarAlign.HOUR, "now": NOON + HOUR / 2}, "2025-09-04", "2025-09-20T11:00Z"),
        ({"align": CalendarAlign.DAY, "cursor": day(3) + HOUR}, "2025-09-04", "2025-09-20"),
        ({"align": CalendarAlign.WEEK}, "2025-09-01", "2025-09-15"),
        ({"align": CalendarAlign.MONTH, "cursor": day(-3)}, "2025-08-01", "2025-09-01"),
        (
            {"align": CalendarAlign.WEEK, "zone": "America/New_York"},
            "2025-09-01T04:00Z",
            "2025-09-15T04:00Z",
        ),
        (
            {"align": CalendarAlign.MONTH, "cursor": day(-3), "zone": "America/New_York"},
            "2025-08-01T04:00Z",
            "2025-09-01T04:00Z",
        ),
    ],
    ids=str,
)
def test_both_ends_are_rounded_down_to_the_grid_of_the_source(given, start, end):
    mode = WindowMode.CALENDAR if "align" in given else WindowMode.SLIDING
    decision = decide(**{"cursor": day(3), "mode": mode, **given})

    assert decision.window == Window(parse_instant(start), parse_instant(end))


@pytest.mark.parametrize("days_ago", range(40))
def test_a_first_harvest_by_the_month_always_finds_a_month(days_ago):
    given = {"mode": WindowMode.CALENDAR, "align": CalendarAlign.MONTH, "max_span": 28 * 86_400}

    window = decide(now=NOON - timedelta(days=days_ago), **given).window

    assert window.start.day == window.end.day == 1
    assert window.duration in (timedelta(days=30), timedelta(days=31))


def test_one_window_is_a_day_of_the_calendar_also_when_it_has_23_hours():
    midnight = datetime(2026, 3, 9, 4, tzinfo=UTC)
    decision = decide(now=midnight, safety_lag=0, granularity="DAY", zone="America/New_York")

    assert decision.window == Window(midnight - 23 * HOUR, midnight)


@pytest.mark.parametrize(
    ("operation", "given", "end"),
    [
        pytest.param(HARVEST, {"cursor": day(3)}, day(10), id="up to the source's word"),
        pytest.param(HARVEST, {}, day(10), id="also the first time"),
        pytest.param(HARVEST, {"cursor": day(10)}, SAFE, id="a word that is used up"),
        pytest.param(HARVEST, {"cursor": day(11)}, SAFE, id="a word that is behind"),
        pytest.param(HARVEST, {"initial_from": "2025-09-15"}, SAFE, id="before the declared start"),
        pytest.param(HARVEST, {"cursor": day(3), "end": day(5)}, day(5), id="asked for less"),
        pytest.param(BACKFILL, {"start": day(3)}, SAFE, id="the past is complete"),
        pytest.param(UPDATE, {"cursor": day(3)}, SAFE, id="a refresh asks for what there is"),
    ],
)
def test_a_harvest_ends_where_the_source_says_it_is_complete(operation, given, end):
    assert decide(operation, fresh_until=day(10), **given).window.end == end


def test_a_word_within_the_day_that_is_reached_does_not_stop_a_harvest_for_ever():
    decision = decide(cursor=day(10), fresh_until=day(10) + 3 * HOUR, granularity="DAY")

    assert decision.window == Window(day(10), TODAY)


SETTLE = "is planned already, and the source is given 3600 s to settle"


@pytest.mark.parametrize(
    ("operation", "given", "reason"),
    [
        (HARVEST, {"cursor": SAFE}, f"everything before 2025-09-20T11:00:00.000000Z {SETTLE}"),
        (HARVEST, {"cursor": NOON}, f"everything before 2025-09-20T12:00:00.000000Z {SETTLE}"),
        (HARVEST, {"cursor": TODAY, "granularity": "DAY"}, SETTLE),
        (HARVEST, {"cursor": day(5), "end": day(4)}, "the cursor stands at 2025-09-06T00:00:00"),
        (HARVEST, {"start": NOON}, "nothing after 2025-09-20T11:00:00.000000Z is asked for yet"),
        (
            HARVEST,
            {"start": day(3) + HOUR, "end": day(3) + 2 * HOUR, "granularity": "DAY"},
            "what is asked for holds no whole step of the source's time (1d in UTC)",
        ),
        (HARVEST, {"earliest": "2025-09-21"}, "the source has nothing before 2025-09-21"),
        (
            BACKFILL,
            {"start": day(1), "end": day(2), "earliest": "2025-09-10"},
            "the source has nothing before 2025-09-10",
        ),
        (BACKFILL, {"start": day(9), "forward": day(9)}, "HARVEST stands at 2025-09-10"),
        (
            BACKFILL,
            {"cursor": day(4), "forward": day(9), "earliest": "2025-09-05"},
            "the source has nothing before 2025-09-05",
        ),
        (UPDATE, {"cursor": SAFE}, SETTLE),
        (UPDATE, {"by_ids": True, "paced_until": SAFE}, "nothing after 2025-09-20T11"),
    ],
)
def test_a_person_is_told_why_there_is_nothing(operation, given, reason):
    decision = decide(operation, **given)

    assert decision.window is None
    assert reason in decision.reason


@pytest.mark.parametrize(
    ("operation", "given", "cut"),
    [
        (HARVEST, {"cursor": day(3), "end": NOON}, "to 2025-09-20T11:00:00.000000Z: now"),
        (HARVEST, {"cursor": day(3), "start": day(1)}, "BACKFILL asks for the past"),
        (HARVEST, {"cursor": day(3), "start": day(5)}, "is left to the next trigger"),
        (HARVEST, {"cursor": day(3), "fresh_until": day(5)}, "complete up to there"),
        (HARVEST, {}, "nobody says where to begin"),
        (BACKFILL, {"start": day(1), "forward": day(3)}, "to 2025-09-04"),
        (BACKFILL, {"start": day(1), "earliest": "2025-09-05"}, "has nothing older"),
    ],
)
def test_every_cut_is_written_down(operation, given, cut):
    (found,) = decide(operation, **given).as_json()["cuts"]

    assert cut in found


def test_a_decision_keeps_all_it_was_made_of():
    given = {"cursor": day(3), "fresh_until": day(9), "lookback": HOUR, "overlap": 60}

    assert decide(end=day(5), **given).as_json() == {
        "now": NOON,
        "nowSafe": SAFE,
        "cursor": day(3),
        "harvestedUpTo": None,
        "freshUntil": day(9),
        "lookbackSeconds": 3600,
        "overlapSeconds": 60,
        "asked": {"from": None, "to": day(5)},
        "alignedTo": "1s in UTC",
        "cuts": [],
    }


def test_what_the_source_cannot_have_is_not_asked_for():
    decision = decide(BACKFILL, start=parse_instant("1826-01-01"), earliest="2025-09-05T00:00:00Z")

    assert decision.window == Window(day(4), SAFE)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
def test_two_hundred_years_are_a_window(zone):
    asked = {"start": parse_instant("1826-01-01"), "end": day(0), "granularity": "DAY"}

    window = decide(BACKFILL, zone=zone, **asked).window

    assert timedelta(0) <= asked["start"] - window.start < timedelta(days=1)
    assert timedelta(0) <= asked["end"] - window.end < timedelta(days=1)


def test_an_ask_in_another_zone_is_the_same_instant():
    start = datetime.fromisoformat("2025-09-02T02:00:00+02:00")

    assert decide(start=start, end=day(4)).window == days(1, 4)


def test_a_window_in_the_future_is_refused():
    with pytest.raises(PlanError, match=r"is in the future .*it is .* now\)\. Give a start in the"):
        decide(start=NOON + timedelta(microseconds=1))


@pytest.mark.parametrize("end", [day(3), day(4)])
def test_an_empty_window_is_refused_at_once(end):
    with pytest.raises(PlanError, match=r"is empty\. Give a start that is earlier than the end"):
        Asked(day(4), end)
