"""What holds in a ledger at any moment, whoever works on it and whatever happens to him."""

from collections import Counter
from datetime import datetime
from typing import Any

from patra_ingest.ledger.db import read_instant, read_json
from patra_ingest.model.keys import outbox_key
from patra_ingest.model.window import instant_iso
from patra_ingest_tests.pipeline.harness import FATES, Home


def messages_of(home: Home, name: str) -> list[Any]:
    """Return what others are told, in order; every key is that of its payload, once."""
    found, seen = [], Counter[str]()
    for row in home.rows(_OUTBOX, code=f"record.{name}"):
        told = read_json(row.payload_json)
        who = (told["provenance"], told["endpoint"], told["id"], told["kind"])
        version = (told["sourceUpdatedAt"], told["contentHash"], told["revision"])
        assert row.dedup_key == outbox_key(*who, *version)
        seen[row.dedup_key] += 1
        found.append((*who[1:], *version, row.op_type, row.partition_key, row.status_code))
    assert set(seen.values()) <= {1}
    return sorted(found, key=str)


def require_sums(home: Home, name: str) -> None:
    """Insist that what a run says of itself is the sum of its batches."""
    own: dict[int, Counter[str]] = {}
    for row in home.rows(_OF_RUNS, code=name):
        stats = read_json(row.stats)
        own.setdefault(row.run_id, Counter()).update({key: stats[key] for key in FATES})
    ended = "SELECT id, stats, status_code FROM ing_task_run WHERE provenance_code = :c"
    for row in home.rows(ended, c=name):
        stats = read_json(row.stats)
        assert stats is not None or row.status_code == "RUNNING", "a run ended without its sums"
        if stats is not None:
            told = Counter({key: stats[key] for key in FATES})
            assert +told == +own.get(row.id, Counter()), f"run {row.id} does not add up"


def require_one_walk(home: Home) -> None:
    """Insist that no page was committed twice, and that a task has one open run at most."""
    assert home.rows(_TWICE) == []
    assert home.rows(_TWO_RUNS) == []
    assert home.rows(_ORPHANS) == []


def require_cover(home: Home) -> None:
    """Insist that every step of a cursor went over slices that have succeeded."""
    for event in home.rows(_EVENTS):
        at, end = read_instant(event.window_from), read_instant(event.window_to)
        for start, past in home.rows(_DONE, endpoint=event.endpoint_name, key=event.namespace_key):
            if read_instant(start) <= at:
                at = max(at, read_instant(past))
        assert at >= end, f"{event} went over what has not succeeded"


def stored_records(home: Home) -> dict[tuple[str, str], tuple[str, bool, int]]:
    """Return the update time, the deletion and the number of versions of every record."""
    return {
        (row[0], row[1]): (instant_iso(read_instant(row[2])), bool(row[3]), row[4] + 1)
        for row in home.rows(_RECORDS)
    }


def cursor_values(home: Home) -> dict[tuple[str, ...], datetime]:
    """Return where every cursor stands."""
    return {tuple(row[:-1]): read_instant(row[-1]) for row in home.rows(_CURSORS)}


_RECORDS = (
    "SELECT endpoint_name, provider_id, source_updated_at, is_deleted, version FROM ing_record"
)
_CURSORS = (
    "SELECT endpoint_name, operation_code, namespace_scope_code, namespace_key, normalized_instant"
    " FROM ing_cursor"
)
_OF_RUNS = (
    "SELECT run_id, stats FROM ing_task_run_batch"
    " WHERE status_code = 'SUCCEEDED' AND provenance_code = :code"
)
_OUTBOX = (
    "SELECT dedup_key, op_type, partition_key, status_code, payload_json FROM ing_outbox_message"
    " WHERE channel = :code"
)
# A run that ended with its certificate, but did not succeed, ended a walk.
_TWICE = """
    SELECT task_id, walk, expr_hash, before_token, COUNT(*) FROM (
        SELECT b.task_id, b.expr_hash, b.before_token,
               (SELECT COUNT(*) FROM ing_task_run x
                 WHERE x.task_id = b.task_id AND x.attempt_no < r.attempt_no
                   AND x.status_code <> 'SUCCEEDED' AND x.certificate IS NOT NULL) AS walk
          FROM ing_task_run_batch b JOIN ing_task_run r ON r.id = b.run_id
         WHERE b.status_code = 'SUCCEEDED') AS walked
     GROUP BY task_id, walk, expr_hash, before_token HAVING COUNT(*) > 1
"""
_TWO_RUNS = """
    SELECT task_id FROM ing_task_run WHERE status_code IN ('PLANNED', 'RUNNING', 'SUCCEEDED')
     GROUP BY task_id HAVING COUNT(*) > 1
"""
_ORPHANS = """
    SELECT b.id FROM ing_task_run_batch b JOIN ing_task_run r ON r.id = b.run_id
     WHERE b.status_code = 'RUNNING' AND r.status_code <> 'RUNNING'
"""
_EVENTS = (
    "SELECT endpoint_name, namespace_key, window_from, window_to FROM ing_cursor_event"
    " WHERE reason = 'ADVANCE'"
)
_DONE = (
    "SELECT s.window_from, s.window_to FROM ing_plan_slice s JOIN ing_plan p ON p.id = s.plan_id"
    " WHERE s.status_code = 'SUCCEEDED' AND s.endpoint_name = :endpoint AND p.namespace_key = :key"
    " ORDER BY s.window_from, s.window_to"
)
