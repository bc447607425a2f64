"""Packs in and out of the Registry by the command line: what is shown, and what is refused."""

import json
import sqlite3

import pytest
import yaml

from patra_ingest.packs import builtin_packs
from patra_ingest_tests.builders import an_endpoint, pack_text
from patra_ingest_tests.cli.test_cli_harvest import ok
from patra_ingest_tests.cli.test_cli_refusals import content, one_sentence


def write(tmp_path, text=None, name="pack.yaml"):
    file = tmp_path / name
    file.write_text(text if isinstance(text, str) else yaml.safe_dump(text or pack_text()))
    return file


def of_size(size):
    return pack_text(works=an_endpoint(paging={"page_size": size}))


def test_a_pack_with_a_mistake_is_refused_and_so_are_the_good_ones_with_it(patra, home, tmp_path):
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(yaml.safe_dump(pack_text()))
    bad.write_text(yaml.safe_dump({**pack_text(), "rates": {}}))
    before = content(home)

    said = one_sentence(patra("registry", "apply", good, bad))

    assert "rates: is not a known key (did you mean rate?)" in said
    assert content(home) == before


def test_a_pack_that_is_no_yaml_is_refused(patra, home, tmp_path):
    (tmp_path / "pack.yaml").write_text("a: [1, 2")

    said = one_sentence(patra("registry", "apply", "pack.yaml"))

    assert "pack.yaml, line 2, column 1: this is not valid YAML" in said


def test_a_pack_that_does_not_compile_is_refused_whole(patra, home, tmp_path):
    (tmp_path / "pack.yaml").write_text(yaml.safe_dump(pack_text("http://example.org")))
    before = content(home)

    said = one_sentence(patra("registry", "apply", "pack.yaml"))

    assert "The pack example does not compile: HARVEST: http.allow_insecure_http: is meant" in said
    assert content(home) == before


def test_a_source_that_does_not_compile_is_listed_with_its_problems(patra, home, tmp_path):
    (tmp_path / "pack.yaml").write_text(yaml.safe_dump(pack_text()))
    patra("registry", "apply", "pack.yaml")
    with sqlite3.connect(home / "ledger.db") as ledger:
        ledger.execute(
            "UPDATE reg_provenance SET base_url_default = 'http://example.org'"
            " WHERE provenance_code = 'example'"
        )
    ledger.close()

    done = patra("registry", "check")

    assert done.returncode == 1
    assert "✗ example/works HARVEST\n    http.allow_insecure_http: is meant for" in done.stdout
    assert "✓ sandbox/works HARVEST" in done.stdout
    said = one_sentence(patra("plan", "example", "--from", "2026-01-01"))
    assert "example/works for HARVEST does not compile" in said


@pytest.mark.parametrize("source", [path.stem for path in builtin_packs()])
def test_what_is_shown_is_a_pack_that_changes_nothing(patra, home, tmp_path, source):
    file = write(tmp_path, ok(patra("registry", "show", source)))

    assert ok(patra("registry", "diff", file)) == f"{source}: no difference\n"
    assert ok(patra("registry", "apply", file)) == f"{source}: nothing to change\n"


def test_a_difference_is_shown_field_by_field_and_nothing_is_written(patra, home, tmp_path):
    patra("registry", "apply", write(tmp_path))
    before = content(home)
    changed = of_size(50)
    changed["rate"]["per_second"] = 2
    del changed["retry"]

    said = ok(patra("registry", "diff", write(tmp_path, changed)))

    assert "example: 4 differences" in said
    assert "  ~ rate.per_second: 1000 → 2\n" in said
    assert "  ~ endpoints.works.paging.page_size: 10 → 50\n" in said
    assert "  - retry.max_attempts: 2\n" in said
    assert content(home) == before


def test_a_new_source_is_all_difference(patra, home, tmp_path):
    told = json.loads(ok(patra("registry", "diff", write(tmp_path), "--json")))

    added = {row["path"]: row["after"] for row in told["example"]}
    assert added["provenance.code"] == "example"
    assert all(row["before"] is None for row in told["example"])


def test_the_past_can_be_shown_and_compiled(patra, home, tmp_path):
    patra("registry", "apply", write(tmp_path, of_size(10)))
    with sqlite3.connect(home / "ledger.db") as ledger:
        (then,) = ledger.execute("SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now')").fetchone()
    ledger.close()
    patra("registry", "apply", write(tmp_path, of_size(77)))

    now = ok(patra("registry", "show", "example"))
    before = ok(patra("registry", "show", "example", "--at", then))
    compiled = json.loads(
        ok(patra("registry", "show", "example", "--at", then, "--origins", "--json"))
    )

    assert ("page_size: 77" in now, "page_size: 10" in before) == (True, True)
    assert compiled["spec"]["paging"]["page_size"] == 10
    assert "There is nothing" not in ok(patra("registry", "check", "example", "--at", then))
    said = one_sentence(patra("registry", "show", "example", "--at", "2020-01-01"))
    assert "example was not in the Registry at 2020-01-01" in said


def test_every_value_is_shown_with_where_it_came_from(patra, home):
    said = ok(patra("registry", "show", "crossref", "--origins", "--endpoint", "works"))

    for line in (
        "request.base_url = https://api.crossref.org  [provenance crossref]",
        "request.path = /works  [endpoint works]",
        "http.connect_timeout = 10s  [platform]",
    ):
        assert line in said
    assert "paging.page_size = 500  [reg_prov_pagination_cfg #" in said


def test_a_credential_at_hand_unlocks_what_the_pack_says(patra, home):
    alone = json.loads(ok(patra("registry", "show", "pubmed", "--origins", "--json")))
    asked = ("registry", "show", "pubmed", "--origins", "--json")
    known = json.loads(ok(patra(*asked, NCBI_API_KEY="canary-key")))

    assert (alone["spec"]["rate"]["per_second"], known["spec"]["rate"]["per_second"]) == (3, 9)
    assert known["origins"]["rate.per_second"] == "credential ncbi-key"
    assert "canary-key" not in json.dumps(known)
    assert "env:NCBI_API_KEY" in json.dumps(known)


def test_two_plans_are_compared_part_by_part(patra, home, tmp_path):
    window = ("--from=2026-01-01", "--to=2026-01-03")
    patra("registry", "apply", write(tmp_path))
    first, second = (
        json.loads(ok(patra("plan", "example", *window, *more, "--json")))["plan_id"]
        for more in ((), ("--set=request.query.q=ants", "--set=paging.page_size=20"))
    )

    said = ok(patra("registry", "diff", "--snapshots", first, second))
    same = ok(patra("registry", "diff", "--snapshots", first, first))

    assert "spec_fingerprint: different\nexpr_proto_hash: different\n" in said
    assert "provenance_config_hash: the same\n" in said
    assert "  ~ paging.page_size: 10 → 20\n" in said
    assert "  + request.query.q: ants\n" in said
    assert same.endswith("no difference\n")
    assert "There is no plan 99" in one_sentence(
        patra("registry", "diff", "--snapshots", first, 99)
    )


QUERY = {
    "and": [
        {"term": {"field": "tiab", "value": 'heart "failure" [TI] OR', "match": "PHRASE"}},
        {"range": {"field": "publication_date", "from": "2023-01-01", "to": "2024-01-01"}},
    ]
}


def test_a_neutral_query_is_shown_in_the_words_of_the_source(patra, home, tmp_path):
    (tmp_path / "query.json").write_text(json.dumps(QUERY))

    said = ok(patra("registry", "query", "pubmed", "@query.json"))

    assert '"heart failure TI or"[TIAB]' in said.replace("OR", "or")
    assert '("2023/01/01"[PDAT] : "2023/12/31"[PDAT])' in said
    crossref = json.dumps({"range": QUERY["and"][1]["range"]})
    told = json.loads(ok(patra("registry", "query", "crossref", crossref, "--json")))
    assert told["placed"] == {"filter": ["from-pub-date:2023-01-01,until-pub-date:2023-12-31"]}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("{", "--query cannot be read"),
        ("[]", "--query is no JSON object"),
        ("@none.json", "--query cannot be read"),
        ('{"term": {"field": "colour", "value": "x"}}', "E-FIELD-NOT-FOUND"),
        ('{"tern": {}}', "did you mean term"),
    ],
)
def test_a_query_that_cannot_be_asked_costs_one_sentence(patra, home, asked, said):
    assert said in one_sentence(patra("registry", "query", "pubmed", asked))


def test_a_lenient_question_is_wider_and_says_so(patra, home):
    refused = {"not": {"range": {"field": "publication_date", "from": "2023-01-01"}}}
    asked = json.dumps({"and": [{"term": {"field": "tiab", "value": "ants"}}, refused]})

    strict = patra("registry", "query", "pubmed", asked)
    told = json.loads(ok(patra("registry", "query", "pubmed", asked, "--lenient", "--json")))

    assert "NOT" in one_sentence(strict)
    assert told["text"] == '"ants"[TIAB]'
    assert told["warnings"][0].startswith("W-NOT-SKIPPED")


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("# " + "x" * 5_000_000, "is larger than 1,000,000 bytes", id="5 MB"),
        pytest.param(BOMB, "pack.yaml", id="a YAML bomb"),
        pytest.param("a: &a [*a]\n", "pack.yaml", id="a YAML that holds itself"),
        pytest.param("a: 1\na: 2\n", "line 2", id="a key twice"),
        pytest.param("a: [1, 2", "line 2, column 1: this is not valid YAML", id="malformed"),
        pytest.param("- a\n", "pack.yaml", id="a list"),
        pytest.param("!!python/object/apply:os.system [ls]", "pack.yaml", id="code"),
    ],
)
def test_a_file_that_is_no_pack_costs_one_sentence_and_no_data(patra, home, tmp_path, text, said):
    file = write(tmp_path, text)
    before = content(home)

    for command in ("apply", "diff"):
        assert said in one_sentence(patra("registry", command, file))
    assert content(home) == before


def test_a_change_that_overlaps_one_to_come_is_refused(patra, home, tmp_path):
    patra("registry", "apply", write(tmp_path, of_size(10)))
    ok(
        patra(
            "registry",
            "apply",
            write(tmp_path, {**of_size(20), "effective_from": "2099-01-01T00:00:00Z"}),
        )
    )
    before = content(home)

    said = one_sentence(patra("registry", "apply", write(tmp_path, of_size(30))))

    assert "pagination works" in said
    assert "would overlap row #" in said
    assert "valid from 2099-01-01T00:00:00Z on" in said
    assert content(home) == before
    assert "page_size: 10" in ok(patra("registry", "show", "example"))
    assert "page_size: 20" in ok(patra("registry", "show", "example", "--at", "2099-06-01"))


def test_what_this_version_cannot_run_is_refused_when_it_is_planned(patra, home):
    window = ("--from", "2026-01-01", "--to", "2026-01-03")
    said = one_sentence(patra("plan", "sandbox", *window, "--set", "paging.fetch_ahead=2"))

    assert "sandbox/works compiles, but this version cannot run it yet: " in said
    assert "paging.fetch_ahead" in said
