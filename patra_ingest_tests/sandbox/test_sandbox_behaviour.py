"""What the sandbox notes about its callers, and the ways in which it can be difficult."""

import threading
from datetime import UTC, datetime

import httpx
import pytest

from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.world import World

WORLD = World(records=1200, start=datetime(2025, 3, 1, tzinfo=UTC), days=4, seed=3)


@pytest.fixture(scope="module")
def sandbox():
    with start_sandbox(WORLD) as running:
        yield running


@pytest.fixture(scope="module")
def client(sandbox):
    with httpx.Client(base_url=sandbox.url, trust_env=False, verify=False) as opened:
        yield opened


def ask(client, **params):
    return client.get("/works", params=params)


def test_the_stats_count_what_was_asked_and_name_what_was_repeated(client, sandbox):
    sandbox.reset()
    second = ask(client, rows=10, cursor="*").json()["message"]["next-cursor"]
    ask(client, rows=10, cursor=second)
    ask(client, rows=10, cursor=second)
    ask(client, rows=10, offset=10)  # the same page by another way
    ask(client, rows=10, offset=10, filter="from-index-date:2025-03-02")
    ask(client, rows="many")
    assert client.get("/__health").status_code == 200

    stats = sandbox.stats()

    assert stats["requests"] == 6
    assert stats["pages"] == {"distinct": 3, "repeated": {"@10+10": 3}}
    assert stats["by_status"] == {"200": 5, "400": 1}
    assert stats["in_flight_max"] == 1
    assert stats["bytes"] > 5 * 10 * 2000
    assert 1 <= stats["rate_max_per_second"] <= 6
    assert datetime.fromisoformat(stats["first_at"]) <= datetime.fromisoformat(stats["last_at"])


def test_a_reset_forgets_everything(client, sandbox):
    ask(client)

    sandbox.reset()

    stats = sandbox.stats()
    assert (stats["requests"], stats["by_status"], stats["first_at"]) == (0, {}, None)


def ask_often(sandbox, times):
    with httpx.Client(base_url=sandbox.url, trust_env=False, verify=False) as client:
        return [ask(client, rows=1) for _ in range(times)]


def test_every_nth_request_fails_when_asked_to():
    with start_sandbox(WORLD, Behaviour(fail_every=3)) as sandbox:
        got = [response.status_code for response in ask_often(sandbox, 7)]
        stats = sandbox.stats()

    assert got == [200, 200, 503, 200, 200, 503, 200]
    assert stats["by_status"] == {"200": 5, "503": 2}
    assert stats["pages"]["repeated"] == {"@0+1": 5}  # a failure has sent no page


def test_too_many_requests_in_a_second_are_told_to_wait():
    with start_sandbox(WORLD, Behaviour(throttle_per_second=5)) as sandbox:
        got = ask_often(sandbox, 12)

    assert [response.status_code for response in got[:6]] == [200] * 5 + [429]
    assert got[5].headers["retry-after"] == "1"
    assert "x-rate-limit-limit" not in got[0].headers, "told only by those who are told to"


def test_slow_answers_overlap():
    with start_sandbox(WORLD, Behaviour(latency_ms=400)) as sandbox:
        callers = [threading.Thread(target=ask_often, args=(sandbox, 1)) for _ in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        stats = sandbox.stats()

    assert stats["in_flight_max"] == 4


def test_answers_are_compressed_only_for_those_who_accept_it():
    with start_sandbox(WORLD, Behaviour(gzip=True)) as sandbox:
        packed = httpx.get(f"{sandbox.url}/works", trust_env=False, verify=False)
        plain = httpx.get(
            f"{sandbox.url}/works",
            headers={"accept-encoding": "identity"},
            trust_env=False,
            verify=False,
        )

    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.json() == plain.json()
