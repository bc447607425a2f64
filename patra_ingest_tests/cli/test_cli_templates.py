"""Templates by the command line: listed, applied with values, and then a source like any other."""

import json

from patra_ingest_tests.cli.test_cli_harvest import ok
from patra_ingest_tests.cli.test_cli_refusals import content, one_sentence

ASU = ["--param", "code=asu", "--param", "base_url=https://repository.example.edu/oai-pmh"]


def test_a_template_is_listed_with_what_it_leaves_open_and_is_no_source(patra, home):
    listed = json.loads(ok(patra("registry", "packs", "--json")))

    (template,) = (one for one in listed if one["is_template"])
    needed = [one["name"] for one in template["parameters"] if one["default"] is None]
    assert (template["pack"], needed) == ("oaipmh", ["code", "base_url"])
    assert "oaipmh/" not in ok(patra("registry", "check"))
    assert "oaipmh" in one_sentence(patra("registry", "show", "oaipmh"))


def test_a_template_without_its_values_is_refused_in_one_sentence_and_changes_nothing(patra, home):
    before = content(home)

    said = one_sentence(patra("registry", "apply", "oaipmh", "--param", "code=asu"))

    assert "oaipmh.yaml leaves base_url open. Say what is meant: --param base_url=…." in said
    assert content(home) == before


def test_what_is_applied_is_shown_as_a_pack_that_changes_nothing(patra, home, tmp_path):
    more = ["--param", "granularity=DAY", "--param", "set=theses", "--param", "per_second=0.5"]
    assert "asu: opened endpoint records\n" in ok(patra("registry", "apply", "oaipmh", *ASU, *more))

    shown = ok(patra("registry", "show", "asu"))
    (tmp_path / "asu.yaml").write_text(shown)

    assert "parameters" not in shown
    assert ok(patra("registry", "diff", "asu.yaml")) == "asu: no difference\n"
    assert ok(patra("registry", "apply", "asu.yaml")) == "asu: nothing to change\n"
    assert ok(patra("registry", "apply", "oaipmh", *ASU, *more)) == "asu: nothing to change\n"
    changed = ok(patra("registry", "diff", "oaipmh", *ASU))
    assert "endpoints.records.request.first.set" in changed
    assert "✓ asu/records HARVEST" in ok(patra("registry", "check", "asu"))


def test_values_are_for_one_pack_and_have_a_name(patra, home):
    for wrong in (["oaipmh", "crossref", *ASU], ["oaipmh", "--param", "code"]):
        done = patra("registry", "apply", *wrong)
        assert done.returncode == 2
        assert "--param" in done.stderr
