"""Sudden deaths by name, the source they are tried on, and everything a harvest leaves behind."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pkgutil import resolve_name
from typing import Any

import pytest
from pymysql.err import OperationalError
from sqlalchemy.engine import Dialect

from patra_ingest.ledger.db import Db, find_instant, read_instant, read_json
from patra_ingest.registry.pack import Pack
from patra_ingest_tests.builders import a_pack, an_endpoint
from patra_ingest_tests.fakes import Answer, Asked, Died, dying
from patra_ingest_tests.pipeline.harness import FATES, Home, end_state
from patra_ingest_tests.pipeline.laws import messages_of, require_sums

ITEMS = 15  # of `works` a day: two pages of ten
FOUND = ("f0", "f1", "f2", "f3", "f4", "f5")  # two pages of four, details of at most three
_OF_DETAIL = {"f0": 0, "f1": 0, "f2": 0, "f3": 1, "f4": 2, "f5": 2}


def library(asked: Asked) -> Answer:
    """Answer for `works` by offset, for `found` with ids, and for the records of ids."""
    face = asked["path"].rpartition("/")[2]
    if face == "fetch":
        there = [one for one in asked["ids"].split(",") if one != "f4"]  # found, and not there
        return 200, {"items": [_item(one, "2025-09-01T10:00:00Z") for one in there]}
    offset, start = int(asked["offset"]), asked["from"]
    if face == "found":
        return 200, {"ids": FOUND[offset : offset + 4], "total": len(FOUND)}
    numbers = range(offset, min(offset + 10, ITEMS))
    return 200, {"items": [_work(n, start) for n in numbers], "total": ITEMS}


def _work(number: int, start: str) -> Any:
    """Return a work of a day; on the second day one of the first is changed and one deleted."""
    day = start[:10]
    if day == "2025-09-02" and number in (2, 12):
        return _item(f"2025-09-01/{number}", start, deleted=number == 12)
    return _item(f"{day}/{number}", start)


def _item(name: str, updated: str, **more: Any) -> Any:
    is_bad = name in ("f2", "2025-09-01/7", "2025-09-02/13")
    return {"id": name, "updated": updated, "title": None if is_bad else f"On {name}", **more}


def library_pack(url: str, name: str) -> Pack:
    """Return the source under a name of its own, with a rate key of its own."""
    fields = {"title": {"path": "$.title", "required": True}}
    works = an_endpoint(request={"path": f"/{name}/works"}, response={"deleted": "$.deleted"})
    found = an_endpoint(
        request={"path": f"/{name}/found"},
        paging={"page_size": 4},
        response={"items": "$.ids", "id": "$"},
        detail={"endpoint": "fetch", "batch": 3, "missing": "RETRY_THEN_GONE"},
        intended=["NO_UPDATE_TIME"],
    )
    del found["fields"], found["changed"], found["response"]["updated_at"]
    fetch = {
        "usage": "DETAIL",
        "request": {"path": f"/{name}/fetch", "query": {"ids": "${ids|join(',')}"}},
        "paging": {"type": "NONE", "page_size": 100},
        "batching": {"ids_per_request": 3},
        "response": {"items": "$.items", "id": "$.id", "updated_at": "$.updated"},
        "changed": "NEWER_OR_HASH",
        "fields": fields,
    }
    pack = a_pack(url, works=works, found=found, fetch=fetch)
    rate = pack.rate.model_copy(update={"key": name, "in_flight": 3})  # the dead hold a place
    provenance = pack.provenance.model_copy(update={"code": name})
    return pack.model_copy(update={"provenance": provenance, "rate": rate})


def place_of(asked: Asked) -> tuple[str, ...]:
    """Return which batch a request belongs to."""
    face = asked["path"].rpartition("/")[2]
    if face == "fetch":
        return face, str(_OF_DETAIL[asked["ids"].split(",")[0]])
    return face, asked["from"], asked["offset"]


@dataclass(frozen=True)
class Statement:
    """Die before the n-th statement that begins like this."""

    number: int
    start: str | tuple[str, ...]


@dataclass(frozen=True)
class Call:
    """Die before, or right after, the n-th call of a function of the package."""

    number: int
    target: str
    after: bool = True


@dataclass(frozen=True)
class Commit:
    """Something happens when the n-th batch is committed."""

    number: int
    end: str  # "unsent", "died", "lost" (the connection, after the commit), "busy" (after it)


Death = Statement | Call | Commit
NO_DEATH = Statement(0, "never")
LAST_OF_BATCH = "UPDATE ing_task_run SET checkpoint"


class _Fate:
    """One process that is going to die; when it is dead, not even its `finally` writes."""

    def __init__(self, death: Death) -> None:
        self.death, self.numbers = death, count(1)
        self.is_dead, self.last = False, ""

    def hear(self, statement: str) -> bool:
        """Return whether to die before a statement; the gate's keeper is not the one who dies."""
        if threading.current_thread().name == "rate-keeper":
            return False
        self.last = statement
        death = self.death
        if isinstance(death, Statement) and statement.startswith(death.start):
            self.is_dead |= next(self.numbers) == death.number
        return self.is_dead

    def die(self) -> None:
        self.is_dead = True
        raise Died(str(self.death))

    def wrap(self, function: Callable[..., Any], death: Call) -> Callable[..., Any]:
        def called(*given: Any, **named: Any) -> Any:
            is_mine = next(self.numbers) == death.number
            if is_mine and not death.after:
                self.die()
            result = function(*given, **named)
            if is_mine:
                self.die()
            return result

        return called

    def commit(self, dialect: Dialect, real: Callable[..., None]) -> Callable[..., None]:
        def do_commit(connection: Any) -> None:
            death = self.death
            of_batch = self.last.startswith(LAST_OF_BATCH)
            is_mine = of_batch and isinstance(death, Commit) and next(self.numbers) == death.number
            if is_mine and death.end == "unsent":
                self.die()
            real(connection)
            if is_mine:
                self._fail(dialect, death.end)

        return do_commit

    def _fail(self, dialect: Dialect, end: str) -> None:
        if end == "died":
            self.die()
        if dialect.name == "mysql":
            number, said = (2013, "Lost connection") if end == "lost" else (1205, "Lock wait")
            raise OperationalError(number, said)
        said = "unable to open database file" if end == "lost" else "database is locked"
        raise dialect.loaded_dbapi.OperationalError(said)


@contextmanager
def fated(db: Db, death: Death) -> Iterator[list[str]]:
    """Let a death happen to whoever works in this block; yields the statements so far."""
    fate, dialect = _Fate(death), db.engine.dialect
    with pytest.MonkeyPatch.context() as patch, dying(db, fate.hear) as seen:
        if isinstance(death, Call):
            patch.setattr(death.target, fate.wrap(resolve_name(death.target), death))
        patch.setattr(dialect, "do_commit", fate.commit(dialect, dialect.do_commit))
        yield seen


def traces(home: Home, name: str) -> dict[str, Any]:
    """Return all that a harvest leaves behind, without ids of rows, times and the source's name."""
    batches = _batches(home, name)
    for one in batches:
        assert one["itemsCount"] == sum(one[fate] for fate in FATES), one
    require_sums(home, name)
    return {
        "state": end_state(home, name),
        "batches": batches,
        "outbox": messages_of(home, name),
        "quarantine": sorted(str(tuple(row)) for row in home.rows(_QUARANTINE, code=name)),
        "cursors": sorted((row[0], read_instant(row[1])) for row in home.rows(_CURSORS, code=name)),
        "steps": sorted(
            {
                (row[0], str(find_instant(row[1])), read_instant(row[2]))
                for row in home.rows(_EVENTS, code=name)
            }
        ),
    }


_TOLD = ("itemsCount", *FATES, "listed", "total", "hasNext", "stopRule", "late")
_OF_IDS = ("phase", "askedCount", "goneIds", "badIds", "foundIds")


def _batches(home: Home, name: str) -> list[dict[str, Any]]:
    found = []
    for row in home.rows(_BATCHES, code=name):
        stats = read_json(row.stats)
        told = {key: stats.get(key) for key in (*_TOLD, *_OF_IDS)}
        place = {"at": read_instant(row.window_from), "after": row.after_token}
        place |= {"endpoint": row.endpoint_name, "before": row.before_token, "no": row.page_no}
        found.append({**place, "records": row.record_count, **told})
    return found


_BATCHES = (
    "SELECT b.endpoint_name, s.window_from, b.page_no, b.before_token, b.after_token,"
    " b.record_count, b.stats FROM ing_task_run_batch b"
    " JOIN ing_plan_slice s ON s.id = b.slice_id"
    " WHERE b.status_code = 'SUCCEEDED' AND b.provenance_code = :code"
    " ORDER BY b.endpoint_name, s.window_from, b.id"
)
_QUARANTINE = (
    "SELECT endpoint_name, kind_code, provider_id, item_no, path, reason, value_text, fragment,"
    " status_code FROM ing_quarantine WHERE provenance_code = :code"
)
_CURSORS = "SELECT endpoint_name, normalized_instant FROM ing_cursor WHERE provenance_code = :code"
_EVENTS = (
    "SELECT endpoint_name, prev_instant, new_instant FROM ing_cursor_event"
    " WHERE provenance_code = :code AND reason = 'ADVANCE'"
)
