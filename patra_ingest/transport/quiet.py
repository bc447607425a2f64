"""What the HTTP libraries may say in the log: nothing that a request hides.

httpx logs every URL it asks for; httpcore, when debugging, headers and raw bytes.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from patra_ingest.transport.hiding import hide
from patra_ingest.transport.redact import redact_text

_secrets: ContextVar[frozenset[str]] = ContextVar("_secrets", default=frozenset())


def keep_quiet() -> None:
    """Put the guard before both libraries' logs; safe to repeat."""
    logging.getLogger("httpx").addFilter(_without_secrets)
    logging.getLogger("httpcore").setLevel(logging.INFO)


@contextmanager
def quiet_about(secrets: frozenset[str]) -> Iterator[None]:
    """Hide `secrets` in whatever this thread's requests log during the block."""
    token = _secrets.set(secrets)
    try:
        yield
    finally:
        _secrets.reset(token)


def _without_secrets(record: logging.LogRecord) -> bool:
    record.msg, record.args = redact_text(hide(record.getMessage(), _secrets.get()), None), ()
    return True
