"""`patra test-read` on what cannot be read: one clear sentence, exit code 1 or 2, no traceback."""

import json

import pytest

from patra_ingest_tests.builders import pack_text
from patra_ingest_tests.cli.test_cli_refusals import one_sentence
from patra_ingest_tests.cli.test_cli_test_read import DAY, KEY, OWN, works
from patra_ingest_tests.fakes import upstream

NEEDED = {"auth": {"required": True, "credentials": {"own": OWN}}}
OPTIONAL = {"auth": {"credentials": {"own": OWN}}}
ALIVE = "2025-09-01T00:00:00Z"
PAGE = b"<!doctype html><html><body>Maintenance</body></html>"


def verdict(done):
    """Insist on exit code 1 without a traceback; return the last line, which says it all."""
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert KEY not in done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


@pytest.fixture
def look(patra, tmp_path):
    """Return a function that looks at a source with this answer and this pack."""

    def looked(answer, more=None, words=DAY, **variables):
        with upstream(answer) as source:
            file = tmp_path / "example.yaml"
            file.write_text(json.dumps({**pack_text(source.url), **(more or {})}))
            return patra("test-read", file, *words, **variables)

    return looked


def test_a_key_that_is_missing_is_named_with_where_to_put_it(look):
    said = verdict(look(works, NEEDED))

    assert said.startswith("It does not work: example is never asked without a credential")
    assert "own needs env:EXAMPLE_KEY" in said


@pytest.mark.parametrize(
    ("status", "error"), [(401, "invalid api key"), (403, "the key has expired")]
)
def test_a_key_that_is_wrong_or_expired_is_named_and_what_the_source_says(look, status, error):
    said = verdict(look(lambda _: (status, {"error": error}), OPTIONAL, EXAMPLE_KEY=KEY))

    assert f"answered {status} (the source does not accept our credentials, wrong or" in said
    assert "see own (env:EXAMPLE_KEY)" in said
    assert error in said


def test_a_source_that_wants_a_key_where_none_is_set_says_which(look):
    said = verdict(look(lambda _: (401, {"error": "who are you?"}), OPTIONAL))

    assert "none is at hand: set own (env:EXAMPLE_KEY)" in said


def test_a_page_for_people_is_no_answer(look):
    answer = (200, PAGE, {"Content-Type": "text/html"})
    said = verdict(look(lambda _: answer))

    assert said.startswith("The source answers something else than the pack says: http://")
    assert "answered 200 with text/html that is not JSON (it is an HTML page)" in said
    assert "Maintenance" in said


def test_a_source_that_changed_its_shape_is_told_by_the_path_that_differs(look):
    done = look(lambda _: (200, {"total": 1, "results": [{}], "meta": {}}))

    assert "stopped by L4; a worker would hold the endpoint" in done.stdout
    assert "there is no list at $.items: $ has total, results, meta; the source" in verdict(done)


def test_items_that_changed_their_shape_are_told_by_the_path_that_differs(look):
    items = [{"key": n, "updated": ALIVE, "title": "x"} for n in range(3)]
    said = verdict(look(lambda _: (200, {"total": 3, "items": items})))

    assert "every one of 3 items fails at $.id" in said
    assert "in the first of them $ has key, updated, title" in said


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "https://nowhere.invalid"])
def test_a_source_that_cannot_be_reached_costs_one_sentence(patra, tmp_path, url):
    file = tmp_path / "example.yaml"
    file.write_text(json.dumps(pack_text(url)))
    said = verdict(patra("test-read", file, *DAY))

    assert said.startswith("The source cannot be reached: GET ")
    assert said.endswith("See the network, the proxy, base_url.")


def test_a_source_that_asks_for_patience_is_not_waited_for(look):
    said = verdict(look(lambda _: (429, {}, {"Retry-After": "3600"})))

    assert said.startswith("The source cannot be asked now: no request may leave before ")


def test_pages_that_go_in_a_circle_are_no_success(look):
    items = [{"id": f"w{n}", "updated": ALIVE, "title": "x"} for n in range(10)]
    said = verdict(look(lambda _: (200, {"total": 99, "items": items})))

    assert said == (
        "The pages do not add up: page 2 repeats ids of earlier pages only: the source goes in a"
        " circle."
    )


def test_a_pack_that_does_not_compile_is_refused_with_all_its_problems(look):
    wrong = {"rate": {"key": "example", "per_second": 5, "vendor": {"per_second": 1}}}

    assert "does not compile: " in one_sentence(look(works, wrong))


def test_a_placeholder_for_our_address_is_refused(look):
    said = one_sentence(look(works, PATRA_CONTACT="you@example.org"))

    assert "PATRA_CONTACT='you@example.org' (is a placeholder; give the address at" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nosuch"], "There is no built-in source 'nosuch', and no ledger with others."),
        (["gone.yaml"], "The pack gone.yaml cannot be read"),
        (["sandbox", "--endpoint", "nix"], "sandbox has no endpoint 'nix' for HARVEST."),
        (["pubmed", "--op", "UPDATE"], "Give ids with --ids A,B."),
        (["sandbox", "--from", "2999-01-01"], "which is in the future"),
        (["sandbox", "--recorded", "nowhere"], "nowhere cannot be read"),
        (["sandbox", "--base-url", "ftp://x"], "'ftp://x' is no web address"),
        (["sandbox", "--base-url", "http://x.org"], "is meant for this machine only"),
        (["sandbox", "--partition", "p"], "There is no partition 'p'."),
    ],
)
def test_bad_words_cost_one_sentence_and_make_nothing(patra, tmp_path, words, said):
    assert said in one_sentence(patra("test-read", *words))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["sandbox", "--pages", "0"],
        ["sandbox", "--recorded", ".", "--base-url", "http://127.0.0.1:9"],
        ["pubmed", "--endpoint", "fetch"],
    ],
)
def test_wrong_usage_is_exit_code_2(patra, words):
    done = patra("test-read", *words)

    assert (done.returncode, "Traceback" in done.stderr) == (2, False)


def test_a_password_in_an_address_is_not_repeated(patra):
    done = patra("test-read", "sandbox", "--base-url", f"http://me:{KEY}@127.0.0.1:9")

    assert done.returncode == 1
    assert KEY not in done.stdout + done.stderr
