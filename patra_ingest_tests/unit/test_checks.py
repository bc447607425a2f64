"""The checklist as a whole: complete, silent about what is right, and not done after one wrong."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from patra_ingest.model.codes import Operation
from patra_ingest.spec.checks import CHECKS
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.subject import Subject
from patra_ingest_tests.unit import (
    test_checks_auth,
    test_checks_cap,
    test_checks_detail,
    test_checks_group,
    test_checks_limits,
    test_checks_nulls,
    test_checks_paging,
    test_checks_places,
    test_checks_planning,
    test_checks_query,
    test_checks_reach,
    test_checks_request,
    test_checks_response,
    test_checks_secrets,
    test_checks_select,
    test_checks_templates,
    test_checks_window,
    test_checks_xml,
)
from patra_ingest_tests.unit.check_packs import (
    BACKFILL,
    HARVEST,
    VALID,
    Refusal,
    a_pair,
    a_search,
    changed,
    problems_of,
    refusal,
    with_a_key,
)

TABLES = (
    test_checks_auth.CASES,
    test_checks_cap.CASES,
    test_checks_detail.CASES,
    test_checks_group.CASES,
    test_checks_limits.CASES,
    test_checks_nulls.CASES,
    test_checks_paging.CASES,
    test_checks_places.CASES,
    test_checks_planning.CASES,
    test_checks_query.CASES,
    test_checks_reach.CASES,
    test_checks_request.CASES,
    test_checks_response.CASES,
    test_checks_secrets.CASES,
    test_checks_select.CASES,
    test_checks_templates.CASES,
    test_checks_window.CASES,
    test_checks_xml.CASES,
)


def nobody_fails_this(_subject: Subject) -> Iterator[Problem]:
    yield from ()


@cache
def every_refusal(template: Path) -> tuple[Refusal, ...]:
    """Return what became of every failing pack of every table, with one more check at work."""
    known = (*CHECKS, nobody_fails_this)
    return tuple(refusal(template, case, known) for table in TABLES for case in table)


def test_every_check_has_a_failing_pack_and_one_without_would_be_named(sqlite_template):
    seen_by = set().union(*(found.seen_by for found in every_refusal(sqlite_template)))
    assert [check for check in (*CHECKS, nobody_fails_this) if check not in seen_by] == [
        nobody_fails_this
    ]


def test_every_problem_has_its_place_its_reason_and_its_remedy(sqlite_template):
    for found in every_refusal(sqlite_template):
        for problem in found.problems:
            assert re.fullmatch(r"[\w.\[\] -]+: \S.* \(\S.*\)", problem), problem


def test_no_check_is_listed_twice_and_no_two_have_one_name():
    names = [check.__name__ for check in CHECKS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("operation", [HARVEST, BACKFILL])
@pytest.mark.parametrize("valid", VALID, ids=lambda pack: pack.__name__)
def test_a_valid_pack_has_no_problem(sqlite_template, valid, operation: Operation):
    assert problems_of(sqlite_template, valid(), operation) == ()


def test_a_valid_pack_has_no_problem_with_its_key_at_hand_either(sqlite_template):
    assert problems_of(sqlite_template, with_a_key(), at_hand=frozenset({"k"})) == ()


def test_all_that_is_wrong_is_said_at_once(sqlite_template):
    form = changed(
        a_search(),
        {
            "provenance.base_url": "http://api.example.org",
            "http.connect_timeout": "0s",
            "rate.vendor": {"per_second": 3},
            "retry.give_up": [429],
            "endpoints.works.paging.stop": [],
            "endpoints.works.request.query.sort": "${order}",
            "endpoints.works.response.id": "$.a[",
            "endpoints.works.window.safety_lag": "0s",
        },
    )
    assert places_of(problems_of(sqlite_template, form)) == {
        "provenance.base_url",
        "http.connect_timeout",
        "rate.per_second",
        "retry.give_up",
        "endpoints.works.paging.stop",
        "endpoints.works.request.query.sort",
        "endpoints.works.response.id",
        "endpoints.works.window.safety_lag",
    }


def test_all_that_is_wrong_with_both_endpoints_of_a_pair_is_said_at_once(sqlite_template):
    form = changed(
        a_pair(),
        {
            "endpoints.works.detail.batch": 51,
            "endpoints.works.paging.page_size": 20000,
            "endpoints.fetch.response.id": "$.y:id",
            "endpoints.fetch.request.form": {"all": "yes"},
        },
    )
    assert places_of(problems_of(sqlite_template, form)) == {
        "endpoints.works.detail.batch",
        "endpoints.works.paging.page_size",
        "endpoints.fetch.response.id",
        "endpoints.fetch.request.query",
    }


@pytest.mark.parametrize(
    ("table", "column", "known"),
    [
        ("reg_prov_endpoint_def", "http_method_code", "Known: GET, POST"),
        ("reg_prov_window_offset_cfg", "upper_bound_code", "Known: INCLUSIVE, EXCLUSIVE, OPEN"),
        ("reg_prov_retry_cfg", "backoff_policy_type_code", "Known: "),
    ],
)
def test_a_code_that_a_hand_wrote_and_no_dictionary_has_is_refused(
    sqlite_template, table, column, known
):
    by_hand = f"UPDATE {table} SET {column} = 'WEIRD'"
    [problem] = problems_of(sqlite_template, a_search(), by_hand=by_hand)
    assert re.match(rf"{table} #\d+\.{column}: The dictionary \w+ has no code 'WEIRD'", problem)
    assert known in problem


def places_of(problems: tuple[str, ...]) -> set[str]:
    return {problem.partition(": ")[0] for problem in problems}
