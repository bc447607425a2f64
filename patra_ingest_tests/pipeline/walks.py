"""What the tests of walks share: a source that hears everything, works in time, and harvests."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from patra_ingest.ledger.db import read_json
from patra_ingest.model.window import instant_iso
from patra_ingest.registry.pack import Pack, parse_pack
from patra_ingest.registry.pack_file import PackText
from patra_ingest_tests.builders import START, a_trigger, an_item, day, pack_text
from patra_ingest_tests.fakes import FakeUpstream, _Handler
from patra_ingest_tests.pipeline.harness import Home, work_off

Answer = Callable[[dict[str, Any]], Any]


class _Open(_Handler):
    """Hears the query, the headers and the body, of a GET and of a POST."""

    def do_GET(self) -> None:
        assert isinstance(self.server, FakeUpstream)
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_json = "json" in self.headers.get("Content-Type", "")
        pairs = parse_qsl(parts.query) + ([] if is_json else parse_qsl(body.decode()))
        asked: dict[str, Any] = {**dict(pairs), "path": parts.path, "method": self.command}
        asked["pairs"] = pairs
        asked["url"] = f"http://{self.headers['Host']}{self.path}"
        asked["headers"] = dict(self.headers)
        asked["json"] = json.loads(body) if is_json else None
        self.server.asked.append(asked)
        status, tree, *headers = self.server.answer(asked)
        sent = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(sent)), **(headers or [{}])[0]}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(sent)

    do_POST = do_GET


@contextmanager
def listening(answer: Answer) -> Iterator[FakeUpstream]:
    """Run a pretend source for the length of the block."""
    with FakeUpstream(answer) as server:
        server.RequestHandlerClass = _Open
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def works(count: int) -> list[Any]:
    """Return so many works, one a minute from the first midnight on."""
    return [an_item(f"w{n:03d}", stamp(n)) for n in range(count)]


def stamp(minutes: int) -> str:
    """Return the instant so many minutes after the first midnight."""
    return instant_iso(START + timedelta(minutes=minutes)).replace(".000000Z", "Z")


def between(items: list[Any], asked: dict[str, Any]) -> list[Any]:
    """Return the works of the window that was asked for, bounds included."""
    return [item for item in items if asked["from"] <= item["updated"] <= asked["to"]]


def a_source(url: str, more: dict[str, Any] | None = None, **endpoints: Any) -> Pack:
    """Return a pack with these endpoints; `more` is laid over its policies."""
    text = pack_text(url, **endpoints)
    for part, values in (more or {}).items():
        text[part] = {**text.get(part, {}), **values}
    return parse_pack(PackText("the test's pack", text, {}))


def harvest(home: Home, rounds: int = 1, past: int = 1, **trigger: Any) -> list[str]:
    """Plan the first days and work; return how every attempt at a task ended."""
    home.plan(a_trigger(start=day(0), end=day(past), **trigger))
    return work_on(home, rounds)


def work_on(home: Home, rounds: int = 1) -> list[str]:
    """Work; between rounds, pauses pass and what must be cut again is cut."""
    ends: list[str] = []
    with home.live() as live:
        for turn in range(rounds):
            if turn:
                home.pass_pauses()
            ends += work_off(live).tasks.elements()
            live.planner.reslice("example")
    return ends


def records(home: Home) -> list[str]:
    """Return the ids of the records that are there, in order."""
    query = "SELECT provider_id FROM ing_record WHERE is_deleted = 0 ORDER BY provider_id"
    return [row[0] for row in home.rows(query)]


def ids(count: int) -> list[str]:
    """Return the ids of so many works."""
    return [f"w{n:03d}" for n in range(count)]


def batches(home: Home, status: str = "SUCCEEDED") -> list[dict[str, Any]]:
    """Return the stats of the batches, in the order they were asked for."""
    query = "SELECT stats FROM ing_task_run_batch WHERE status_code = :status ORDER BY id"
    return [read_json(row[0]) for row in home.rows(query, status=status)]


def proofs(home: Home) -> list[dict[str, Any]]:
    """Return the certificates of the runs that succeeded."""
    query = "SELECT certificate FROM ing_task_run WHERE status_code = 'SUCCEEDED' ORDER BY id"
    return [read_json(row[0]) for row in home.rows(query)]


def last_error(home: Home) -> tuple[str, str, str]:
    """Return the status of the only task, and the code and words of its last error."""
    (row,) = home.rows("SELECT status_code, last_error_code, last_error_msg FROM ing_task")
    return tuple(row)
