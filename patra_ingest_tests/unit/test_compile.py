"""A declaration becomes a spec, or a list of reasons; and a spec has one identity."""

from datetime import timedelta

import pytest

from patra_ingest.errors import CompileError
from patra_ingest.spec.compile import compile_spec, expr_proto
from patra_ingest.spec.declaration import Overrides
from patra_ingest.spec.snapshot import SpecSnapshot
from patra_ingest.spec.words import StopRule
from patra_ingest_tests.builders import a_declaration, a_spec

WINDOW = "${window.from}/${window.last}"


def compiled(params=None, trigger=None, **groups):
    return compile_spec(a_declaration(**groups), Overrides(trigger or {}, params or {}))


def refusal(trigger):
    with pytest.raises(CompileError) as caught:
        compiled(trigger=trigger)
    return caught.value


def test_a_spec_can_be_stored_and_read_back():
    query = {"q": "${params.topic}", "f": WINDOW, "c": "${page.token}"}
    spec = compiled(params={"topic": "ants"}, request={"query": query}).spec

    assert SpecSnapshot.model_validate_json(spec.model_dump_json()) == spec


def test_a_spec_never_changes():
    with pytest.raises(ValueError, match="frozen"):
        compiled().spec.provenance = "other"


def test_the_refusal_lists_every_problem_and_the_remedy():
    error = refusal({"rate": {"cost": 0}, "paging": {"page_size": 0}})

    assert len(error.problems) == 2
    assert "does not compile: --set paging.page_size: 0 does not fit" in str(error)
    assert error.remedy == "Correct what was asked for."


@pytest.mark.parametrize(
    ("group", "key", "value"),
    [
        pytest.param("paging", "page_sise", 5, id="an unknown key"),
        pytest.param("paging", "page_size", "many", id="a word where a number belongs"),
        pytest.param("paging", "stop", "SHORT_PAGE", id="one where a list belongs"),
        pytest.param("paging", "stop", ["TIRED"], id="an unknown rule"),
        pytest.param("paging", "type", "GUESS", id="an unknown kind of paging"),
        pytest.param("window", "granularity", "WEEK", id="an unknown granularity"),
        pytest.param("window", "initial_from", "soon", id="no instant"),
        pytest.param("http", "read_timeout", "long", id="a word as a timeout"),
        pytest.param("rate", "per_second", "fast", id="a word as a rate"),
        pytest.param("request", "query", "q=1", id="text where names belong"),
        pytest.param("request", "query", {"q": 1.5}, id="a number that is not written whole"),
        pytest.param("request", "query", {"q": True}, id="a yes where text belongs"),
        pytest.param("request", "method", "FETCH", id="an unknown method"),
        pytest.param("request", "base_url", 7, id="a number as an address"),
        pytest.param("retry", "max_attempts", None, id="nothing inherits"),
    ],
)
def test_whatever_a_person_types_is_refused_in_words_or_inherits(group, key, value):
    if value is None:
        assert compiled(trigger={group: {key: value}}).spec == a_spec()
        return

    error = refusal({group: {key: value}})

    assert any(key.split("_")[0] in problem for problem in error.problems)


def test_the_fingerprint_is_of_everything_and_the_proto_only_of_the_question():
    first = compiled()
    slower = compiled(rate={"per_second": 0.5})
    elsewhere = compiled(request={"base_url": "https://mirror.example.org"})
    other = compiled(request={"query": {"q": "x", "f": WINDOW, "c": "${page.token}"}})

    prints = {spec.fingerprint for spec in (first, slower, elsewhere, other)}
    assert len(prints) == 4
    assert first.proto_hash == slower.proto_hash == elsewhere.proto_hash != other.proto_hash
    assert first.fingerprint == compiled().fingerprint


def test_parameters_of_the_trigger_are_part_of_the_question():
    query = {"q": "${params.topic}", "f": WINDOW, "c": "${page.token}"}
    ants, bees = (
        compiled({"topic": topic}, request={"query": query}) for topic in ("ants", "bees")
    )

    assert ants.proto_hash != bees.proto_hash
    assert expr_proto(ants.spec)["params"] == {"topic": "ants"}


def test_what_a_source_cannot_give_is_a_warning():
    silent = compiled(paging={"total": None, "stop": ["NO_TOKEN", "SAME_TOKEN"]})
    clear = compiled(paging={"stop": ["SHORT_PAGE"]})

    assert [text.partition(":")[0] for text in silent.spec.warnings] == ["NO_TOTAL", "EXTRA_PAGE"]
    assert clear.spec.warnings == ()
    assert silent.fingerprint != clear.fingerprint


def test_offset_paging_forgets_what_only_tokens_need():
    spec = compiled(
        request={"query": {"f": WINDOW, "offset": "${page.offset}"}},
        paging={"type": "OFFSET", "next_token": None, "stop": ["SHORT_PAGE"]},
    ).spec

    assert spec.paging.type == "OFFSET"
    assert spec.paging.stop == (StopRule.SHORT_PAGE,)


def test_every_value_keeps_its_origin():
    origins = compiled(trigger={"rate": {"burst": 5}}).origins

    assert origins["rate.burst"] == "trigger"
    assert origins["paging.page_size"] == "endpoint works"
    assert origins["retry.max_attempts"] == "platform"


def test_a_person_may_type_a_duration_in_words():
    assert compiled(trigger={"window": {"max_span": "6h"}}).spec.window.max_span == timedelta(
        hours=6
    )


@pytest.mark.parametrize(("said", "expected"), [({}, 2.5), ({"per_second": 0.5}, 0.5)])
def test_an_interval_alone_says_how_fast(said, expected):
    rate = {"key": "example", "min_interval": timedelta(milliseconds=400), **said}

    assert compiled(rate=rate).spec.rate.per_second == expected
