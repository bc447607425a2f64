"""The sandbox as a process: how it starts, and that it always ends."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime

import httpx
import pytest

from patra_ingest.errors import PersonMustAct, PortTaken
from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.serve import serve
from patra_ingest.sandbox.world import World

WORLD = World(records=10, start=datetime(2025, 1, 1, tzinfo=UTC), days=1, seed=1)
COMMAND = [sys.executable, "-m", "patra_ingest.sandbox"]

PARENT = """
import sys, time
from datetime import UTC, datetime
from patra_ingest.sandbox.process import start_sandbox
from patra_ingest.sandbox.world import World
with start_sandbox(World(10, datetime(2025, 1, 1, tzinfo=UTC), 1, 1)) as sandbox:
    print(sandbox.pid, sandbox.url, flush=True)
    time.sleep(60)
"""


def answers(url):
    with suppress(httpx.TransportError):
        return httpx.get(f"{url}/__health", trust_env=False, verify=False).status_code == 200
    return False


def wait_until_silent(url):
    deadline = time.monotonic() + 10
    while answers(url) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not answers(url)


@pytest.fixture
def taken_port():
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def test_a_taken_port_is_said_in_one_sentence_before_anything_else(taken_port):
    announced = []

    with pytest.raises(PortTaken, match=f"port {taken_port} of 127.0.0.1"):
        serve(taken_port, WORLD, Behaviour(), announced.append)

    assert announced == []


def test_the_command_says_so_too_without_a_traceback(taken_port):
    done = subprocess.run([*COMMAND, f"--port={taken_port}"], capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert str(taken_port) in done.stderr


@pytest.mark.parametrize("wrong", ["--days=0", "--fail-every=-1", "--start=soon", "--port=x"])
def test_wrong_usage_ends_with_code_two(wrong):
    done = subprocess.run([*COMMAND, wrong], capture_output=True, text=True)

    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_a_normal_end_even_with_a_caller_waiting(number):
    with subprocess.Popen(
        [*COMMAND, "--latency-ms=60000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        url = process.stdout.readline().strip()
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as caller:
            caller.sendall(b"GET /works HTTP/1.1\r\nHost: sandbox\r\n\r\n")
            while not httpx.get(f"{url}/__stats", trust_env=False, verify=False).json()["requests"]:
                time.sleep(0.01)
            process.send_signal(number)
            code = process.wait(10)
        complaints = process.stderr.read()

    assert (code, complaints) == (0, "")


def test_a_port_can_be_had_again_at_once():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for _ in range(2):
        with subprocess.Popen(
            [*COMMAND, f"--port={port}"], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout.readline().strip() == f"http://127.0.0.1:{port}"
            with httpx.Client(trust_env=False, verify=False) as client:
                client.get(f"http://127.0.0.1:{port}/works")
                process.terminate()
                process.wait(10)


def test_the_sandbox_ends_with_its_block_even_when_the_block_raises():
    seen = []

    def block():
        with start_sandbox(WORLD) as sandbox:
            seen.extend([sandbox.pid, sandbox.url, answers(sandbox.url)])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        block()

    pid, url, answered = seen
    assert answered
    assert not answers(url)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_sandbox_ends_when_its_parent_is_killed():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True
    ) as parent:
        pid, url = parent.stdout.readline().split()
        assert answers(url)
        parent.kill()

    silent = wait_until_silent(url)
    if not silent:
        os.kill(int(pid), signal.SIGKILL)
    assert silent


def test_a_sandbox_that_cannot_start_is_reported(monkeypatch, tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))

    with pytest.raises(PersonMustAct, match="ended with code 3"), start_sandbox(WORLD):
        pytest.fail("the block must not run")
