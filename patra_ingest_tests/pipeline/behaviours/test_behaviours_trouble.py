"""Behaviours that stop a harvest: it never ends well while they last, and loses nothing after."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from patra_ingest_tests.pipeline.behaviours.drill import END, START, assert_same, at


def test_a_page_that_comes_for_ever_is_a_circle_and_no_end(drill):
    harvest = drill(6, "clamped-page")

    harvest.harvest("unaware")

    assert harvest.tasks("unaware") == {"FAILED": 2}
    assert all("circle" in error for error in harvest.errors())
    assert harvest.cursor("unaware") is None
    assert harvest.box.stats()["requests"] < 200


def test_a_cursor_that_restarts_is_noticed_and_the_slice_walked_again(drill):
    harvest = drill(7, "restarting-cursor")

    harvest.harvest("dois")

    assert_same(harvest.ledger("dois"), harvest.truth("datacite"))
    assert harvest.tasks("dois") == {"SUCCEEDED": 2}
    assert {proof["verdict"] for proof in harvest.proofs("dois")} == {"COMPLETE"}
    assert harvest.failed_runs("dois") == 2


@pytest.mark.parametrize(
    ("endpoint", "face"), [("oai", "oai"), ("zenodo", "oai"), ("works", "works")]
)
def test_a_token_that_died_restarts_its_slice(drill, endpoint, face):
    harvest = drill(10, "dying-token")
    batches = []

    def linger(done):
        batches.append(done)
        if len(batches) == 2:
            time.sleep(0.5)  # longer than the token lives

    harvest.harvest(endpoint, on_batch=linger)

    assert_same(harvest.ledger(endpoint), harvest.truth(face))
    assert harvest.tasks(endpoint) == {"SUCCEEDED": 2}
    assert harvest.cursor(endpoint) == END
    assert len(harvest.box.stats()["pages"]["repeated"]) == 2  # those before the token died


def test_an_end_that_was_moved_is_never_taken_for_the_end_asked_for(drill):
    harvest = drill(11, "clamped-until")
    shown = START + 0.6 * (END - START)

    harvest.harvest("oai")

    # Three days and a half are shown: three slices are proved, the fourth stops the endpoint.
    assert harvest.cursor("oai") == at(3)
    assert_same(harvest.ledger_up_to("oai", at(3)), harvest.truth("oai", START, at(3)))
    assert harvest.holds()
    assert at(3) < shown < at(4)

    harvest.box.behave()
    harvest.resume()
    harvest.work_on()  # what was planned and held back
    harvest.harvest("oai")

    assert_same(harvest.ledger("oai"), harvest.truth("oai"))
    assert harvest.cursor("oai") == END


@pytest.mark.parametrize(
    ("endpoint", "face", "habit"),
    [
        ("search", "epmc", "error-code"),
        ("search", "epmc", "bare-envelope"),
        ("feed", "arxiv", "error-entry"),
    ],
)
def test_an_error_with_status_200_holds_the_endpoint_until_a_person_resumes(
    drill, endpoint, face, habit
):
    harvest = drill(14, habit)

    harvest.harvest(endpoint)

    assert harvest.codes(endpoint) == {"L4"}
    assert harvest.cursor(endpoint) is None
    assert not harvest.ledger(endpoint).versions
    assert harvest.holds()

    harvest.box.behave()
    harvest.resume()
    harvest.work_on()  # what was planned and held back
    harvest.harvest(endpoint)

    assert_same(harvest.ledger(endpoint), harvest.truth(face))
    assert harvest.cursor(endpoint) == END


def test_a_sentence_about_the_rate_is_throttling_and_not_an_empty_feed(drill):
    harvest = drill(14, "rate-text")
    harvest.plan("feed")
    harvest.home.work()

    assert harvest.tasks("feed") == {"QUEUED": 3}
    assert harvest.cursor("feed") is None
    assert not harvest.holds()

    harvest.box.behave()
    harvest.pass_silence()
    harvest.work_on()

    assert_same(harvest.ledger("feed"), harvest.truth("arxiv"))
    assert harvest.cursor("feed") == END


def test_a_total_that_is_off_by_two_fails_where_no_tolerance_is_declared(drill):
    harvest = drill(15, "total-off-by-two")

    harvest.harvest("strict")

    assert harvest.tasks("strict") == {"FAILED": 1}
    assert harvest.codes("strict") == {"INCOMPLETE"}
    assert harvest.cursor("strict") is None


def test_ids_that_come_late_are_kept_and_those_that_never_come_are_listed(drill):
    harvest = drill(16, "lost-ids")

    harvest.harvest("search")

    told = harvest.box.truth(START, END, "pubmed")
    assert_same(harvest.ledger("search"), harvest.truth("pubmed"))
    assert harvest.listed_ids() == set(told.gone)
    assert len(told.gone) > 30
    assert harvest.cursor("search") == END


@pytest.mark.parametrize(
    "habits",
    [
        ("null-ids",),
        ("merged-ids",),
        ("poison-id",),
        ("null-ids", "merged-ids", "poison-id"),
    ],
    ids=" and ".join,
)
def test_what_is_wrong_with_some_ids_of_a_batch_costs_none_of_the_others(drill, habits):
    harvest = drill(16, *habits)

    harvest.harvest("papers")

    told = harvest.box.truth(START, END, "s2")
    assert_same(harvest.ledger("papers"), harvest.truth("s2"))
    assert harvest.listed_ids() >= {*told.gone, *told.bad}
    assert told.gone or told.merged or told.bad


@pytest.mark.parametrize(
    ("endpoint", "habit"), [("works", "budget-gone"), ("epoch", "reset-as-epoch")]
)
def test_a_budget_that_is_gone_parks_the_harvest_and_not_a_request_more_leaves(
    drill, endpoint, habit
):
    harvest = drill(18, habit)
    harvest.plan(endpoint)
    harvest.home.work()

    asked = harvest.box.stats()["requests"]
    due = harvest.due(endpoint)
    now = datetime.now(UTC)
    assert asked == 1
    assert now + timedelta(hours=14) < due < now + timedelta(hours=16)

    harvest.home.pass_pauses()
    harvest.home.work()
    assert harvest.box.stats()["requests"] == asked  # the budget holds back whoever comes

    harvest.box.behave()
    harvest.pass_silence()
    harvest.work_on()

    assert_same(harvest.ledger(endpoint), harvest.truth("works"))
    assert harvest.cursor(endpoint) == END


def test_a_crash_half_way_through_a_descending_walk_moves_no_watermark(drill):
    harvest = drill(20, "descending")
    harvest.plan("search")

    harvest.crash_after(pages=3)

    assert harvest.cursor("search") is None
    assert len(harvest.ledger("search").versions) == 120

    harvest.home.pass_leases()
    harvest.work_on()

    assert_same(harvest.ledger("search"), harvest.truth("hal"))
    assert harvest.cursor("search") == END


@pytest.mark.parametrize(
    ("number", "endpoint", "face", "habits"),
    [
        (1, "search", "epmc", ("echo-cursor",)),
        (2, "one-cursor", "works", ("same-cursor",)),  # the page that came is not sent again
        (3, "studies", "ctgov", ("full-last-page", "empty-middle")),
        (4, "details", "biorxiv", ("small-pages",)),
        (8, "dois", "datacite", ("lost-params",)),
        (16, "search", "pubmed", ("lost-ids",)),
        (16, "papers", "s2", ("null-ids", "merged-ids", "poison-id")),
        (20, "search", "hal", ("restamped",)),
        (21, "oai", "oai", ("odd-xml",)),
        (22, "search", "pubmed", ("big-day", "clamped-count")),
    ],
)
def test_a_crash_in_the_middle_changes_nothing_of_the_end(drill, number, endpoint, face, habits):
    harvest = drill(number, *habits)
    harvest.plan(endpoint)

    harvest.crash_after(pages=2)
    harvest.home.pass_leases()
    harvest.work_on()

    assert_same(harvest.ledger(endpoint), harvest.truth(face))
    assert harvest.cursor(endpoint) == END
