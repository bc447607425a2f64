"""The schema that editors use says what the models say, and the file is current."""

import json

import pytest
from jsonschema import Draft202012Validator

from patra_ingest.packs import builtin_packs
from patra_ingest.registry.pack_file import read_pack_file
from patra_ingest.registry.schema import FILE, pack_schema, schema_text
from patra_ingest_tests.builders import an_endpoint, pack_text

VALIDATOR = Draft202012Validator(pack_schema())


def test_the_file_is_what_the_models_say():
    assert FILE.read_text() == schema_text(), "run: patra registry schema > " + FILE.name


def test_the_schema_is_a_schema():
    Draft202012Validator.check_schema(json.loads(FILE.read_text()))


@pytest.mark.parametrize("path", builtin_packs(), ids=lambda path: path.stem)
def test_the_packs_that_come_with_us_fit_and_name_their_schema(path):
    assert list(VALIDATOR.iter_errors(read_pack_file(path).value)) == []
    assert path.read_text().startswith("# yaml-language-server: $schema=pack.schema.json\n")


def test_the_pack_of_the_tests_fits():
    assert VALIDATOR.is_valid(pack_text())


@pytest.mark.parametrize(
    "pack",
    [
        pytest.param({**pack_text(), "rates": {}}, id="an unknown key"),
        pytest.param(pack_text(works=an_endpoint(paging={"type": "GUESS"})), id="a wrong choice"),
        pytest.param(pack_text(works=an_endpoint(paging={"page_size": "ten"})), id="a wrong type"),
        pytest.param({**pack_text(), "provenance": {"code": "x"}}, id="something missing"),
    ],
)
def test_what_the_models_refuse_the_schema_refuses(pack):
    assert not VALIDATOR.is_valid(pack)


def test_every_key_that_needs_words_has_them():
    described = [name for name, part in pack_schema()["$defs"].items() if "description" in part]

    assert len(described) > 25
