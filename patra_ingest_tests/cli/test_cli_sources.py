"""`patra sources`: the catalogue, with and without a ledger."""

import json

from patra_ingest_tests.builders import pack_text
from patra_ingest_tests.cli.test_cli_refusals import one_sentence

SECRET = "s3cr3t-and-long-enough-0123456789"


def listed(done):
    assert (done.returncode, done.stderr) == (0, "")
    return {one["code"]: one for one in json.loads(done.stdout)}


def test_built_in_sources_are_listed_without_a_ledger_and_none_is_made(patra, tmp_path):
    found = listed(patra("sources", "--json"))

    pubmed = found["pubmed"]
    assert {"crossref", "epmc", "pubmed", "sandbox"} <= set(found)
    assert {one["state"] for one in found.values()} == {"built in"}
    assert pubmed["evidence"] == {"date": "2026-11-01", "grade": "RECORDED", "note": None}
    assert [one["name"] for one in pubmed["endpoints"]] == ["new", "changed", "fetch"]
    assert pubmed["endpoints"][0]["operations"] == ["HARVEST", "BACKFILL"]
    assert pubmed["endpoints"][0]["window"]["safety_lag"] == "1d"
    assert pubmed["endpoints"][0]["rate"]["per_second"] == 3
    assert pubmed["endpoints"][0]["cap"] == 9999
    assert pubmed["credentials"][0]["secrets"] == ["env:NCBI_API_KEY"]
    assert list(tmp_path.iterdir()) == []


def test_applied_and_changed_sources_are_told_from_built_in_ones(patra, home, tmp_path):
    own = pack_text("https://api.library.example")
    own["http"] = {}
    own["endpoints"]["works"]["schedule"] = {"HARVEST": "0 3 * * *"}
    (tmp_path / "example.yaml").write_text(json.dumps(own))
    patra("registry", "apply", "example.yaml")
    shown = patra("registry", "show", "epmc").stdout
    (tmp_path / "epmc.yaml").write_text(shown.replace("per_second: 5", "per_second: 4"))
    patra("registry", "apply", "epmc.yaml")

    found = listed(patra("sources", "--json"))
    table = patra("sources").stdout

    assert found["example"]["state"] == "applied"
    assert found["example"]["endpoints"][0]["schedule"] == {"HARVEST": "0 3 * * *"}
    assert found["crossref"]["state"] == "applied"
    assert found["epmc"]["state"] == "applied, changed"
    assert found["epmc"]["endpoints"][0]["rate"]["per_second"] == 4
    assert "works HARVEST: 0 3 * * *" in table
    assert "4 a second" in table


def test_a_credential_that_is_set_is_said_to_be_there_and_never_shown(patra):
    done = patra("sources", NCBI_API_KEY=SECRET)
    found = listed(patra("sources", "--json", NCBI_API_KEY=SECRET))

    assert "optional, set:" in done.stdout
    assert "optional, not" in done.stdout  # the rest may stand on the next line
    assert found["pubmed"]["credentials"][0]["at_hand"] is True
    assert found["crossref"]["credentials"][0]["at_hand"] is False
    assert SECRET not in done.stdout + json.dumps(found)


def test_pages_are_written_once_and_strange_ones_removed(patra, tmp_path):
    folder = tmp_path / "pages"
    first = patra("sources", "--write", "pages").stdout
    (folder / "gone.md").write_text("of a source that is no more")
    (folder / "epmc.md").write_text("by hand")
    stale = one_sentence(patra("sources", "--write", "pages", "--check"))
    second = patra("sources", "--write", "pages").stdout
    third = patra("sources", "--write", "pages", "--check").stdout

    assert "written README.md" in first
    assert stale == "patra: Not current in pages: epmc.md, gone.md. Run `make sources`.\n"
    assert "written epmc.md, gone.md" in second
    assert "all current" in third
    assert not (folder / "gone.md").exists()


def test_a_check_without_a_folder_is_wrong_usage(patra):
    assert patra("sources", "--check").returncode == 2


def test_a_folder_that_is_a_file_costs_one_sentence(patra, tmp_path):
    (tmp_path / "pages").write_text("x")

    assert "pages: " in one_sentence(patra("sources", "--write", "pages"))
