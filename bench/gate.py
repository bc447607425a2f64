"""The shared rate gate: is the limit kept by many processes, and what does a permit cost?

All requests are counted by the sandbox, which allows exactly what the limits say and answers 429
to one request more.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from bench.chart import Second, draw_recovery
from bench.figures import verdict
from bench.gate_workers import KEY, WORLD, Errand, Seen, crew, look, opened, strict
from bench.ledgers import fresh_mysql
from patra_ingest.ledger.migrate import migrate
from patra_ingest.rate.bucket import Limits, Manners
from patra_ingest.sandbox.process import Arrival, start_sandbox

LIMITS = Limits(20, burst=5, in_flight=3)
SECONDS = 30.0
THREADS = 3
PROCESSES = {"MySQL": (1, 2, 4, 8), "SQLite": (4,)}
LEAST_SHARE = 0.95

# The source's limit over time: seconds, requests per second.
PHASES = ((20.0, 20), (30.0, 10), (60.0, 20))
COOL_DOWN_SECONDS = 2
# From the lowest rate, a third of ours, by a twentieth per cool-down, after two quiet ones.
PROMISED_SECONDS = (2 + 13) * COOL_DOWN_SECONDS
RECOVERING = Limits(20, 5, 3, Manners(cool_down=timedelta(seconds=COOL_DOWN_SECONDS)))
RECOVERY_PROCESSES = 2
CHART = Path(__file__).parents[1] / "docs" / "rate-recovery.svg"

# Asked for more slowly than allowed: what is measured is never the wait for a token.
FAST, FAST_PER_SECOND, FAST_ROUNDS = Limits(10_000, burst=1000, in_flight=64), 3000.0, 5000
SLOW, SLOW_PER_SECOND, SLOW_ROUNDS = Limits(50, burst=5, in_flight=3), 25.0, 150
FAST_MS, SLOW_MS = 0.2, 5.0
LANES = 4


def measure_sharing(folder: Path, mysql_server: str) -> None:
    """Print how well 1 to 8 processes use up one budget, and that they never exceed it."""
    rate, burst = float(LIMITS.rate_per_second), float(LIMITS.burst)
    print(f"\nOne key: {rate:g}/s, burst {burst:g}, {LIMITS.in_flight} in flight, {SECONDS:g} s")
    print("  ledger  processes  requests   rate  of allowed  most in 1 s  in flight  429  min/max")
    for engine, processes in PROCESSES.items():
        for count in processes:
            with _ledger(engine, folder, mysql_server) as url:
                if url is not None:
                    _say_sharing(engine, count, _share(url, count))


def _share(ledger: str, processes: int) -> Seen:
    with start_sandbox(WORLD, strict(LIMITS)) as sandbox:
        errand = Errand(ledger, sandbox.url, LIMITS, SECONDS, THREADS)
        with crew(errand, processes):
            pass
        return look(sandbox, errand, processes)


def _say_sharing(engine: str, processes: int, seen: Seen) -> None:
    most = int(LIMITS.rate_per_second + LIMITS.burst)
    is_met = (
        seen.share >= LEAST_SHARE
        and seen.most_in_a_second <= most
        and seen.most_in_flight <= (LIMITS.in_flight or 0)
        and seen.refused == 0
    )
    judged = verdict(f"≥ {LEAST_SHARE:.0%}, ≤ {most}, ≤ {LIMITS.in_flight}, 0", is_met)
    print(
        f"  {engine:<7} {processes:9} {seen.requests:9} {seen.requests / SECONDS:6.2f}"
        f" {seen.share:11.1%} {seen.most_in_a_second:12} {seen.most_in_flight:10}"
        f" {seen.refused:4} {seen.fairness:8.2f}   {judged}"
    )


def measure_recovery(folder: Path, mysql_server: str) -> None:
    """Halve the limit of the source without a word, restore it, and draw what happened."""
    engine = "MySQL" if mysql_server else "SQLite"
    seconds = sum(length for length, _ in PHASES)
    with (
        _ledger(engine, folder, mysql_server) as url,
        start_sandbox(WORLD, strict(RECOVERING, retry_after=0)) as sandbox,
    ):
        errand = Errand(url or "", sandbox.url, RECOVERING, seconds, THREADS)
        with crew(errand, RECOVERY_PROCESSES):
            began = time.monotonic()
            for length, rate in PHASES:
                sandbox.change(throttle_per_second=rate)
                time.sleep(length)
        history = _by_second(sandbox.arrivals(), began)
    draw_recovery(CHART, history)
    _say_recovery(engine, history)


def _by_second(arrivals: list[Arrival], began: float) -> list[Second]:
    """Return, for every second, what was allowed, answered and refused."""
    limits = [rate for length, rate in PHASES for _ in range(int(length))]
    answered, refused = [0] * len(limits), [0] * len(limits)
    for one in arrivals:
        second = int(one.at - began)
        if 0 <= second < len(limits):
            (refused if one.status == 429 else answered)[second] += 1
    return [Second(*of_one) for of_one in zip(limits, answered, refused, strict=True)]


def _say_recovery(engine: str, history: list[Second]) -> None:
    print(f"\nThe limit is halved and restored ({engine}): drawn in docs/{CHART.name}")
    first = 0
    for length, rate in PHASES:
        phase = history[first : first + int(length)]
        reached = statistics.mean(one.answered for one in phase[len(phase) // 2 :])
        refused = sum(one.refused for one in phase)
        print(
            f"  {rate}/s for {length:.0f} s: {refused} refused, two quiet cool-downs after"
            f" {_quiet_after(phase)} s, {LEAST_SHARE:.0%} after {_full_after(phase, rate)} s,"
            f" {reached:.1f}/s ({reached / rate:.0%}) in the second half"
        )
        first += int(length)
    _judge_recovery(history)


def _judge_recovery(history: list[Second]) -> None:
    halved, restored = (int(sum(length for length, _ in PHASES[:n])) for n in (1, 2))
    quiet = _quiet_after(history[halved:restored])
    back = _full_after(history[restored:], PHASES[-1][1])
    promise = f"quiet within {2 * COOL_DOWN_SECONDS} s, back within {PROMISED_SECONDS} s"
    print(f"  {verdict(promise, quiet <= 2 * COOL_DOWN_SECONDS and back <= PROMISED_SECONDS)}")


def _quiet_after(phase: list[Second]) -> float:
    """Return the second that begins two cool-downs without a refusal."""
    wide = 2 * COOL_DOWN_SECONDS
    for number in range(len(phase) - wide + 1):
        if not any(one.refused for one in phase[number : number + wide]):
            return number
    return float("inf")


def _full_after(phase: list[Second], rate: int) -> float:
    """Return the second that begins three in which the rate is reached."""
    for number in range(len(phase) - 2):
        if sum(one.answered for one in phase[number : number + 3]) >= 3 * rate * LEAST_SHARE:
            return number
    return float("inf")


def measure_permits(folder: Path, mysql_server: str) -> None:
    """Print what acquiring and releasing a permit costs when there is nothing to wait for."""
    print("\nAcquire and release, without waiting for tokens")
    for engine in PROCESSES:
        with _ledger(engine, folder, mysql_server) as url:
            if url is None:
                continue
            fast = _times(url, FAST, FAST_PER_SECOND, FAST_ROUNDS, 1)
            _say_times(f"{engine:<6} fast key, 1 lane ", fast, FAST_MS)
            lanes = _times(url, FAST, FAST_PER_SECOND, FAST_ROUNDS, LANES)
            _say_times(f"{engine:<6} fast key, {LANES} lanes", lanes, FAST_MS)
            slow = _times(url, SLOW, SLOW_PER_SECOND, SLOW_ROUNDS, 1)
            _say_times(f"{engine:<6} slow key, 1 lane ", slow, SLOW_MS)


def _times(ledger: str, limits: Limits, per_second: float, rounds: int, lanes: int) -> list[float]:
    """Return the milliseconds of each permit, after some to warm up."""
    key = f"{KEY}/{limits.rate_per_second}/{lanes}"
    with opened(ledger, "bench") as gate, ThreadPoolExecutor(lanes) as pool:

        def permit() -> None:
            gate.release(gate.acquire(key, limits))

        _paced(permit, per_second, rounds // 10)
        share = rounds // lanes
        jobs = [pool.submit(_paced, permit, per_second / lanes, share) for _ in range(lanes)]
        return [ms for job in jobs for ms in job.result()]


def _paced(action: Callable[[], object], per_second: float, rounds: int) -> list[float]:
    """Return the milliseconds of each call, made no faster than `per_second`."""
    taken, due = [], time.perf_counter()
    for _ in range(rounds):
        due = max(due + 1 / per_second, time.perf_counter())
        time.sleep(max(0.0, due - time.perf_counter()))
        began = time.perf_counter()
        action()
        taken.append((time.perf_counter() - began) * 1000)
    return taken


def _say_times(what: str, taken: list[float], most_ms: float) -> None:
    mean, p95 = statistics.mean(taken), statistics.quantiles(taken, n=20)[-1]
    judged = verdict(f"mean ≤ {most_ms} ms", mean <= most_ms)
    print(f"  {what}: mean {mean:7.3f} ms  p95 {p95:7.3f} ms  worst {max(taken):7.2f}   {judged}")


@contextmanager
def _ledger(engine: str, folder: Path, mysql_server: str) -> Iterator[str | None]:
    """The URL of a fresh ledger; None without a MySQL server, which is said."""
    if engine == "SQLite":
        url = f"sqlite:///{folder / uuid4().hex}.db"
        migrate(url)
        yield url
    elif mysql_server:
        with fresh_mysql(mysql_server) as url:
            migrate(url)
            yield url
    else:
        print(f"  {engine}: not measured, PATRA_TEST_MYSQL_URL is not set")
        yield None
