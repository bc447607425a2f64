"""Processes that share one rate key: a permit, a question to the sandbox, and the next one.

What they did is counted by the sandbox, not by them. The tests of the shared gate use them, too.
"""

import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier

import httpx

from patra_ingest.clock import SystemClock
from patra_ingest.ledger.db import open_db
from patra_ingest.rate.bucket import Limits
from patra_ingest.rate.gate import RateGate
from patra_ingest.rate.keeper import tended
from patra_ingest.rate.signals import Complaint, Silence
from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.process import Sandbox
from patra_ingest.sandbox.world import World

KEY = "bench/gate"
LATENCY_MS = 20.0
WORLD = World(records=10, start=datetime(2026, 1, 1, tzinfo=UTC), days=1, seed=1)
_START_SECONDS = 60.0  # eight processes on a busy machine need a while to import everything
_END_SECONDS = 60.0


@dataclass(frozen=True)
class Errand:
    """What every process of a crew does, and for how long."""

    ledger: str
    sandbox: str
    limits: Limits
    seconds: float
    threads: int = 2


@dataclass(frozen=True)
class Seen:
    """What the sandbox saw of a crew."""

    requests: int  # that came in the time, counted from the first
    share: float  # … of what the limits allow in that time
    most_in_a_second: int
    most_in_flight: int
    refused: int
    by_worker: tuple[int, ...]  # 0 for one that never came

    @property
    def fairness(self) -> float:
        """Return how much the process with the fewest requests had of the one with the most."""
        return min(self.by_worker) / max(self.by_worker)


def strict(limits: Limits, retry_after: int = 1) -> Behaviour:
    """Return the behaviour of a source that allows exactly what the limits say."""
    return Behaviour(
        latency_ms=LATENCY_MS,
        throttle_per_second=int(limits.rate_per_second),
        throttle_burst=int(limits.burst),
        throttle_in_flight=limits.in_flight or 0,
        retry_after=retry_after,
    )


@contextmanager
def crew(errand: Errand, processes: int) -> Iterator[list[BaseProcess]]:
    """Start the processes; the block begins when they do, and they have ended when it ends."""
    spawn = multiprocessing.get_context("spawn")
    start = spawn.Barrier(processes + 1)
    hands = [
        spawn.Process(target=work, args=(errand, _name(number), start), daemon=True)
        for number in range(processes)
    ]
    for hand in hands:
        hand.start()
    try:
        start.wait(_START_SECONDS)
        yield list(hands)
        for hand in hands:
            hand.join(errand.seconds + _END_SECONDS)
    finally:
        _end(hands)
    if bad := [hand.exitcode for hand in hands if hand.exitcode != 0]:
        raise RuntimeError(f"processes of the crew ended with {bad}")


def _name(number: int) -> str:
    return f"process-{number}"


def _end(hands: Sequence[BaseProcess]) -> None:
    for hand in hands:
        if hand.is_alive():
            hand.kill()
        hand.join()


def work(errand: Errand, name: str, start: Barrier) -> None:
    """Be one process of a crew."""
    with opened(errand.ledger, name) as gate, _client(errand.sandbox, name) as client:
        start.wait(_START_SECONDS)
        end = time.monotonic() + errand.seconds
        with ThreadPoolExecutor(errand.threads) as pool:
            lanes = [
                pool.submit(_walk, errand.limits, gate, client, end) for _ in range(errand.threads)
            ]
        for lane in lanes:
            lane.result()


def _walk(limits: Limits, gate: RateGate, client: httpx.Client, end: float) -> None:
    while time.monotonic() < end:
        with gate.permit(KEY, limits):
            answer = client.get("/works", params={"rows": 1})
            report(gate, KEY, answer)  # before the place is free, as the executor does


def report(gate: RateGate, key: str, response: httpx.Response) -> None:
    """Tell the gate what an answer says about our speed; without a Retry-After, wait a second."""
    if response.status_code == 429:
        pause = timedelta(seconds=int(response.headers.get("retry-after", 1)))
        gate.feedback(key, Complaint(), Silence(gate.clock.now() + pause))


@contextmanager
def opened(ledger: str, name: str) -> Iterator[RateGate]:
    """A gate as a worker has it, connected and looked after."""
    db = open_db(ledger)
    with db.read() as tx:
        db.now(tx)
    try:
        with tended(RateGate(db, SystemClock(), name, tended=True)) as gate:
            yield gate
    finally:
        db.close()


@contextmanager
def _client(url: str, name: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, headers={"X-Worker": name}, trust_env=False) as client:
        client.get("/__health")
        yield client


def look(sandbox: Sandbox, errand: Errand, processes: int) -> Seen:
    """Return what the sandbox saw of a crew since its last reset."""
    arrivals, stats = sandbox.arrivals(), sandbox.stats()
    requests = sum(one.at <= arrivals[0].at + errand.seconds for one in arrivals)
    limits, by_worker = errand.limits, Counter(one.worker for one in arrivals)
    allowed = float(limits.rate_per_second) * errand.seconds + float(limits.burst)
    return Seen(
        requests=requests,
        share=requests / allowed,
        most_in_a_second=stats["rate_max_per_second"],
        most_in_flight=stats["in_flight_max"],
        refused=sum(one.status == 429 for one in arrivals),
        by_worker=tuple(by_worker[_name(number)] for number in range(processes)),
    )
