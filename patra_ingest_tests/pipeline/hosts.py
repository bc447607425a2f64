"""Hosts for workers: network namespaces on one switch, or processes that each have a wire.

A namespace that is cut off is silent: no connection is broken, packets just stop. A wire that is
cut breaks its connections and refuses new ones. Real networks do both.
"""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sqlalchemy import make_url

from patra_ingest_tests.cut import Wire, wire
from patra_ingest_tests.pipeline.harness import PATRA

COUNT = 3


@dataclass(frozen=True)
class Host:
    """A place where a worker runs, with a folder of its own and one way to the ledger."""

    folder: Path
    db_url: str
    cut: Callable[[], object]
    mend: Callable[[], object]
    enter: tuple[str, ...] = ()  # what every command on this host begins with

    @contextmanager
    def worker(self, **env: str) -> Iterator[subprocess.Popen[str]]:
        """Start a worker of two lanes that ends when the queue is empty."""
        own = {"PATRA_HOME": str(self.folder), "PATRA_DB_URL": self.db_url}
        process = subprocess.Popen(
            [*self.enter, *PATRA, "work", "--until-empty", "--lanes=2"],
            env={**os.environ, "NO_PROXY": "*", **own, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


class Gateway(Wire):
    """A wire that begins at an address and a port of our choice."""

    def __init__(self, at: str, host: str, port: int, own_port: int = 0) -> None:
        self._at, self._own_port = at, own_port
        super().__init__(host, port)

    def mend(self) -> None:
        """Take connections there."""
        door = socket.create_server((self._at, self._own_port or self.port))
        self.port = door.getsockname()[1]
        with self._guard:
            self._door = door
        threading.Thread(target=self._listen, args=(door,), daemon=True).start()


@contextmanager
def wired_hosts(folder: Path, db_url: str, _source_url: str) -> Iterator[list[Host]]:
    """Processes of this machine, each behind a wire of its own to the ledger."""
    there = make_url(db_url)
    with ExitStack() as wires:
        hosts = []
        for number in range(COUNT):
            one = wires.enter_context(wire(str(there.host), int(there.port or 3306)))
            own = _moved(db_url, "127.0.0.1", one.port)
            hosts.append(Host(folder / f"host-{number}", own, one.cut, one.mend))
        yield hosts


@contextmanager
def namespace_hosts(folder: Path, db_url: str, source_url: str) -> Iterator[list[Host]]:
    """Network namespaces on one switch; the machine itself is the way to ledger and source.

    Every host has the source at the same address on its own loopback: packs allow HTTP only there.
    """
    ledger, source = (make_url(url) for url in (db_url, source_url))
    tag = os.getpid() % 100_000
    net = f"198.18.{tag % 250}"
    with ExitStack() as undo:
        _ip("link", "add", f"pb{tag}", "type", "bridge")
        undo.callback(_ip, "link", "delete", f"pb{tag}")
        _ip("address", "add", f"{net}.1/24", "dev", f"pb{tag}")
        _ip("link", "set", f"pb{tag}", "up")
        to_ledger = Gateway(f"{net}.1", str(ledger.host), int(ledger.port or 3306))
        undo.callback(to_ledger.cut)
        to_source = Gateway(f"{net}.1", str(source.host), int(source.port or 80))
        undo.callback(to_source.cut)
        own = _moved(db_url, f"{net}.1", to_ledger.port)
        way = (f"{net}.1", to_source.port, int(source.port or 80))
        hosts = []
        for number in range(COUNT):
            name, port = f"patra-{tag}-{number}", f"pv{tag}-{number}"
            undo.enter_context(_namespace(name, port, f"pb{tag}", f"{net}.{number + 2}/24"))
            enter = ("ip", "netns", "exec", name)
            undo.enter_context(_source_inside(enter, way))
            down, up = (partial(_ip, "link", "set", port, state) for state in ("down", "up"))
            hosts.append(Host(folder / f"host-{number}", own, down, up, enter))
        yield hosts


@contextmanager
def _namespace(name: str, port: str, switch: str, address: str) -> Iterator[None]:
    _ip("netns", "add", name)
    try:
        _ip("-n", name, "link", "set", "lo", "up")
        _ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", port, "master", switch, "up")
        _ip("-n", name, "address", "add", address, "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")
        yield
    finally:
        _ip("link", "delete", port)  # a namespace lives on while one of its sockets has unsent data
        _ip("netns", "delete", name)


_INSIDE = """
import sys
from patra_ingest_tests.pipeline.hosts import Gateway
Gateway("127.0.0.1", sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def _source_inside(enter: tuple[str, ...], way: tuple[str, int, int]) -> Iterator[None]:
    """Let a namespace have the source on its loopback, by way of the switch."""
    process = subprocess.Popen(
        [*enter, sys.executable, "-c", _INSIDE, *map(str, way)],
        stdin=subprocess.PIPE,  # its end is the end of the process
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        process.kill()
        process.communicate()


def can_make_namespaces() -> bool:
    """Return whether this machine lets us make network namespaces and switches."""
    name = f"pp{os.getpid() % 100_000}"
    try:
        _ip("netns", "add", name)
        _ip("netns", "delete", name)
        _ip("link", "add", name, "type", "bridge")
        _ip("link", "delete", name)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def _moved(url: str, host: str, port: int) -> str:
    return make_url(url).set(host=host, port=port).render_as_string(hide_password=False)
