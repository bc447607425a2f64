"""Every behaviour of real sources that only a page or a window shows: the ledger is the truth.

The habits are switched on in a real sandbox; the packs say what the source does; no code does.
"""

from dataclasses import dataclass, field
from datetime import datetime

import pytest

from patra_ingest_tests.pipeline.behaviours.drill import END, START, assert_same, at


@dataclass(frozen=True)
class Case:
    """One harvest that must be complete: the habits of the source, and how it must have ended."""

    number: int
    endpoint: str
    face: str
    habits: tuple[str, ...] = ()
    start: datetime = START
    end: datetime = END
    lanes: int = 1
    verdicts: frozenset[str] = field(default=frozenset({"COMPLETE"}))
    cut: bool = False  # it can only be had by cutting slices again

    def __str__(self) -> str:
        return f"{self.number}-{self.endpoint}-{'-and-'.join(self.habits) or 'plain'}"


DRIFTS = frozenset({"COMPLETE", "DRIFTED"})
NEW_YORK_DAYS = {
    "start": datetime.fromisoformat("2025-11-01T00:00:00-04:00"),
    "end": datetime.fromisoformat("2025-11-04T00:00:00-05:00"),
}
CAIRO_DAYS = {  # of which the first has 25 hours
    "start": datetime.fromisoformat("2025-10-30T00:00:00+03:00"),
    "end": datetime.fromisoformat("2025-11-03T00:00:00+02:00"),
}
CASES = (
    Case(1, "search", "epmc", ("echo-cursor",)),
    Case(2, "works", "works"),
    Case(2, "one-cursor", "works", ("same-cursor",)),
    Case(3, "studies", "ctgov"),
    Case(3, "studies", "ctgov", ("full-last-page",)),
    Case(3, "studies", "ctgov", ("empty-middle",)),
    Case(3, "studies", "ctgov", ("full-last-page", "empty-middle")),
    Case(4, "details", "biorxiv"),
    Case(4, "details", "biorxiv", ("small-pages",)),
    Case(4, "pubs", "biorxiv", ("small-pages",)),
    Case(5, "search", "pubmed", ("clamped-count",), cut=True),
    Case(6, "dois", "datacite", ("clamped-page",), cut=True),
    Case(8, "dois", "datacite", ("lost-params",), at(1), at(4)),
    Case(9, "articles", "doaj", ("next-past-cap",), cut=True),
    Case(9, "unaware", "doaj", ("next-past-cap",), cut=True),
    Case(12, "search", "epmc", ("zoned-days",), **NEW_YORK_DAYS),
    Case(12, "eastern", "epmc", ("eastern-days",), **CAIRO_DAYS),
    Case(13, "events", "openfda", ("nothing-is-404",), at(-2), at(3)),
    Case(15, "search", "epmc", ("text-total",)),
    Case(15, "search", "epmc", ("no-total",)),
    Case(15, "search", "epmc", ("total-off-by-two",), verdicts=DRIFTS),
    Case(17, "events", "openfda", ("skip-degrades",)),
    Case(18, "works", "works", ("burst-429",)),
    Case(19, "works", "works", ("one-at-a-time",), lanes=4),
    Case(20, "search", "hal", ("restamped",), verdicts=DRIFTS),
    Case(20, "search", "hal", ("restamped", "descending"), verdicts=DRIFTS),
    Case(21, "oai", "oai"),
    Case(21, "oai", "oai", ("odd-xml",)),
    Case(22, "search", "pubmed", ("big-day", "clamped-count"), cut=True),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_ledger_ends_with_exactly_what_the_source_has(drill, case):
    harvest = drill(case.number, *case.habits)

    harvest.harvest(case.endpoint, case.start, case.end, case.lanes)

    records = harvest.ledger(case.endpoint)
    assert_same(records, harvest.truth(case.face, case.start, case.end))
    assert len(records.versions) > 200
    assert "FAILED" not in harvest.tasks(case.endpoint), harvest.errors()
    assert {proof["verdict"] for proof in harvest.proofs(case.endpoint)} <= case.verdicts
    assert harvest.was_cut(case.endpoint) == case.cut
    assert harvest.cursor(case.endpoint) == case.end


def test_no_page_of_a_day_in_new_york_is_asked_for_twice_or_not_at_all(drill):
    harvest = drill(12, "zoned-days")

    harvest.harvest("search", **NEW_YORK_DAYS)

    landed = sorted(proof["landed"] for proof in harvest.proofs("search"))
    days = [(1, 4, 2, 4), (2, 4, 3, 5), (3, 5, 4, 5)]  # the second has 25 hours
    truth = [
        harvest.truth(
            "epmc",
            datetime.fromisoformat(f"2025-11-0{first}T00:00:00-0{before}:00"),
            datetime.fromisoformat(f"2025-11-0{past}T00:00:00-0{after}:00"),
        )
        for first, before, past, after in days
    ]
    assert landed == sorted(len(one.versions) for one in truth)
    assert max(landed) > 102


def test_a_link_is_followed_past_the_cap_without_one_refusal(drill):
    harvest = drill(17, "skip-degrades")

    harvest.harvest("events")

    assert harvest.box.stats()["by_status"] == {"200": 12}


def test_one_request_at_a_time_is_never_rejected_whatever_the_lanes(drill):
    harvest = drill(19, "one-at-a-time")

    harvest.harvest("works", lanes=4)

    stats = harvest.box.stats()
    assert stats["by_status"].keys() == {"200"}
    assert stats["in_flight_max"] == 1


def test_nothing_of_a_title_is_lost_in_odd_xml(drill):
    harvest = drill(21, "odd-xml")

    harvest.harvest("oai")

    titles = harvest.ledger("oai").titles
    assert titles["oai:sandbox.example:0"] == "Observation 0 of P<0.05 & H2O, version 1"
    assert harvest.home.one("SELECT COUNT(*) FROM ing_quarantine") == 0


def test_records_that_change_during_a_walk_are_held_as_they_are_in_the_end(drill):
    harvest = drill(20, "restamped")

    harvest.harvest("search")

    changed = {name for name, version in harvest.ledger("search").versions.items() if version == 2}
    first, second = harvest.proofs("search")
    assert len(changed) > 20
    assert (first["verdict"], second["verdict"]) == ("DRIFTED", "COMPLETE")
    assert first["duplicates"] > 0


def test_what_jumps_over_a_descending_walk_makes_it_begin_again(drill):
    harvest = drill(20, "restamped", "descending")

    harvest.harvest("search")

    assert harvest.failed_runs("search") == 1
    assert harvest.tasks("search") == {"SUCCEEDED": 2}


def test_deleted_headers_without_metadata_are_deletes(drill):
    harvest = drill(21, "odd-xml")

    harvest.harvest("oai")

    assert len(harvest.ledger("oai").deleted) == 46  # one in thirteen of 600
