"""Starts the sandbox as a child process, asks it things, and makes sure that it ends."""

import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

import orjson

from patra_ingest.errors import PersonMustAct
from patra_ingest.sandbox.behaviour import Behaviour, option_of
from patra_ingest.sandbox.world import World

_DIRECT = build_opener(ProxyHandler({}))  # never through a proxy: it is this very machine
_START_SECONDS = 30.0
_END_SECONDS = 5.0
_ASK_SECONDS = 120.0  # the truth about a million works takes a few seconds to write


@dataclass(frozen=True)
class Truth:
    """What the upstream really has for a window: ids in index order, and when each was indexed.

    A face tells more: versions and titles by id, what was deleted, and what a search finds although
    no record comes of it, being gone, merged into another one, or bad.
    """

    count: int
    ids: Sequence[str]
    updated_at: Mapping[str, str]
    versions: Mapping[str, int] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    deleted: Sequence[str] = ()
    gone: Sequence[str] = ()
    merged: Sequence[str] = ()
    bad: Sequence[str] = ()


class Arrival(NamedTuple):
    """One request as the sandbox saw it come."""

    at: float  # seconds of the machine's monotonic clock, the same in all its processes
    status: int  # 0: not answered yet
    in_flight: int  # how many were being answered then, with this one
    worker: str | None  # what it said in X-Worker


@dataclass(frozen=True)
class Sandbox:
    """A running sandbox."""

    url: str
    pid: int

    def truth(
        self, start: datetime | None = None, end: datetime | None = None, face: str | None = None
    ) -> Truth:
        """Return the works indexed in `[start, end)`, as a face has them; unbounded: all."""
        bounds = {"from": start, "to": end}
        params = {name: at.isoformat() for name, at in bounds.items() if at is not None}
        if face:
            params["face"] = face
        return Truth(**self._ask("GET", "/__truth", params))

    def behave(self, *habits: str) -> None:
        """Take on these habits and no others; the world is as it was at the start."""
        self._ask("POST", "/__behave", {"habits": ",".join(habits)})

    def change(self, **values: float) -> None:
        """Change fields of the behaviour while it runs; the others stay."""
        written = {name: str(value).lower() for name, value in values.items()}
        self._ask("POST", "/__behave", written)

    def refuse_next(self, count: int = 1, retry_after: int = 1) -> None:
        """Answer the next requests with 429, whatever the limits; 0 does not say for how long."""
        self.change(refuse_next=count, retry_after=retry_after)

    def arrivals(self) -> list[Arrival]:
        """Return every request since the last reset, in the order they came; at most 200,000."""
        return [Arrival(*one) for one in self._ask("GET", "/__arrivals")["arrivals"]]

    def stats(self) -> dict[str, Any]:
        """Return what the sandbox has seen of its callers."""
        return self._ask("GET", "/__stats")

    def reset(self) -> None:
        """Make the sandbox forget what it has seen."""
        self._ask("POST", "/__reset")

    def _ask(self, method: str, path: str, params: dict[str, str] | None = None) -> dict[str, Any]:
        request = Request(f"{self.url}{path}?{urlencode(params or {})}", method=method)
        with _DIRECT.open(request, timeout=_ASK_SECONDS) as response:
            answer: dict[str, Any] = orjson.loads(response.read())
        return answer


@contextmanager
def start_sandbox(
    world: World, behaviour: Behaviour | None = None, port: int = 0
) -> Iterator[Sandbox]:
    """Run a sandbox for the length of the block; port 0 takes a free one.

    It ends with the block, also when the block raises, and with this process, even after kill -9.
    """
    process = subprocess.Popen(
        _command(world, behaviour or Behaviour(), port),
        stdin=subprocess.PIPE,  # never written to: its end tells the child that we are gone
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for us; we end the child when we are done with it
    )
    try:
        yield Sandbox(_wait_for_url(process), process.pid)
    finally:
        _end(process)


def _command(world: World, behaviour: Behaviour, port: int) -> list[str]:
    command = [sys.executable, "-m", "patra_ingest.sandbox", f"--port={port}"]
    command.append("--until-stdin-closes")
    command += [f"--records={world.records}", f"--start={world.start.isoformat()}"]
    command += [f"--days={world.days!r}", f"--seed={world.seed}"]
    for one in fields(Behaviour):
        value = getattr(behaviour, one.name)
        option = option_of(one.name)
        if value == one.default:
            continue
        if value is True:
            command.append(option)
        elif isinstance(value, frozenset):
            command.append(f"{option}={','.join(sorted(value))}")
        else:
            command.append(f"{option}={value}")
    return command


def _wait_for_url(process: subprocess.Popen[str]) -> str:
    """Return the URL that the child announces as its first line."""
    assert process.stdout is not None
    lines: queue.Queue[str] = queue.Queue()
    # A thread, because a pipe cannot be read with a deadline on every platform.
    reader = threading.Thread(target=lambda out=process.stdout: lines.put(out.readline()))
    reader.daemon = True
    reader.start()
    try:
        url = lines.get(timeout=_START_SECONDS).strip()
        problem = "" if url else f"ended with code {process.wait(_END_SECONDS)}"
    except (queue.Empty, subprocess.TimeoutExpired):
        problem = f"did not announce itself within {_START_SECONDS:.0f} s"
    if problem:
        raise PersonMustAct(
            f"The sandbox {problem} before it could be used.",
            "Run `python -m patra_ingest.sandbox` to see why.",
        )
    return url


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
