"""Every line of a built-in pack counts: its change changes a fingerprint, or here is why not."""

import json
from collections.abc import Iterator
from contextlib import closing
from fnmatch import fnmatchcase

import pytest
import yaml

from patra_ingest.errors import CompileError, PackError
from patra_ingest.ledger.db import open_db
from patra_ingest.packs import builtin_packs
from patra_ingest.registry.apply import apply_pack
from patra_ingest.registry.code_book import builtin_code_book
from patra_ingest.registry.pack import parse_pack
from patra_ingest.registry.pack_file import read_pack_text
from patra_ingest.registry.read import list_endpoints, read_named
from patra_ingest.spec.compile import compile_spec
from patra_ingest.spec.declaration import Overrides
from patra_ingest_tests.builders import NOON, a_pack, an_endpoint
from patra_ingest_tests.unit.other_values import changes, leaves

CODES = builtin_code_book()
PACKS = {path.stem: path.read_text() for path in builtin_packs()}

# Values that may change without a fingerprint: why, and where they stand.
SAME_FINGERPRINT = {
    "it is for people": ["*.provenance.name", "*.provenance.docs_url", "*.provenance.evidence.*"],
    "what the vendor allows only bounds what we ask for": ["*.rate.vendor.*"],
    "the most a page may hold only bounds the page size": ["*.paging.max_page_size"],
    "a delay within the safety lag changes nothing": ["*.window.publication_delay"],
    "a schedule is told to Dagster, not to the source": ["*.schedule.*.enabled"],
    "a warning is the same, whether it is meant or not": ["*.intended.*"],
    "it bounds what may be asked": ["*.expressions.fields.*", "*.expressions.capabilities.*"],
    "brackets stand where they are needed anyway": ["*.expressions.rules.*.wrap_group"],
    "the request itself says where ${query} goes": [
        *("*.expressions.params.query", "arxiv.expressions.params.query.*"),
    ],
    "what stands in quotes is written alike": ["arxiv.expressions.syntax"],
    "no query can use it: the request of works sets `filter` itself": [
        *("crossref.expressions.rules.1.*", "crossref.expressions.params.filter.*"),
    ],
}
# Values that cannot be changed alone: every other one is refused, given the lines around it.
NO_OTHER_VALUE = {
    "other kinds of credentials have other keys": ["*.auth.credentials.*.type"],
    "other ways of paging have other keys": ["*.paging.type"],
    "other ways of cutting have other keys": ["*.cap.then.0.by"],
    "a rule is found by what it is for": [
        *("*.rules.*.field", "*.rules.*.op", "*.rules.*.match"),
        *("crossref.*.rules.*.emit", "openalex.*.rules.*.emit"),
    ],
    "every operator of a capability needs its rule": [
        *("*.capabilities.*.ops.*", "*.capabilities.*.matches.*"),
    ],
    "a parameter cannot be negated": ["crossref.*.supports_not", "openalex.*.supports_not"],
    "the question of this test asks for a range of dates": ["*.publication_date.range"],
    "the rule writes what only this function gives": ["pubmed.expressions.rules.3.function"],
    "the dates are written to the day": ["*.window.granularity"],
    "records without a time of update are told apart by their hash": ["*.changed"],
    "what gets its ids from others can only be asked for UPDATE": ["*.operations.0"],
    "the two belong together": [
        *("pubmed.endpoints.fetch.usage", "pubmed.*.detail.endpoint", "pmc.http.redirects"),
        *("orcid.endpoints.record.usage", "orcid.*.detail.endpoint"),
        *("openalex.endpoints.work.usage", "openalex.endpoints.work.refreshes.*"),
        *("doaj.*.article.usage", "zenodo.*.record.usage", "doaj.*.refreshes.*"),
        *("zenodo.*.refreshes.*", "arxiv.endpoints.query.response.format"),
    ],
    "it is the name of a credential": ["openalex.endpoints.changes.auth.use"],
    "this test cuts at every |, and here one is within the path": ["pubmed.*.fields.corrected"],
    "a path has room for one id": ["orcid.*.detail.batch"],
    "the pages hold as much as the cap": [
        *("pubmed.*.new.paging.page_size", "pubmed.*.new.cap.max"),
        *("orcid.*.people.paging.page_size", "orcid.*.paging.max_pages", "orcid.*.cap.max"),
        *("nihreporter.*.projects.paging.page_size", "nihreporter.*.paging.max_pages"),
        *("doaj.*.articles.paging.page_size", "doaj.*.paging.max_pages", "doaj.*.cap.max"),
        "nihreporter.*.cap.max",
    ],
    "the request asks for one of the two ends, or for none": [
        *("sandbox.*.upper_bound", "hal.*.upper_bound", "orcid.*.upper_bound"),
        *("datacite.*.upper_bound", "core.*.upper_bound"),
        *("zenodo.*.upper_bound", "arxiv.*.upper_bound"),
    ],
    "what a credential unlocks is no part, and has codes": [
        "*.unlocks.*.scope",
        "*.unlocks.*.kind",
    ],
    "a group belongs to one id": ["opencitations.*.ids_per_request"],
    "a line of cron has five fields": ["*.schedule.*"],
    "no letter but these writes a day or a minute": [
        *("openfda.*.window.format", "arxiv.*.query.window.format"),
    ],
    "the vendor allows no more": [
        *("nihreporter.rate.per_second", "zenodo.*.per_second"),
        *("arxiv.rate.burst", "arxiv.rate.in_flight"),
    ],
    "nobody waits for more than two minutes": ["arxiv.http.total_timeout"],
    "there are two orders, and no code for them": ["*.paging.order"],
    "one template speaks OAI-PMH, and has two grains": [
        "*.use.pack",
        "*.use.parameters.granularity",
    ],
    "a word of a template is taken away": [
        *("arxiv.*.records.paging.total", "pmc.*.window.zone", "doaj.*.oai.fields.license"),
        *("arxiv.*.records.fields.type", "doaj.*.oai.fields.type"),
        *("arxiv.*.records.fields.language", "arxiv.*.records.fields.publisher"),
    ],
    "a form and a JSON body are sent by POST": [
        *("pubmed.endpoints.fetch.request.method", "nihreporter.*.request.method"),
        *("s2.endpoints.batch.request.method", "epmc.endpoints.article.request.method"),
    ],
    "the sandbox speaks plain HTTP": ["sandbox.http.allow_insecure_http"],
}


def term(field, match):
    return {"term": {"field": field, "value": "heart: a, b", "match": match}}


def either(field):
    return {"in": {"field": field, "values": ["heart", "lung"]}}


def dates(**bounds):
    return {"range": {"field": "publication_date", **bounds}}


# Asked of every endpoint that can be searched, so that the lines of `expressions` have a say.
_DATES = (dates(**{"from": "2024-01-01"}), dates(to="2025-01-01"))
_TEXT = {"and": [term("text", "ANY"), term("text", "PHRASE"), either("text"), *_DATES]}
ASKED_OF = {"arxiv": "query BACKFILL"}  # where that is no HARVEST
QUESTIONS = {
    "arxiv": {"and": [term("text", "PHRASE"), either("text")]},
    "crossref": term("text", "ANY"),
    "datacite": {"and": [term("text", "ANY"), term("text", "PHRASE"), either("text")]},
    "openalex": term("text", "ANY"),
    "epmc": _TEXT,
    "hal": _TEXT,
    "pubmed": {"and": [term("tiab", "ANY"), term("tiab", "PHRASE"), either("tiab"), *_DATES]},
}


def read(text):
    return parse_pack(read_pack_text(text, "a pack"))


def prints(tx, pack) -> Iterator[tuple[str, str]]:
    """Yield the fingerprint of everything a pack describes, also with a question asked of it."""
    question = QUESTIONS.get(pack.provenance.code)
    with tx.begin_nested() as trial:
        apply_pack(tx, pack, NOON)
        for name in list_endpoints(tx, NOON):
            declared = read_named(tx, name, NOON, CODES)
            shown = f"{name.endpoint} {name.operation}"
            yield shown, compile_spec(declared, Overrides()).fingerprint
            if question and shown == ASKED_OF.get(name.provenance, f"{name.endpoint} HARVEST"):
                asked = compile_spec(declared, Overrides(query=question))
                yield f"{shown} asked", asked.fingerprint
        trial.rollback()


def outcomes(tx, text) -> Iterator[tuple[str, str]]:
    """Yield each place of a pack and what a change there does: `changed`, `same` or `refused`."""
    pack = read(text)
    before = dict(prints(tx, pack))
    for path, node in leaves(yaml.compose(text, Loader=yaml.SafeLoader)):
        start, end = node.start_mark.index, node.end_mark.index
        others = (other for other in changes(path, node, pack) if other != json.dumps(node.value))
        changed = (text[:start] + other + text[end:] for other in others)
        yield path, outcome(tx, pack, before, changed)


def outcome(tx, pack, before, texts):
    """Return what the first text does that says another pack and is not refused."""
    for text in texts:
        try:
            changed = read(text)
            if changed == pack:  # `CURSOR` is only another name of `TOKEN`
                continue
            with closing(prints(tx, changed)) as after:  # one that differs is enough
                is_other = any(before.get(name) != found for name, found in after)
            return "changed" if is_other else "same"
        except (PackError, CompileError):
            continue
    return "refused"


@pytest.fixture(scope="module")
def db(sqlite_template, tmp_path_factory):
    file = tmp_path_factory.mktemp("fingerprints") / "ledger.db"
    file.write_bytes(sqlite_template.read_bytes())
    opened = open_db(f"sqlite:///{file}")
    yield opened
    opened.close()


@pytest.fixture
def tx(db):
    """A transaction that leaves nothing behind."""
    with db.write() as tx:
        yield tx
        tx.rollback()


@pytest.fixture(scope="module")
def found(db):
    """What a change of each value does, by pack and place."""
    verdicts = {}
    for pack, text in PACKS.items():
        with db.write() as tx:
            verdicts |= {f"{pack}.{path}": verdict for path, verdict in outcomes(tx, text)}
            tx.rollback()
    return verdicts


def unexplained(found, verdict, table):
    """Return the places that no pattern explains, and the patterns that explain nothing."""
    patterns = [pattern for patterns in table.values() for pattern in patterns]
    fitting = {
        place: [pattern for pattern in patterns if fnmatchcase(place, pattern)]
        for place, what in found.items()
        if what == verdict
    }
    needed = {pattern for fits in fitting.values() for pattern in fits}
    return [place for place in fitting if not fitting[place]], sorted({*patterns} - needed)


def test_every_value_changes_a_fingerprint_unless_it_must_not(found):
    places, unneeded = unexplained(found, "same", SAME_FINGERPRINT)

    assert places == []
    assert unneeded == []
    assert list(found.values()).count("changed") > len(found) / 2


def test_every_value_can_be_changed_unless_the_lines_around_it_forbid_it(found):
    places, unneeded = unexplained(found, "refused", NO_OTHER_VALUE)

    assert places == []
    assert unneeded == []


def without_comments(text):
    return yaml.safe_dump(read_pack_text(text, "the test's pack").value, sort_keys=False)


def with_comments(text):
    return "".join(f"# a comment\n\n{line}\n" for line in text.splitlines())


def with_keys_reversed(text):
    return yaml.safe_dump(backwards(yaml.safe_load(text)), sort_keys=False)


def backwards(tree, key=None):
    """Turn the keys of every mapping around, but for those that stand for a list."""
    if isinstance(tree, list):
        return [backwards(one) for one in tree]
    if not isinstance(tree, dict):
        return tree
    turned = {name: backwards(value, name) for name, value in tree.items()}
    return turned if key in ("fields", "params") else dict(reversed(turned.items()))


@pytest.mark.parametrize("rewritten", [without_comments, with_comments, with_keys_reversed])
@pytest.mark.parametrize("pack", PACKS)
def test_comments_blank_lines_aliases_and_the_order_of_keys_are_no_change(tx, pack, rewritten):
    text = rewritten(PACKS[pack])
    assert text != PACKS[pack]
    assert dict(prints(tx, read(text))) == dict(prints(tx, read(PACKS[pack]))) != {}


def test_the_order_of_output_fields_is_a_change(tx):
    orders = ({"type": "$.type", "year": "$.year"}, {"year": "$.year", "type": "$.type"})

    one, other = (set(prints(tx, a_pack(works=an_endpoint(fields=order)))) for order in orders)

    assert len(one) == len(other) == 2
    assert not one & other
