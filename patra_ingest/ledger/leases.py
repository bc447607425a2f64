"""Leases: which task is next.

Tasks that are due and not held are leased by priority. Within a priority the partitions take turns:
the one with the fewest tasks in work is next, then the one that was served longest ago. A thousand
tasks of one source so never stand in the way of one task of another.

The limits hold exactly, however many workers lease at once: on MySQL they line up at one row of
`ing_lease_turn`, on SQLite at the ledger itself. What counts against a limit is every task that is
leased; one whose lease has run out counts until it is freed (`silent`), which is the first thing
of a worker's round. No function here commits: the caller owns the transaction.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import Connection

from patra_ingest.ledger.db import insert_missing, instant_text
from patra_ingest.ledger.due_groups import Group, list_groups, queue_of
from patra_ingest.ledger.slices import follow_task
from patra_ingest.ledger.statements import execute
from patra_ingest.ledger.tasks import EVERY_TASK, Lease, Partition, TaskFilter
from patra_ingest.model.codes import SliceStatus, TaskStatus
from patra_ingest.model.lifecycle import ensure_transition
from patra_ingest.model.lineage import PlanId, ScheduleInstanceId, SliceId, TaskId


@dataclass(frozen=True)
class Limits:
    """How many tasks may be in work at once, over all workers."""

    per_partition: int = 16
    total: int = 64
    closed: frozenset[Partition] = frozenset()  # what this worker leaves to others for now


NO_LIMITS = Limits(1_000_000_000, 1_000_000_000)


def try_lease_one(
    tx: Connection,
    owner: str,
    now: datetime,
    term: timedelta,
    wanted: TaskFilter = EVERY_TASK,
    limits: Limits = NO_LIMITS,
) -> Lease | None:
    """Lease the task whose turn it is; what silent workers hold is to be freed before."""
    for lease in lease_tasks(tx, owner, 1, now, term, wanted, limits):
        follow_task(tx, lease.slice_id, SliceStatus.DISPATCHED, now)
        return lease
    return None


def lease_tasks(  # noqa: PLR0913 - who, how many, when, how long, of what, within which limits
    tx: Connection,
    owner: str,
    limit: int,
    now: datetime,
    term: timedelta,
    wanted: TaskFilter = EVERY_TASK,
    limits: Limits = NO_LIMITS,
) -> list[Lease]:
    """Lease up to `limit` due tasks that nobody holds, most urgent first, partitions in turn."""
    groups = list_groups(tx, now, wanted)
    if not groups:
        return []
    load = _lock_load(tx, limits)
    leases: list[Lease] = []
    while len(leases) < limit and (group := load.next_of(groups)) is not None:
        lease = _try_take(tx, group, owner, now, term, wanted)
        if lease is None:
            groups.remove(group)
            continue
        leases.append(lease)
        load.serve(group.partition)
    _save_turns(tx, load, {lease.partition for lease in leases}, now)
    return leases


@dataclass
class _Load:
    """What is in work, and when each partition was served last."""

    limits: Limits
    running: Counter[Partition]
    turns: dict[Partition, int]

    def next_of(self, groups: Iterable[Group]) -> Group | None:
        """Return the group whose turn it is; None when the limits admit none."""
        if self.running.total() >= self.limits.total:
            return None
        admitted = (group for group in groups if self._admits(group.partition))
        return min(admitted, key=self._place, default=None)

    def _admits(self, partition: Partition) -> bool:
        is_full = self.running[partition] >= self.limits.per_partition
        return not is_full and partition not in self.limits.closed

    def _place(self, group: Group) -> tuple[int, int, int, Partition]:
        one = group.partition
        return group.priority, self.running[one], self.turns.get(one, 0), one

    def serve(self, partition: Partition) -> None:
        """Count a task as in work; its partition is the last in line."""
        self.running[partition] += 1
        self.turns[partition] = 1 + max(self.turns.values(), default=0)


_NOBODY = {"provenance_code": "", "endpoint_name": "", "operation_code": "HARVEST"}
_LOCK = """
    SELECT id FROM ing_lease_turn
     WHERE provenance_code = '' AND endpoint_name = '' AND operation_code = 'HARVEST' FOR UPDATE
"""
_LOAD = """
    SELECT provenance_code, endpoint_name, operation_code, COUNT(*) AS running, 0 AS turn_no
      FROM ing_task WHERE status_code IN ('DISPATCHED', 'EXECUTING')
     GROUP BY provenance_code, endpoint_name, operation_code
     UNION ALL
    SELECT provenance_code, endpoint_name, operation_code, 0, turn_no FROM ing_lease_turn
"""


def _lock_load(tx: Connection, limits: Limits) -> _Load:
    """Read what is in work; nobody else leases before `tx` has ended."""
    # SQLite: a writing transaction already holds the whole ledger.
    if tx.dialect.name == "mysql" and execute(tx, _LOCK, {}).one_or_none() is None:
        insert_missing(tx, "ing_lease_turn", [_NOBODY])
    load = _Load(limits, Counter(), {})
    for provenance, endpoint, operation, running, turn in execute(tx, _LOAD, {}):
        one = Partition(provenance, endpoint, operation)
        load.running[one] += int(running)
        load.turns[one] = max(load.turns.get(one, 0), int(turn))
    return load


_NEXT = """
    SELECT t.id, t.slice_id, t.plan_id, t.schedule_instance_id FROM ing_task t {hint}
     WHERE {queued} AND t.provenance_code = :of_provenance AND t.endpoint_name = :of_endpoint
       AND t.operation_code = :of_operation AND t.priority = :priority
       AND (t.scheduled_at IS NULL OR t.scheduled_at <= :now) {conditions}
     ORDER BY t.scheduled_at, t.id LIMIT 1
"""

_TAKE = """
    UPDATE ing_task
       SET status_code = 'DISPATCHED', lease_owner = :owner, leased_until = :until,
           lease_count = lease_count + 1, last_heartbeat_at = :now, updated_at = :now
     WHERE id = :id AND status_code = 'QUEUED'
"""


def _try_take(
    tx: Connection,
    group: Group,
    owner: str,
    now: datetime,
    term: timedelta,
    wanted: TaskFilter,
) -> Lease | None:
    """Lease the first due task of a group; None when none is due, or others hold those that are."""
    row = _find_next(tx, group, now, wanted)
    if row is None:
        return None
    ensure_transition(TaskStatus.QUEUED, TaskStatus.DISPATCHED)
    until = now + term
    times = {"until": instant_text(until), "now": instant_text(now)}
    execute(tx, _TAKE, {"id": row.id, "owner": owner, **times})
    ids = TaskId(row.id), SliceId(row.slice_id), PlanId(row.plan_id)
    started_by = ScheduleInstanceId(row.schedule_instance_id)
    return Lease(*ids, started_by, owner, until, group.partition)


def _find_next(tx: Connection, group: Group, now: datetime, wanted: TaskFilter) -> Any:
    conditions, values = wanted.sql()
    query = _next_query(tx.dialect.name, wanted.plan_id is not None, conditions)
    where = {f"of_{name}": value for name, value in group.partition._asdict().items()}
    given = {"now": instant_text(now), "priority": group.priority, **where, **values}
    return execute(tx, query, given).one_or_none()


@cache
def _next_query(dialect: str, of_plan: bool, conditions: str) -> str:
    queued, hint = queue_of(dialect, of_plan)
    lock = " FOR UPDATE OF t SKIP LOCKED" if dialect == "mysql" else ""
    return _NEXT.format(hint=hint, queued=queued, conditions=conditions) + lock


_TURN = """
    UPDATE ing_lease_turn SET turn_no = :turn, version = version + 1, updated_at = :now
     WHERE provenance_code = :provenance AND endpoint_name = :endpoint
       AND operation_code = :operation
"""


def _save_turns(tx: Connection, load: _Load, served: set[Partition], now: datetime) -> None:
    for one in served:
        turn = load.turns[one]
        values = {**one._asdict(), "turn": turn, "now": instant_text(now)}
        if execute(tx, _TURN, values).rowcount == 0:
            columns = dict(zip(_NOBODY, one, strict=True))
            insert_missing(tx, "ing_lease_turn", [{**columns, "turn_no": turn}])
