"""Ctrl-C and SIGTERM ask for an orderly end: after the current batch, not in the midst of it."""

import signal
import threading


def stop_on_signals() -> threading.Event:
    """Return the event that SIGINT and SIGTERM set from now on."""
    stop = threading.Event()

    def ask_to_stop(*_: object) -> None:
        # From a thread: a second signal may arrive while the first one is inside `set`.
        threading.Thread(target=stop.set).start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask_to_stop)
    return stop
