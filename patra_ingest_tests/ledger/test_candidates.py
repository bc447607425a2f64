"""Where UPDATE candidates come from: each list is complete, in order, and ends at its limit."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from patra_ingest.errors import UnknownName
from patra_ingest.ledger import candidates
from patra_ingest.ledger.candidates import Found
from patra_ingest.ledger.db import insert, instant_text, json_text
from patra_ingest.ledger.quarantine import quarantine_items
from patra_ingest.ledger.records import upsert_newer
from patra_ingest.ledger.signals import add_signals, consume_signals
from patra_ingest.model.bounds import Bounds, IdSet
from patra_ingest.model.codes import NamespaceScope, Operation, Signal, SliceStatus
from patra_ingest.model.lineage import Lineage
from patra_ingest.model.namespace import Namespace
from patra_ingest.model.records import BadItem, ChangeRule
from patra_ingest.packs import builtin_packs
from patra_ingest.registry.apply import apply_pack
from patra_ingest.registry.pack import read_pack
from patra_ingest.registry.served import list_record_endpoints, list_storing_endpoints
from patra_ingest_tests.builders import NOON, START, a_pack, a_record, a_spec, an_endpoint, days
from patra_ingest_tests.ledger.test_check import a_detail

SECOND = timedelta(seconds=1)
WORKS = ["works"]
BOTH = ["works", "authors"]
NAMESPACE = Namespace(
    "example", "fetch", Operation.UPDATE, "checked_at", NamespaceScope.CUSTOM, "c" * 64
)


def store(db, *names, now=NOON, endpoint="works", provenance="example", made_by="a", **changes):
    records = [a_record(name)._replace(**changes) for name in names]
    stamp = {"spec_fingerprint": made_by * 64, "expr_hash": "e" * 64}
    with db.write() as tx:
        upsert_newer(tx, provenance, endpoint, records, ChangeRule.NEWER, stamp, now)


def quarantine(db, *names, endpoint="works", batch=1):
    items = [BadItem(n, name, "$.title", "is missing", "{}") for n, name in enumerate(names)]
    lineage = Lineage(1, 2, 3, 4, 5, batch)
    with db.write() as tx:
        quarantine_items(tx, replace(NAMESPACE, endpoint=endpoint), lineage, items)


def ask(db, function, *arguments):
    with db.read() as tx:
        return getattr(candidates, function)(tx, *arguments)


def names(found):
    return [one.provider_id for one in found]


def test_signals_of_all_endpoints_come_in_the_order_they_were_given(db):
    for endpoint, name in (("works", "b"), ("authors", "a"), ("works", "a"), ("hidden", "x")):
        with db.write() as tx:
            add_signals(tx, "example", endpoint, [name], Signal.MERGE, "ann", None, NOON)

    found = ask(db, "list_signals", "example", BOTH, 10)

    assert [one[:2] for one in found] == [("works", "b"), ("authors", "a"), ("works", "a")]
    assert ask(db, "list_signals", "example", BOTH, 2) == found[:2]
    assert ask(db, "list_signals", "other", BOTH, 10) == []

    with db.write() as tx:
        assert consume_signals(tx, [found[0].row_id], 7, NOON) == 1
    assert ask(db, "list_signals", "example", BOTH, 10) == found[1:]


def test_open_items_with_an_id_are_listed_until_they_are_retried(db):
    quarantine(db, "b", None, "a")
    quarantine(db, "a", endpoint="authors", batch=2)
    with db.write() as tx:
        change = "UPDATE ing_quarantine SET kind_code = 'BAD_ID', operation_code = :op"
        tx.execute(text(f"{change} WHERE provider_id = 'b'"), {"op": "HARVEST"})

    found = ask(db, "list_quarantined", "example", BOTH, 10)

    assert [one[:2] for one in found] == [("works", "b"), ("works", "a"), ("authors", "a")]
    assert ask(db, "list_quarantined", "example", BOTH, 1) == found[:1]
    with db.write() as tx:
        retried = [one.row_id for one in found[:2]]
        assert candidates.mark_retried(tx, [*retried, *retried], NOON) == 2
        assert candidates.mark_retried(tx, retried, NOON) == 0
        assert candidates.mark_retried(tx, [], NOON) == 0
    assert ask(db, "list_quarantined", "example", BOTH, 10) == found[2:]


def test_an_id_that_an_update_could_not_find_is_not_asked_for_again_and_again(db):
    quarantine(db, "a")
    with db.write() as tx:
        change = "UPDATE ing_quarantine SET kind_code = 'BAD_ID', operation_code = 'UPDATE'"
        tx.execute(text(change))

    assert ask(db, "list_quarantined", "example", BOTH, 10) == []


@pytest.mark.parametrize("status", ["RETRIED", "RESOLVED", "DISCARDED"])
def test_an_item_that_is_done_with_is_left_alone(db, status):
    quarantine(db, "a")
    with db.write() as tx:
        tx.execute(text("UPDATE ing_quarantine SET status_code = :s"), {"s": status})
        assert candidates.list_quarantined(tx, "example", WORKS, 10) == []
        assert candidates.mark_retried(tx, [1], NOON) == 0


def test_the_specs_of_living_records_are_known(db):
    store(db, "a", "b", made_by="a")
    store(db, "c", made_by="b", endpoint="authors")
    store(db, "d", made_by="c", endpoint="hidden")
    store(db, "e", made_by="d", provenance="other")
    store(db, "f", made_by="e", is_deleted=True)

    assert ask(db, "list_fingerprints", "example", BOTH) == {"a" * 64, "b" * 64}
    assert ask(db, "list_fingerprints", "example", WORKS) == {"a" * 64}
    assert ask(db, "list_fingerprints", "example", []) == set()


def test_what_other_specs_made_is_listed_up_to_the_limit(db):
    store(db, "b", "a", made_by="a")
    store(db, "c", made_by="b", endpoint="authors")
    store(db, "d", made_by="c")
    store(db, "gone", made_by="a", is_deleted=True)
    store(db, "e", made_by="a", endpoint="hidden")
    made_by = ["b" * 64, "a" * 64]

    found = ask(db, "list_made_by", "example", BOTH, made_by, 10)

    assert found == [Found("works", "a"), Found("works", "b"), Found("authors", "c")]
    assert ask(db, "list_made_by", "example", BOTH, made_by, 2) == found[:2]
    assert ask(db, "list_made_by", "example", BOTH, [], 10) == []
    assert ask(db, "list_made_by", "other", BOTH, made_by, 10) == []


def test_the_longest_unchecked_come_first_whatever_their_endpoint(db):
    store(db, "new", now=NOON)
    store(db, "old", now=NOON - 3 * SECOND)
    store(db, "older", now=NOON - 4 * SECOND, endpoint="authors")
    store(db, "oldest", now=NOON - 5 * SECOND)
    store(db, "gone", now=NOON - 9 * SECOND, is_deleted=True)
    store(db, "elsewhere", now=NOON - 9 * SECOND, provenance="other")

    found = ask(db, "list_stale", "example", BOTH, NOON, 10)

    assert names(found) == ["oldest", "older", "old"], "`before` itself is not stale"
    assert names(ask(db, "list_stale", "example", BOTH, NOON, 2)) == ["oldest", "older"]
    assert names(ask(db, "list_stale", "example", BOTH, NOON - 4 * SECOND, 9)) == ["oldest"]
    assert found[1] == Found("authors", "older")


def test_a_record_that_was_seen_again_is_fresh(db):
    store(db, "a", "b", now=NOON - SECOND)
    store(db, "a", now=NOON)

    assert names(ask(db, "list_stale", "example", WORKS, NOON, 10)) == ["b"]


def test_stale_records_of_one_instant_always_come_in_the_same_order(db):
    store(db, *"dacb")

    found = [names(ask(db, "list_stale", "example", WORKS, NOON + SECOND, n)) for n in range(5)]

    assert all(shorter == found[4][:n] for n, shorter in enumerate(found))
    assert sorted(found[4]) == list("abcd")


def test_records_are_counted_for_the_endpoints_that_were_named(db):
    store(db, "a", "b")
    store(db, "c", endpoint="authors")
    store(db, "gone", is_deleted=True)
    store(db, "d", provenance="other")

    assert ask(db, "count_records", "example", WORKS) == 3
    assert ask(db, "count_records", "example", [*BOTH, "works"]) == 4
    assert ask(db, "count_records", "example", []) == 0


def a_plan(tx, key, namespace=NAMESPACE, spec=None, made_by="a"):
    row = {
        "schedule_instance_id": 1,
        "plan_key": key,
        **namespace.columns(),
        "direction_code": "FORWARD",
        "expr_proto_hash": "p" * 64,
        "spec_fingerprint": made_by * 64,
        "spec_snapshot": spec or "{}",
        "slice_strategy_code": "ID_RANGE",
        "status_code": "READY",
    }
    return insert(tx, "ing_plan", row)


def a_slice(tx, plan_id, number, status, bounds):
    window = {"window_from": instant_text(START), "window_to": instant_text(NOON)}
    row = {
        **window,
        "plan_id": plan_id,
        "provenance_code": "example",
        "endpoint_name": "fetch",
        "operation_code": "UPDATE",
        "slice_no": number,
        "slice_signature_hash": f"{number:064d}",
        "slice_spec": json_text(bounds.as_json()),
        "expr_hash": "e" * 64,
        "status_code": status.value,
    }
    insert(tx, "ing_plan_slice", row)


def of_ids(*ids, endpoint="works"):
    return Bounds(ids=IdSet(endpoint, ids))


def test_the_ids_of_every_unfinished_slice_are_live_and_no_others(db):
    with db.write() as tx:
        plan = a_plan(tx, "mine")
        for number, status in enumerate(SliceStatus):
            a_slice(tx, plan, number, status, of_ids(status.value, "b"))
        a_slice(tx, plan, 20, SliceStatus.READY, Bounds(window=days(0, 1)))
        a_slice(tx, plan, 21, SliceStatus.READY, of_ids("x", endpoint="authors"))
        other = a_plan(tx, "another campaign", replace(NAMESPACE, key="d" * 64))
        a_slice(tx, other, 1, SliceStatus.READY, of_ids("y"))

    unfinished = {"PENDING", "READY", "DISPATCHED", "EXECUTING", "b"}
    live = {("works", name) for name in unfinished} | {("authors", "x")}
    assert ask(db, "list_live_ids", NAMESPACE) == live


def test_the_spec_behind_a_record_is_found_as_it_was(db):
    old, new = a_spec(), a_spec(paging={"page_size": 7})
    with db.write() as tx:
        a_plan(tx, "1", spec=old.model_dump_json())
        a_plan(tx, "2", spec=new.model_dump_json())
        a_plan(tx, "3", spec='{"format": 1}', made_by="b")

    assert ask(db, "find_spec", "a" * 64) == new
    assert ask(db, "find_spec", "b" * 64) is None, "a form that nobody reads any more"
    assert ask(db, "find_spec", "c" * 64) is None


def served(db, pack, *endpoints):
    with db.write() as tx:
        apply_pack(tx, pack, START)
        code = pack.provenance.code
        return [list_record_endpoints(tx, code, name, NOON) for name in endpoints]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("pubmed", {"fetch": ["changed", "new"], "new": ["new"]}),
        ("crossref", {"work": ["works"], "works": ["works"]}),
    ],
)
def test_a_built_in_detail_refreshes_the_records_of_its_searches(db, source, expected):
    (path,) = [path for path in builtin_packs() if path.stem == source]

    assert served(db, read_pack(path), *expected) == list(expected.values())
    with db.read() as tx:
        storing = list_storing_endpoints(tx, source, NOON)
    assert storing == sorted(set().union(*expected.values()))


def test_a_detail_that_could_be_for_several_searches_refreshes_none(sqlite_db):
    searches = {"works": an_endpoint(), "authors": an_endpoint()}
    pack = a_pack(**searches, fetch=a_detail(operations=["UPDATE"]))

    assert served(sqlite_db, pack, "fetch", "works") == [[], ["works"]]


def test_a_detail_of_a_source_that_cannot_be_searched_has_records_of_its_own(sqlite_db):
    pack = a_pack(work=a_detail(operations=["UPDATE"]), cited=a_detail(operations=["UPDATE"]))
    assert set(pack.endpoints) == {"work", "cited"}

    assert served(sqlite_db, pack, "work", "cited") == [["work"], ["cited"]]
    with sqlite_db.read() as tx:
        assert list_storing_endpoints(tx, pack.provenance.code, NOON) == ["cited", "work"]


def test_a_detail_may_name_the_searches_whose_records_it_refreshes(db):
    searches = {name: an_endpoint() for name in ("works", "changes", "authors")}
    fetch = a_detail(operations=["UPDATE"], refreshes=["works", "changes"])

    assert served(db, a_pack(**searches, fetch=fetch), "fetch") == [["changes", "works"]]


def test_an_endpoint_nobody_knows_is_named_with_those_there_are(sqlite_db):
    with pytest.raises(UnknownName, match=r"example has no endpoint 'nope'. It has: works"):
        served(sqlite_db, a_pack(), "nope")
