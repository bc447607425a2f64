"""Which version of a record wins."""

from datetime import timedelta

import pytest

from patra_ingest.executor.mapping import tombstones
from patra_ingest.model.records import ChangeCounts, ChangeRule, Known, change_of
from patra_ingest_tests.builders import NOON, a_record

NEWER, OR_HASH, HASH = ChangeRule.NEWER, ChangeRule.NEWER_OR_HASH, ChangeRule.HASH
LATER, EARLIER = NOON + timedelta(seconds=1), NOON - timedelta(seconds=1)


def known(updated=NOON, content="1", deleted=False):
    return Known(updated, content * 64, deleted)


def new(updated=NOON, content="1", deleted=False):
    return a_record("a", updated, content)._replace(is_deleted=deleted)


@pytest.mark.parametrize(
    ("rule", "old", "record", "expected"),
    [
        pytest.param(NEWER, None, new(), "inserted", id="never seen"),
        pytest.param(NEWER, None, new(deleted=True), "deleted", id="never seen, and withdrawn"),
        pytest.param(NEWER, known(), new(LATER, "2"), "updated", id="newer"),
        pytest.param(NEWER, known(), new(LATER, "1"), "updated", id="newer, same content"),
        pytest.param(NEWER, known(), new(EARLIER, "2"), "stale", id="older"),
        pytest.param(NEWER, known(), new(), "unchanged", id="the same"),
        pytest.param(NEWER, known(), new(NOON, "2"), "unchanged", id="equal keeps"),
        pytest.param(OR_HASH, known(), new(NOON, "2"), "updated", id="equal time, other content"),
        pytest.param(OR_HASH, known(), new(), "unchanged", id="equal time, same content"),
        pytest.param(OR_HASH, known(), new(EARLIER, "2"), "stale", id="older, other content"),
        pytest.param(HASH, known(), new(EARLIER, "2"), "updated", id="only the content counts"),
        pytest.param(HASH, known(), new(LATER, "1"), "unchanged", id="only the content, same"),
        pytest.param(HASH, known(None), new(None, "2"), "updated", id="no times at all"),
        pytest.param(HASH, known(None), new(None), "unchanged", id="no times, same content"),
        pytest.param(NEWER, known(None), new(NOON, "2"), "updated", id="the first time it tells"),
        pytest.param(NEWER, known(), new(LATER, deleted=True), "deleted", id="withdrawn"),
        pytest.param(NEWER, known(), new(EARLIER, deleted=True), "stale", id="withdrawn long ago"),
        pytest.param(HASH, known(), new(deleted=True), "deleted", id="withdrawn, by content"),
        pytest.param(
            NEWER, known(deleted=True), new(LATER, deleted=True), "updated", id="again withdrawn"
        ),
        pytest.param(NEWER, known(deleted=True), new(LATER), "updated", id="it came back"),
        pytest.param(
            NEWER, known(deleted=True), new(deleted=True), "unchanged", id="still withdrawn"
        ),
    ],
)
def test_what_a_version_does_to_the_one_we_have(rule, old, record, expected):
    assert change_of(old, record, rule) == expected


@pytest.mark.parametrize("rule", ChangeRule)
@pytest.mark.parametrize("updated", [EARLIER, NOON, LATER])
@pytest.mark.parametrize("content", ["1", "2"])
@pytest.mark.parametrize("deleted", [True, False])
def test_the_same_version_again_changes_nothing(rule, updated, content, deleted):
    record = new(updated, content, deleted)
    stored = Known(record.source_updated_at, record.content_hash, record.is_deleted)

    assert change_of(stored, record, rule) == "unchanged"


@pytest.mark.parametrize("rule", ChangeRule)
@pytest.mark.parametrize(
    ("old", "expected"),
    [
        pytest.param(None, "deleted", id="of a record never seen"),
        pytest.param(known(), "deleted", id="of a record we have"),
        pytest.param(known(None), "deleted", id="of one without a time"),
        pytest.param(known(deleted=True), "unchanged", id="of one that is deleted already"),
    ],
)
def test_a_tombstone_deletes_once_whatever_the_rule(rule, old, expected):
    (tombstone,) = tombstones(["a"])

    assert change_of(old, tombstone, rule) == expected


def test_counts_account_for_every_record():
    assert ChangeCounts(1, 2, 3, 4, 5).total() == 15
