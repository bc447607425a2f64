"""What an answer means when the pack has a rule for it."""

from dataclasses import replace
from datetime import timedelta

import orjson
import pytest

from patra_ingest.errors import (
    CredentialRefused,
    EndpointHalted,
    PageTooBig,
    RequestRejected,
    SliceMustRestart,
    SliceTooBig,
    Throttled,
    TransientError,
)
from patra_ingest.executor.triage import judge
from patra_ingest.expr.xml_tree import read_xml
from patra_ingest.model.codes import ResliceReason
from patra_ingest.spec.places import ErrorRule
from patra_ingest.spec.words import Action
from patra_ingest_tests.builders import NOON, a_response, a_spec

PLAIN = a_spec()
OAI = {"oai": "http://www.openarchives.org/OAI/2.0/"}


def judged(response, *rules, base=PLAIN):
    spec = base.model_copy(update={"errors": tuple(ErrorRule.model_validate(r) for r in rules)})

    def read_tree():
        try:
            return orjson.loads(response.body)
        except orjson.JSONDecodeError as error:
            raise TransientError(str(error)) from error

    return judge(response, spec, read_tree, NOON)


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("RETRY", TransientError),
        ("THROTTLE", Throttled),
        ("RESTART_SLICE", SliceMustRestart),
        ("RESLICE", SliceTooBig),
        ("SHRINK_PAGE", PageTooBig),
        ("RENEW_TOKEN", CredentialRefused),
        ("REJECT", RequestRejected),
        ("FATAL", EndpointHalted),
    ],
)
@pytest.mark.parametrize("status", [200, 404, 500])
def test_every_action_is_an_error_that_says_what_was_seen(action, expected, status):
    rule = {"when": {"text": "odd"}, "do": action, "note": "the source is odd"}

    error = judged(a_response(b'{"error": "odd", "api_key": "CANARY-1"}', status), rule)

    assert type(error) is expected
    seen = f"https://api.example.org/works answered {status} (the source is odd"
    assert seen in str(error)
    assert '{"error": "odd"' in str(error)
    assert "CANARY" not in str(error)


@pytest.mark.parametrize("action", [Action.EMPTY, Action.GONE])
def test_a_success_without_items_is_no_error(action):
    assert judged(a_response(status=404), {"when": {"status": 404}, "do": action}) is action


def test_every_action_has_its_meaning():
    rules = [{"when": {"status": 200}, "do": action} for action in Action]

    assert all(judged(a_response(), rule) is not None for rule in rules)


def test_too_many_results_ask_for_a_finer_cut():
    error = judged(a_response(status=400), {"when": {"status": 400}, "do": "RESLICE"})

    assert isinstance(error, SliceTooBig)
    assert error.reason is ResliceReason.RESULT_CAP


def test_the_first_rule_that_holds_decides_and_without_one_the_status_does():
    rules = (
        {"when": {"status": 404, "text": "cursor"}, "do": "RESTART_SLICE"},
        {"when": {"status": 404}, "do": "EMPTY"},
        {"when": {"status": [403, 404]}, "do": "FATAL"},
    )

    assert type(judged(a_response(b"cursor-invalid", 404), *rules)) is SliceMustRestart
    assert judged(a_response(b"Resource not found.", 404), *rules) is Action.EMPTY
    assert type(judged(a_response(b"", 410), *rules)) is RequestRejected
    assert judged(a_response(b"cursor"), *rules) is None


@pytest.mark.parametrize(
    ("wait", "header", "expected"),
    [
        (None, None, 1),
        (None, "7", 7),
        (None, "0", 1),
        ("30s", None, 30),
        ("30s", "7", 30),
        ("30s", "90", 90),
        ("10ms", None, 1),
    ],
)
def test_throttling_waits_for_the_longest_of_the_pack_the_source_and_a_second(
    wait, header, expected
):
    headers = {"retry_after": header} if header else {}
    rule = {"when": {"text": "Rate exceeded"}, "do": "THROTTLE", "wait": wait}

    error = judged(a_response(b"Rate exceeded.", **headers), rule)

    assert isinstance(error, Throttled)
    assert error.retry_at == NOON + timedelta(seconds=expected)


@pytest.mark.parametrize(("header", "expected"), [(None, 30), ("7", 30), ("90", 90)])
def test_a_retry_with_a_wait_comes_back_after_it(header, expected):
    headers = {"retry_after": header} if header else {}

    error = judged(
        a_response(status=500, **headers), {"when": {"status": 500}, "do": "RETRY", "wait": "30s"}
    )

    assert isinstance(error, Throttled)
    assert error.retry_at == NOON + timedelta(seconds=expected)


def test_a_forbidden_that_the_pack_declares_as_throttle_halts_nothing():
    rule = {"when": {"status": 403, "header": "X-Reason", "equals": "quota"}, "do": "THROTTLE"}

    told = replace(a_response(status=403), headers={"x-reason": "quota"})

    assert type(judged(told, rule)) is Throttled
    assert type(judged(a_response(status=403), rule)) is EndpointHalted


def test_the_body_is_read_once_for_all_rules():
    read = []
    rules = [{"when": {"path": f"$.e{n}", "exists": True}, "do": "FATAL"} for n in range(5)]
    errors = tuple(map(ErrorRule.model_validate, rules))
    spec = PLAIN.model_copy(update={"errors": errors})

    assert judge(a_response(), spec, lambda: read.append(1) or {}, NOON) is None
    assert read == [1]


def test_a_rule_about_a_body_that_cannot_be_read_leaves_the_word_to_the_status():
    rules = (
        {"when": {"path": "$.errCode", "exists": True}, "do": "FATAL"},
        {"when": {"path": "$.resultList", "exists": False}, "do": "FATAL"},
    )
    html = b"<html>502 Bad Gateway</html>"

    assert type(judged(a_response(html, 502), *rules)) is TransientError
    assert judged(a_response(html), *rules) is None


@pytest.mark.parametrize(
    ("code", "expected"),
    [("noRecordsMatch", Action), ("badResumptionToken", SliceMustRestart), ("x", EndpointHalted)],
)
def test_oai_errors_inside_a_200_have_their_meaning(code, expected):
    at = "$.oai:OAI-PMH.oai:error"
    rules = (
        {"when": {"path": f"{at}.@code", "equals": "noRecordsMatch"}, "do": "EMPTY"},
        {"when": {"path": f"{at}.@code", "equals": "badResumptionToken"}, "do": "RESTART_SLICE"},
        {"when": {"path": at, "exists": True}, "do": "FATAL"},
    )
    body = f'<OAI-PMH xmlns="{OAI["oai"]}"><error code="{code}"/></OAI-PMH>'.encode()
    spec = PLAIN.model_copy(update={"errors": tuple(map(ErrorRule.model_validate, rules))})

    assert type(judge(a_response(body), spec, lambda: read_xml(body, OAI), NOON)) is expected


@pytest.mark.parametrize(
    ("tree", "field"),
    [
        pytest.param(
            {"message": [{"type": "filter-not-available", "value": "has-x", "message": "No"}]},
            "has-x (filter-not-available)",
            id="Crossref",
        ),
        pytest.param(
            {"detail": [{"loc": ["query", "rows"], "msg": "no", "type": "int_parsing"}]},
            "query.rows (int_parsing)",
            id="FastAPI",
        ),
        pytest.param({"errors": [{"source": {"parameter": "page[size]"}}]}, "page[size]", id="API"),
        pytest.param({"errors": [{"source": {"pointer": "/data/x"}}]}, "/data/x", id="pointer"),
        pytest.param({"errors": [{"field": "rows"}, {"field": "from"}]}, "rows, from", id="two"),
        pytest.param({"invalid-params": [{"name": "sort", "reason": "x"}]}, "sort (x)", id="7807"),
        pytest.param({"error": {"param": "limit", "code": "too_big"}}, "limit (too_big)", id="one"),
    ],
)
@pytest.mark.parametrize("rules", [(), ({"when": {"status": 400}, "do": "REJECT"},)])
def test_a_rejection_names_the_field_that_the_source_blames(tree, field, rules):
    error = judged(a_response(orjson.dumps(tree), 400), *rules)

    assert isinstance(error, RequestRejected)
    assert f"(field: {field}): " in str(error)


@pytest.mark.parametrize(
    "body",
    [
        b"Resource not found.",
        b'{"name": "ValidationError", "message": "no"}',
        b'{"value": 3}',
        b'{"parameter": null, "field": " ", "loc": []}',
        b'["rows"]',
        b'{"field": "rows"' + b" " * 70_000 + b"}",
        b"[" * 1000 + b"]" * 1000,
    ],
)
def test_where_no_field_is_blamed_none_is_named(body):
    error = judged(a_response(body, 400))

    assert isinstance(error, RequestRejected)
    assert "(field: " not in str(error)


def test_at_most_three_fields_are_named_each_once_short_and_without_secrets():
    names = ["a", "a", "joe.doe@example.org", "x" * 500, "d"]
    body = orjson.dumps({"errors": [{"field": name} for name in names]})

    told = str(judged(a_response(body, 400))).split("field: ")[1].split("): ")[0]

    assert told.split(", ")[:2] == ["a", "j…@example.org"]
    assert len(told.split(", ")) == 3
    assert len(told) < 120


def test_a_key_that_is_blamed_is_not_shown():
    key = "CANARY-0123456789"
    body = orjson.dumps({"errors": [{"type": "no-such-key", "value": key}]})

    error = judged(replace(a_response(body, 400), hidden=frozenset({key})))

    assert "field: *** (no-such-key)" in str(error)
    assert "CANARY" not in str(error)
