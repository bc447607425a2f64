"""A batch is written down before its request leaves, once per position of its run."""

from types import SimpleNamespace

import pytest
from sqlalchemy import text
from sqlalchemy.exc import NoResultFound

from patra_ingest.ledger.batches import BatchStart, start_batch
from patra_ingest.ledger.tasks import Lease, Partition
from patra_ingest.model.codes import Operation
from patra_ingest_tests.builders import NOON

LEASE = Lease(4, 3, 2, 1, "worker#1", NOON, Partition("example", "works", "HARVEST"))
PLAN = SimpleNamespace(
    namespace=SimpleNamespace(provenance="example", endpoint="works", operation=Operation.HARVEST)
)


def start(db, position, number, run=5):
    batch = BatchStart(run, number, position, number, 100, "e" * 64)
    with db.write() as tx:
        return start_batch(tx, LEASE, PLAN, batch, NOON)


def test_every_position_of_every_run_is_a_batch_of_its_own(db):
    ids = [start(db, "token:a", 1), start(db, "token:b", 2), start(db, "token:a", 1, run=6)]

    with db.read() as tx:
        found = tx.execute(text("SELECT id, before_token FROM ing_task_run_batch ORDER BY id"))
        assert [tuple(row) for row in found] == list(
            zip(ids, ["token:a", "token:b", "token:a"], strict=True)
        )


def test_a_leftover_of_the_same_position_is_run_again_in_place(db):
    first = start(db, "token:a", 1)
    other = start(db, "token:b", 2)

    assert start(db, "token:a", 1) == first
    assert start(db, "token:b", 2) == other


def test_what_stands_beside_a_leftover_in_its_transaction_is_kept(db):
    start(db, "token:a", 1)
    with db.write() as tx:
        for position, number in (("token:b", 2), ("token:a", 1), ("token:c", 3)):
            batch = BatchStart(5, number, position, number, 100, "e" * 64)
            start_batch(tx, LEASE, PLAN, batch, NOON)

    with db.read() as tx:
        assert tx.execute(text("SELECT COUNT(*) FROM ing_task_run_batch")).scalar_one() == 3


def test_a_number_that_another_position_has_is_refused(db):
    start(db, "token:a", 1)

    with pytest.raises(NoResultFound):
        start(db, "token:b", 1)
