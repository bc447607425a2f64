"""Where the queue has something: the partitions and priorities with queued tasks.

A group is found by one jump along an index, however many tasks it has, so a queue of a hundred
thousand tasks costs as much to look at as one of a hundred.
"""

from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection

from patra_ingest.ledger.db import instant_text
from patra_ingest.ledger.statements import execute
from patra_ingest.ledger.tasks import NOT_HELD, Partition, TaskFilter

_HINT = {"mysql": "FORCE INDEX ({})", "sqlite": "INDEXED BY {}"}
_GROUP = ("provenance_code", "endpoint_name", "operation_code", "priority")
_COLUMNS = ", ".join(_GROUP)


class Group(NamedTuple):
    """Queued tasks of one partition and one priority; whether one is due is not said."""

    partition: Partition
    priority: int


def list_groups(tx: Connection, now: datetime, wanted: TaskFilter) -> list[Group]:
    """Return the groups that are not held; none when nothing in the whole queue is due."""
    if not _is_any_due(tx, now):
        return []
    query = _groups_query(tx.dialect.name, wanted.plan_id is not None)
    values = {} if wanted.plan_id is None else {"plan_id": wanted.plan_id}
    found = (_group(row) for row in execute(tx, query, values))
    return [group for group in found if wanted.has(group.partition)]


def _group(row: Any) -> Group:
    return Group(Partition(row[0], row[1], row[2]), int(row[3]))


_ANY_DUE = """
    SELECT 1 FROM ing_task {hint}
     WHERE status_code = 'QUEUED' AND (scheduled_at IS NULL OR scheduled_at <= :now) LIMIT 1
"""


def _is_any_due(tx: Connection, now: datetime) -> bool:
    values = {"now": instant_text(now)}
    return execute(tx, _any_due_query(tx.dialect.name), values).first() is not None


@cache
def _any_due_query(dialect: str) -> str:
    return _ANY_DUE.format(hint=_HINT[dialect].format("idx_task_sched_at"))


@cache
def _groups_query(dialect: str, of_plan: bool) -> str:
    groups = _led(of_plan) if dialect == "sqlite" else _leaping(of_plan)
    return f"SELECT {_COLUMNS} FROM ({groups}) t WHERE {NOT_HELD}"


def queue_of(dialect: str, of_plan: bool) -> tuple[str, str]:
    """Return the condition for the queue, or for that of a plan, and the index that knows it."""
    hint = _HINT[dialect]
    if not of_plan:
        return "t.status_code = 'QUEUED'", hint.format("idx_task_fair")
    return "t.plan_id = :plan_id AND t.status_code = 'QUEUED'", hint.format("idx_task_fair_plan")


def _leaping(of_plan: bool) -> str:
    """Return the query for MySQL, which jumps by itself if it is asked for the index's prefix."""
    queued, hint = queue_of("mysql", of_plan)
    prefix = "plan_id, status_code" if of_plan else "status_code"
    return f"SELECT DISTINCT {prefix}, {_COLUMNS} FROM ing_task t {hint} WHERE {queued}"


def _led(of_plan: bool) -> str:
    """Return the query for SQLite, which must be told how to jump from one group to the next."""
    queued, hint = queue_of("sqlite", of_plan)
    nearest = ", ".join(_jump(queued, hint, same) for same in reversed(range(len(_GROUP))))
    first = f"SELECT t.id FROM ing_task t {hint} WHERE {queued} ORDER BY {_COLUMNS} LIMIT 1"
    return f"""
        WITH RECURSIVE jump (id) AS (
            SELECT ({first})
             UNION ALL
            SELECT COALESCE({nearest}) FROM jump JOIN ing_task o ON o.id = jump.id
        )
        SELECT o.* FROM jump JOIN ing_task o ON o.id = jump.id
    """


def _jump(queued: str, hint: str, same: int) -> str:
    """Return the next group that agrees with `o` in its first columns and is past it in one."""
    past = _GROUP[same]
    alike = "".join(f" AND t.{column} = o.{column}" for column in _GROUP[:same])
    order = ", ".join(f"t.{column}" for column in _GROUP[same:])
    return (
        f"(SELECT t.id FROM ing_task t {hint} WHERE {queued}{alike} AND t.{past} > o.{past}"
        f" ORDER BY {order} LIMIT 1)"
    )
