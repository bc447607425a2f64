"""Three workers that stop wherever they are told to, one source, one ledger, and what must hold.

Every worker is a thread that waits at gates: around its requests, its commits and its cursor. Only
one of them ever runs, and only as far as its next gate, so that a failure can be repeated.
"""

import json
import threading
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from patra_ingest.clock import Clock
from patra_ingest.cursor.advance import CursorManager
from patra_ingest.executor.execute import TaskExecutor
from patra_ingest.executor.run_batch import BatchRunner
from patra_ingest.ledger.tasks import Lease
from patra_ingest.model.window import instant_iso
from patra_ingest.registry.pack import Pack
from patra_ingest.transport.messages import Request, Response
from patra_ingest.wiring import Ingest
from patra_ingest_tests.builders import a_pack, an_endpoint, day
from patra_ingest_tests.fakes import Died
from patra_ingest_tests.pipeline.harness import Home

DAYS = 4
PER_DAY = {"works": 7, "found": 5}
_SECONDS = 60  # so long may a worker need from gate to gate

Item = dict[str, Any]


@dataclass
class Source:
    """What a source has, day by day; it answers as told, once for each trouble."""

    clock: Clock
    items: dict[str, list[Item]] = field(default_factory=dict)  # by endpoint
    trouble: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for endpoint, count in PER_DAY.items():
            self.items[endpoint] = [
                self._item(f"{endpoint}-{number}-{n}", number, n)
                for number in range(DAYS)
                for n in range(count)
            ]

    def _item(self, name: str, number: int, n: int) -> Item:
        # One item of the second day can never be mapped.
        title = None if (number, n) == (1, 3) else "first"
        return {"id": name, "updated": f"{day(number):%Y-%m-%d}T0{n}:00:00Z", "title": title}

    def change(self, endpoint: str, number: int, **values: Any) -> None:
        """Give a record another content and a later time on the same day."""
        item = self.items[endpoint][number]
        if item["title"] is None:
            return
        minutes = int(item["updated"][14:16]) + 1
        item.update(values, updated=f"{item['updated'][:14]}{minutes:02d}:00Z")
        item["title"] = f"changed {minutes} times"

    def answer(self, request: Request) -> Response:
        parts = urlsplit(request.full_url)
        asked = dict(parse_qsl(parts.query))
        status, tree, headers = self._answer(parts.path.strip("/"), asked)
        body, url = json.dumps(tree).encode(), request.shown_url
        return Response(status, headers, body, 0.01, url, self.clock.now())

    def _answer(self, face: str, asked: dict[str, str]) -> tuple[int, Any, dict[str, str]]:
        match self.trouble.pop(0) if self.trouble else None:
            case "503":
                return 503, {}, {}
            case "429 for a while":
                return 429, {}, {"retry-after": "2"}
            case "429 for long":
                return 429, {}, {"retry-after": "300"}
            case "an empty page" if face != "fetch":  # it would mean: they are gone
                return 200, {"items": [], "total": 99}, {}
        if face == "fetch":
            wanted = asked["ids"].split(",")
            return 200, {"items": [i for i in self.items["found"] if i["id"] in wanted]}, {}
        offset = int(asked["offset"])
        today = [i for i in self.items[face] if i["updated"][:10] == asked["from"][:10]]
        return 200, {"items": today[offset : offset + 3], "total": len(today)}, {}


def a_pack_of_two() -> Pack:
    """Return the source: `works` in pages, `found` in two phases."""
    works = an_endpoint(paging={"page_size": 3}, response={"deleted": "$.deleted"})
    found = an_endpoint(
        request={"path": "/found"},
        paging={"page_size": 3},
        detail={"endpoint": "fetch", "batch": 2, "missing": "RETRY_THEN_GONE"},
        intended=["NO_UPDATE_TIME"],
    )
    del found["fields"], found["changed"], found["response"]["updated_at"]
    fetch = an_endpoint(
        usage="DETAIL", batching={"ids_per_request": 2}, response={"deleted": "$.deleted"}
    )
    fetch["request"] = {"path": "/fetch", "query": {"ids": "${ids|join(',')}"}}
    fetch["paging"] = {"type": "NONE", "page_size": 100}
    del fetch["window"]
    return a_pack(works=works, found=found, fetch=fetch)


class Hand:
    """One worker: at rest, or on its way through a task and waiting at a gate."""

    def __init__(self, name: str, live: Ingest, source: Source) -> None:
        self.name = name
        self.lease: Lease | None = None
        self.where: str | None = None
        self.ends: list[str] = []
        self._go, self._still = threading.Semaphore(0), threading.Semaphore(0)
        self._is_dying, self._error = False, None
        upstream = live.upstream()
        object.__setattr__(upstream, "transport", _Line(source, self))
        runner = _Runner(live.db, live.clock, upstream)
        cursors = _Cursors(live.db, live.clock)
        runner.hand = cursors.hand = self
        self._executor = TaskExecutor(live.db, live.clock, runner, cursors)

    def begin(self, lease: Lease) -> None:
        """Take a task in hand and go to the first gate."""
        self.lease, self._is_dying = lease, False
        threading.Thread(target=self._execute, args=(lease,), daemon=True).start()
        self._wait()

    def go_on(self) -> None:
        """Go to the next gate, or to the end of the task."""
        self._go.release()
        self._wait()

    def die(self) -> None:
        """Die at the gate."""
        self._is_dying = True
        self.go_on()

    def pause(self, where: str) -> None:
        """Wait at a gate; called by the worker's own thread."""
        self.where = where
        self._still.release()
        self._go.acquire()
        if self._is_dying:
            raise Died(where)

    def _wait(self) -> None:
        assert self._still.acquire(timeout=_SECONDS), f"{self.name} went on from {self.where}"
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _execute(self, lease: Lease) -> None:
        try:
            end = self._executor.execute(
                lease, threading.Event(), lambda _: self.pause("after the commit")
            )
            self.ends.append(end.value)
        except Died:
            self.ends.append("DIED")
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits for us
            self._error = error
        finally:
            self.lease = self.where = None
            self._still.release()


class _Line:
    """The way to the source, with a gate on either side."""

    def __init__(self, source: Source, hand: Hand) -> None:
        self.source, self.hand = source, hand

    def prepare(self, request: Request) -> None:
        """Nothing has to be opened."""

    def send(self, request: Request, permit: Any) -> Response:
        self.hand.pause("before the request")
        permit.use()
        response = self.source.answer(request)
        self.hand.pause("before the answer is read")
        return response


class _Runner(BatchRunner):
    hand: Hand

    def commit(self, *given: Any) -> Any:
        self.hand.pause("before the commit")
        return super().commit(*given)


# Here the task is finished and nobody's any more; whoever comes by may move the cursor.
AFTER_THE_FINISH = ("before the cursor event", "before the cursor moves")


class _Cursors(CursorManager):
    hand: Hand

    def advance(self, *given: Any) -> Any:
        self.hand.pause(AFTER_THE_FINISH[0])
        return super().advance(*given)

    def _try_move(self, *given: Any) -> bool:
        self.hand.pause(AFTER_THE_FINISH[1])
        return super()._try_move(*given)


class Shelf:
    """The records that the committed batches must have led to, and what each batch had to count."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], tuple[str, bool, int]] = {}  # time, deleted, versions
        self._contents: dict[tuple[str, str], Item] = {}

    def take(self, endpoint: str, items: list[Item]) -> Counter[str]:
        """Take the items of a batch in; return what becomes of them, by the rule of the pack."""
        fates: Counter[str] = Counter()
        for item in items:
            fates[self._take((endpoint, item["id"]), item)] += 1
        return fates

    def _take(self, key: tuple[str, str], item: Item) -> str:
        if item["title"] is None:
            return "quarantined"
        at, is_deleted = instant_iso_of(item), bool(item.get("deleted"))
        before = self.records.get(key)
        if before is not None and at < before[0]:
            return "stale"
        if before is not None and self._contents[key] == item:
            return "unchanged"
        self.records[key] = at, is_deleted, 1 if before is None else before[2] + 1
        self._contents[key] = dict(item)
        if is_deleted and not (before and before[1]):
            return "deleted"
        return "inserted" if before is None else "updated"


def instant_iso_of(item: Item) -> str:
    """Return when an item was changed, as the ledger's instants are written here."""
    return instant_iso(datetime.fromisoformat(item["updated"]))


def require_landed(home: Home, source: Source) -> None:
    """Insist that a slice that has succeeded left nothing of its day behind."""
    kept = {row[0] for row in home.rows("SELECT provider_id FROM ing_record")}
    bad = {row[0] for row in home.rows("SELECT provider_id FROM ing_quarantine")}
    done = home.rows(
        "SELECT endpoint_name, window_from, window_to FROM ing_plan_slice"
        " WHERE status_code = 'SUCCEEDED'"
    )
    for endpoint, start, end in done:
        window = (str(start)[:10], str(end)[:10])
        for item in source.items[endpoint]:
            if window[0] <= item["updated"][:10] < window[1]:
                assert item["id"] in (bad if item["title"] is None else kept)
