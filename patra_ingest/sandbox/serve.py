"""Runs the sandbox in the foreground of this process, on 127.0.0.1 only."""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from patra_ingest.clock import SystemClock
from patra_ingest.errors import PortTaken
from patra_ingest.sandbox.app import App
from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.world import World

HOST = "127.0.0.1"


def serve(port: int, world: World, behaviour: Behaviour, announce: Callable[[str], None]) -> None:
    """Answer requests until SIGINT or SIGTERM; `announce` gets the URL once it can be used.

    Port 0 takes a free port. A port that cannot be had raises PortTaken before anything else.
    """
    listener = _bind(port)
    try:
        config = uvicorn.Config(
            App(world, behaviour, SystemClock()),
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=75,  # as long as common load balancers; uvicorn's 5 s surprise pools
            timeout_graceful_shutdown=1,  # nobody waits for a sandbox
        )
        server = uvicorn.Server(config)
        url = f"http://{HOST}:{listener.getsockname()[1]}"
        with (
            _ended_by_signals(server),
            asyncio.Runner(loop_factory=config.get_loop_factory()) as runner,
        ):
            runner.run(_run(server, listener, lambda: announce(url)))
    finally:
        listener.close()


def _bind(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name == "posix":
        # Lets a restart have the port at once; on Windows it would let two servers share it.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()  # two that start at once may both bind; only one may listen
    except (OSError, OverflowError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) else "no such port"
        raise PortTaken(
            f"The sandbox cannot listen on port {port} of {HOST} ({reason}).",
            "Choose another port, or 0 for any free one.",
        ) from error
    return listener


async def _run(
    server: uvicorn.Server, listener: socket.socket, announce: Callable[[], None]
) -> None:
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(0.005)
        if server.started and not server.should_exit:
            announce()
    except BaseException:
        server.should_exit = True
        raise
    finally:
        await serving


@contextmanager
def _ended_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Make SIGINT and SIGTERM a normal end: uvicorn raises them once more after it has stopped."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_signal: int, _frame: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
