"""Checking the Registry: everything is compiled, also what this machine has no secret for."""

import pytest

from patra_ingest.errors import CompileError
from patra_ingest.model.codes import Operation
from patra_ingest.registry.apply import Change, apply_checked, apply_pack
from patra_ingest.registry.check import check_endpoints
from patra_ingest.registry.code_book import builtin_code_book
from patra_ingest.registry.pack import parse_pack
from patra_ingest.registry.pack_file import PackText
from patra_ingest.registry.read import EndpointName, list_endpoints
from patra_ingest_tests.builders import NOON, START, a_pack, an_endpoint, by_token, pack_text

CODES = builtin_code_book()
TOO_FAST = {"rate": {"per_second": 9, "vendor": {"per_second": 3}}}
UNLOCKED = "auth.credentials.k.unlocks.rate.per_second: 9.0 is above the source's 3.0"


def no_secret(_reference):
    return False


def every_secret(_reference):
    return True


def a_key(field="X-Key", **more):
    return {"type": "API_KEY", "field": field, "secret": "env:EXAMPLE_KEY", **more}


def with_keys(required=False, **credentials):
    auth = {"required": required, "credentials": credentials}
    parts = {**pack_text(works=by_token()), "auth": auth}
    return parse_pack(PackText("the test's pack", parts, {}))


def a_detail(**differences):
    """Return an endpoint that takes ids from others, and is asked by nobody else."""
    detail = {
        "usage": "DETAIL",
        "request": {"path": "/fetch", "query": {"id": "${ids|join(',')}"}},
        "paging": {"type": "NONE"},
        "batching": {"ids_per_request": 50},
        "response": {"items": "$.items", "id": "$.id", "updated_at": "$.updated"},
        "fields": {"title": "$.title"},
    }
    return {**detail, **differences}


def verdicts(db, pack, has_secret=no_secret):
    with db.write() as tx:
        apply_pack(tx, pack, START)
        return list(check_endpoints(tx, "example", NOON, CODES, has_secret))


def applied(db, pack, has_secret=no_secret):
    with db.write() as tx:
        return apply_checked(tx, pack, START, CODES, has_secret)


def refused(db, pack, has_secret=no_secret):
    with pytest.raises(CompileError) as caught:
        applied(db, pack, has_secret)
    return caught.value.problems


@pytest.mark.parametrize("has_secret", [no_secret, every_secret])
def test_what_a_credential_unlocks_is_compiled_on_every_machine(db, has_secret):
    problems = refused(db, with_keys(k=a_key(unlocks=TOO_FAST)), has_secret)

    assert [problem.partition(" (")[0] for problem in problems] == [
        f"HARVEST: {UNLOCKED}",
        f"BACKFILL: {UNLOCKED}",
    ]


def test_a_refused_pack_leaves_no_trace(db):
    refused(db, with_keys(k=a_key(unlocks=TOO_FAST)))

    with db.read() as tx:
        assert list_endpoints(tx, NOON) == []


def test_what_the_second_credential_unlocks_is_compiled_too(db):
    pack = with_keys(a=a_key("X-A"), k=a_key("X-K", unlocks=TOO_FAST))

    found = verdicts(db, pack)

    assert [verdict.problems[0].partition(" (")[0] for verdict in found] == [UNLOCKED] * 2


def test_a_credential_that_unlocks_what_is_allowed_is_fine_without_its_secret(db):
    pack = with_keys(k=a_key(unlocks={"rate": {"per_second": 3, "vendor": {"per_second": 3}}}))

    assert Change("opened", "provenance example") in applied(db, pack)
    for verdict in verdicts(db, pack):
        assert verdict.problems == ()
        assert verdict.warnings == ("ANONYMOUS: no secret of k is at hand",)


def test_a_source_that_requires_a_key_is_said_to_be_closed_without_it(db):
    for verdict in verdicts(db, with_keys(required=True, k=a_key())):
        assert verdict.warnings == (
            "ANONYMOUS: no secret of k is at hand, and the source requires one",
        )


def test_the_verdict_is_about_the_spec_that_this_machine_would_run(db):
    pack = with_keys(k=a_key(unlocks={"rate": {"per_second": 2000}}))

    without, with_it = verdicts(db, pack), verdicts(db, pack, every_secret)

    assert [verdict.warnings for verdict in with_it] == [(), ()]
    for one, other in zip(without, with_it, strict=True):
        assert one.fingerprint != other.fingerprint


def test_a_pack_with_nothing_but_a_detail_endpoint_can_be_applied(db):
    pack = a_pack(fetch=a_detail())

    applied(db, pack)
    [verdict] = verdicts(db, pack)

    assert verdict.name == EndpointName("example", "fetch", Operation.UPDATE, is_silent=True)
    assert verdict.problems == ()
    assert verdict.fingerprint


def test_a_detail_endpoint_that_nobody_asks_is_compiled(db):
    wrong = a_detail(request={"path": "/fetch", "query": {"all": "yes"}})

    [problem] = refused(db, a_pack(works=an_endpoint(), fetch=wrong))

    assert problem.startswith("UPDATE: endpoints.fetch.request.query: never uses ${ids}")


def test_a_detail_endpoint_that_nobody_asks_is_compiled_but_never_offered(db):
    found = verdicts(db, a_pack(works=an_endpoint(), fetch=a_detail()))

    names = {(verdict.name.endpoint, verdict.name.operation) for verdict in found}
    assert names == {("fetch", "UPDATE"), ("works", "HARVEST"), ("works", "BACKFILL")}
    with db.read() as tx:
        assert list_endpoints(tx, NOON, Operation.UPDATE) == []


def test_a_detail_endpoint_with_its_own_update_is_compiled_once_and_offered(db):
    found = verdicts(db, a_pack(fetch=a_detail(operations=["UPDATE"])))

    fetch = EndpointName("example", "fetch", Operation.UPDATE)
    assert [verdict.name for verdict in found] == [fetch]
    with db.read() as tx:
        assert list_endpoints(tx, NOON, Operation.UPDATE) == [fetch]


@pytest.mark.parametrize(("intended", "meant"), [(None, False), (["NEW_ONLY"], True)])
def test_a_harvest_of_new_records_alone_is_a_warning_unless_it_is_intended(db, intended, meant):
    said = {"window": {"meaning": "CREATED"}} | ({"intended": intended} if intended else {})

    found = {v.name.operation: v for v in verdicts(db, a_pack(works=by_token(**said)))}

    sentence = "NEW_ONLY: a change of a known record is not seen: harvest it elsewhere"
    harvest, backfill = found[Operation.HARVEST], found[Operation.BACKFILL]
    assert (harvest.intended if meant else harvest.warnings) == (sentence,)
    assert (harvest.warnings if meant else harvest.intended) == ()
    assert (backfill.warnings, backfill.intended) == ((), ())
