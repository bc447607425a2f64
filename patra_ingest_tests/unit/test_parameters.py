"""What a pack leaves open: how it is filled in, and how a missing or wrong value is told."""

from copy import deepcopy

import pytest
import yaml

from patra_ingest.errors import PackError
from patra_ingest.packs import FOLDER, TEMPLATES, builtin_packs, builtin_templates, find_pack
from patra_ingest.registry.pack import parse_pack, read_pack
from patra_ingest.registry.pack_file import PackText, read_pack_file, read_pack_text
from patra_ingest.registry.parameters import read_filling
from patra_ingest_tests.builders import an_endpoint, pack_text

GRAIN = {
    "description": "Grain.",
    "default": "SECOND",
    "one_of": {"SECOND": {"lag": "1h"}, "DAY": {"lag": "1d"}},
}
OAI = {"code": "asu", "base_url": "https://repository.example.edu/oai"}


def open_pack(parameters, **provenance):
    value = deepcopy(pack_text())
    value["provenance"] |= provenance
    return {**value, "parameters": parameters}


def parsed(value, **given):
    return parse_pack(PackText("shelf.yaml", value, {}), None, given)


def refusal(value, **given):
    with pytest.raises(PackError) as caught:
        parsed(value, **given)
    return str(caught.value)


def test_a_value_stands_where_its_place_stood_alone_or_inside_a_text():
    parameters = {"code": {"description": "Name."}, "host": {"description": "Host."}}
    value = open_pack(
        parameters, code="${parameters.code}", base_url="https://${parameters.host}/v1"
    )

    pack = parsed(value, code="annex", host="annex.example.org")

    assert pack.provenance.code == "annex"
    assert pack.provenance.base_url == "https://annex.example.org/v1"
    assert pack.parameters == {}  # what is applied is a source like any other


def test_what_is_given_nothing_is_left_out_and_so_is_a_part_that_has_become_empty():
    value = open_pack(
        {"docs": {"description": "Docs.", "default": ""}}, docs_url="${parameters.docs}"
    )
    value["planning"] = {"earliest": "${parameters.docs}"}

    pack = parsed(value)

    assert pack.provenance.docs_url is None
    assert pack.planning is None


def test_a_choice_brings_what_follows_from_it():
    works = an_endpoint(window={"safety_lag": "${parameters.grain.lag}", "granularity": "SECOND"})
    value = {**pack_text(works=works), "parameters": {"grain": GRAIN}}

    lags = [parsed(value, **given).endpoints["works"].window.safety_lag for given in GIVEN_GRAINS]

    assert [lag.total_seconds() for lag in lags] == [3600, 86400]


GIVEN_GRAINS = [{}, {"grain": "DAY"}]


@pytest.mark.parametrize("given", ["3", "2.5"])
def test_where_the_default_is_a_number_the_value_is_one(given):
    value = open_pack({"speed": {"description": "Rate.", "default": 1}})
    value["rate"] = {"key": "x", "per_second": "${parameters.speed}"}

    assert parsed(value, speed=given).rate.per_second == float(given)


@pytest.mark.parametrize(
    ("value", "given", "said"),
    [
        pytest.param(
            open_pack({"code": {"description": "Name."}, "host": {"description": "Host."}}),
            {},
            "leaves code and host open. Say what is meant: --param code=… --param host=….",
            id="nothing is given",
        ),
        pytest.param(
            open_pack({"grain": GRAIN}),
            {"grian": "DAY"},
            "shelf.yaml has no parameter grian (did you mean grain?).",
            id="a slip of the pen",
        ),
        pytest.param(
            pack_text(), {"code": "x"}, "has no parameter code (it has none)", id="none at all"
        ),
        pytest.param(
            open_pack({"grain": GRAIN}),
            {"grain": "WEEK"},
            "the parameter grain cannot be 'WEEK'. Choose: SECOND, DAY.",
            id="no such choice",
        ),
        pytest.param(
            open_pack({"speed": {"description": "Rate.", "default": 1}}),
            {"speed": "fast"},
            "the parameter speed is 'fast', which is no number. Its default is 1.",
            id="no number",
        ),
        pytest.param(
            open_pack({}, name="${parameters.nmae}"),
            {},
            "${parameters.nmae} is not declared under parameters",
            id="never declared",
        ),
        pytest.param(
            open_pack(
                {"name": {"description": "N.", "default": "x"}}, name="${parameters.name|lower}"
            ),
            {},
            "${parameters.name|lower} is not declared under parameters",
            id="a place is a name and no more",
        ),
        pytest.param(
            open_pack({"host": {"description": "H.", "default": ""}}, name="At ${parameters.host}"),
            {},
            "${parameters.host} is empty inside a longer text",
            id="a hole in a text",
        ),
        pytest.param(
            open_pack({"host": {"default": "x"}}),
            {},
            "parameters.host.description: ",
            id="no words",
        ),
        pytest.param(
            open_pack({"code": {"description": "N."}}, code="${parameters.code}"),
            {"code": "Not A Name"},
            "provenance.code: 'Not A Name' does not fit",
            id="a value that the language refuses",
        ),
    ],
)
def test_what_cannot_be_filled_in_is_refused_in_words(value, given, said):
    assert said in refusal(value, **given)


def test_a_place_that_nobody_declared_is_told_with_its_line():
    text = yaml.safe_dump(open_pack({}, docs_url="${parameters.docs}"), sort_keys=False)
    line = text[: text.index("docs_url")].count("\n") + 1

    with pytest.raises(PackError, match=rf"a pack, line {line}: "):
        parse_pack(read_pack_text(text, "a pack"))


def test_the_templates_are_the_packs_that_leave_something_open_and_only_those():
    everything = {
        path.stem: read_filling(read_pack_file(path), {}) for path in FOLDER.glob("*.yaml")
    }

    assert {name for name, filling in everything.items() if filling.missing} == set(TEMPLATES)
    assert {path.stem for path in builtin_packs()} == everything.keys() - set(TEMPLATES)
    assert [path.stem for path in builtin_templates()] == list(TEMPLATES)


def test_a_built_in_pack_is_found_by_its_name_unless_a_file_is_called_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named = (tmp_path / "x").relative_to(tmp_path).with_name("oaipmh")

    assert find_pack(named) == FOLDER / "oaipmh.yaml"
    named.write_text("a: 1")
    assert find_pack(named) == named
    assert find_pack(named.with_name("nothing")) == named.with_name("nothing")


def using(**words):
    value = deepcopy(pack_text())
    value["endpoints"]["records"] = words
    return value


def test_an_endpoint_begins_with_the_words_of_another_and_says_what_differs():
    whole = read_pack(FOLDER / "oaipmh.yaml", None, {**OAI, "granularity": "DAY"})
    value = using(
        use={"pack": "oaipmh", "parameters": {"granularity": "DAY"}},
        request={"path": "/oai2d", "first": {"until": None}},
        paging={"token_life": "2m"},
        fields={"publisher": None},
    )

    used, model = parsed(value).endpoints["records"], whole.endpoints["records"]

    assert used.use is None
    assert used.request.path == "/oai2d"
    assert used.request.query == model.request.query == {"verb": "ListRecords"}
    assert set(model.request.first) - set(used.request.first) == {"until"}
    assert used.paging.model_copy(update={"token_life": None}) == model.paging
    assert used.paging.token_life.total_seconds() == 120
    assert used.window == model.window
    assert [f.name for f in model.fields if f not in used.fields] == ["publisher"]
    assert used.errors == model.errors


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"use": {"pack": "oaipmhh"}}, "records uses oaipmhh, which is no built-in pack. Known: "),
        (
            {"use": {"pack": "oaipmh", "endpoint": "identify"}},
            "oaipmh/identify, which is no endpoint with words of its own. Known: records",
        ),
        (
            {"use": {"pack": "oaipmh", "parameters": {"prefx": "x"}}},
            "oaipmh.yaml has no parameter prefx (did you mean prefix?)",
        ),
        ({"use": {"pakc": "oaipmh"}}, "endpoints.records.use.pakc: is not a known key"),
        ({"use": {"pack": "../pyproject"}}, "endpoints.records.use.pack: "),
        (
            {"use": {"pack": "oaipmh"}, "paging": {"tokenlife": "1m"}},
            "endpoints.records.paging.tokenlife: is not a known key",
        ),
    ],
)
def test_a_preset_that_cannot_be_meant_is_refused_in_words(words, said):
    assert said in refusal(using(**words))
