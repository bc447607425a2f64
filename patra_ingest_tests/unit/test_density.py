"""How many records a span should hold."""

from datetime import timedelta

import pytest

from patra_ingest.model.window import Window
from patra_ingest.planner.density import Basis, Density, measure, read_density
from patra_ingest_tests.builders import day, days

HOUR = timedelta(hours=1)
BUSY = Density(((days(2, 4), 400.0), (days(6, 7), 0.0)), 100.0, Basis.HISTORY)


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (days(0, 1), 100),
        (days(2, 3), 400),
        (days(1, 3), 500),
        (days(3, 7), 600),
        (days(6, 7), 0),
        (Window(day(2), day(2) + 6 * HOUR), 100),
    ],
)
def test_a_span_holds_what_its_cells_say_and_the_average_elsewhere(window, expected):
    assert BUSY.expected(window) == expected


def test_a_silent_cell_holds_exactly_nothing_beside_a_loud_one():
    loud = Density(((days(0, 1), 0.0),), 1e17 / 3, Basis.HISTORY)

    assert loud.expected(Window(day(0), day(0) + 7 * HOUR)) == 0


def test_nobody_knows_without_history_or_declaration():
    assert measure([], days(0, 9), None) == Density()
    assert Density().expected(days(0, 9)) is None


def test_a_declared_density_counts_until_there_is_history():
    assert measure([], days(0, 9), 50.0) == Density((), 50.0, Basis.DECLARED)
    assert measure([(days(0, 1), 7)], days(8, 9), 50.0) == Density((), 7.0, Basis.HISTORY)


def test_a_history_of_nothing_is_a_history():
    assert measure([(days(0, 9), 0)], days(0, 9), 50.0).expected(days(0, 9)) == 0


def test_history_speaks_for_its_cells_and_by_its_average_for_the_rest():
    density = measure([(days(24, 48), 2400), (days(0, 12), 120)], days(0, 48), None)

    assert len(density.cells) == 36
    assert density.per_day == 2520 / 36
    assert density.expected(days(0, 12)) == pytest.approx(120)
    assert density.expected(days(24, 48)) == pytest.approx(2400)
    assert density.expected(days(12, 24)) == pytest.approx(12 * 70)


@pytest.mark.parametrize(("hours", "cells"), [(11, 0), (12, 1), (24, 1)])
def test_a_cell_needs_to_be_measured_by_half(hours, cells):
    history = [(Window(day(0), day(0) + hours * HOUR), 10)]

    assert len(measure(history, days(0, 48), None).cells) == cells


def test_a_window_too_short_for_cells_has_the_average_alone():
    short = Window(day(0), day(0) + timedelta(seconds=47))

    assert measure([(days(0, 1), 10)], short, None) == Density((), 10.0, Basis.HISTORY)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        pytest.param([(days(0, 4), 8), (days(0, 4), 400)], 2, id="the same window again"),
        pytest.param([(days(0, 4), 8), (days(0, 1), 400)], 2, id="once cut finer"),
        pytest.param([(days(0, 1), 2), (days(0, 4), 400)], 2, id="now cut finer"),
        pytest.param([(days(1, 2), 2), (days(0, 4), 400)], 2, id="inside of an old one"),
        pytest.param([(days(0, 4), 8), (days(2, 6), 400)], 2, id="an old one that goes on"),
        pytest.param([(days(1, 2), 2), (days(2, 3), 6), (days(0, 4), 400)], 4, id="neighbours"),
    ],
)
def test_the_newest_measurement_of_a_span_counts(history, expected):
    assert measure(history, days(20, 30), None).per_day == expected


@pytest.mark.parametrize(
    ("records", "reached"),
    [
        (50, day(0) + 12 * HOUR),
        (200, day(2)),
        (600, day(3)),
        (1000, day(4)),
        (1200, day(6)),
        (1201, day(7) + timedelta(days=0.01)),
        (10_000, day(9)),
    ],
)
def test_how_far_a_number_of_records_reaches(records, reached):
    assert BUSY.reach(day(0), records, day(9)) == reached


@pytest.mark.parametrize("density", [BUSY, Density(), Density((), 0.5, Basis.DECLARED)])
def test_a_density_is_the_same_after_writing_and_reading_it(density):
    assert read_density(density.as_json()) == density
