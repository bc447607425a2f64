"""What a token endpoint answered: a token, or an error with its level. Pure."""

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import orjson

from patra_ingest.errors import EndpointHalted, Throttled, TransientError
from patra_ingest.transport.messages import Response

DEFAULT_LIFE = timedelta(hours=1)
_LONGEST_LIFE = timedelta(days=365)  # ORCID's live for twenty years; we look again
_DEFAULT_PAUSE = timedelta(seconds=10)
_CODE = re.compile(r"[a-z_]{1,40}", re.ASCII)
# A server that wants the client's name and secret in the other place says one of these.
_CLIENT_UNSEEN = frozenset({"", "invalid_client", "invalid_request"})


@dataclass(frozen=True)
class Granted:
    """An access token, how long it lives, and the refresh token that replaces ours, if any."""

    access_token: str = field(repr=False)
    life: timedelta
    refresh_token: str | None = field(repr=False)


def is_client_unseen(response: Response) -> bool:
    """Whether the endpoint may have looked for the client's secret in the other place."""
    return response.status in (400, 401) and _error_code(_tree(response)) in _CLIENT_UNSEEN


def read_granted(response: Response, what: str) -> Granted:
    """Return the token, or raise what the answer means; `what` names the credential."""
    error = find_error(response, what)
    if error is not None:
        raise error
    tree = _tree(response)
    refresh = tree.get("refresh_token")
    return Granted(tree["access_token"], _life(tree.get("expires_in")), _text(refresh))


def find_error(response: Response, what: str) -> EndpointHalted | TransientError | None:
    """Return the error that an answer stands for; its text is not shown, it may hold a token."""
    status, tree = response.status, _tree(response)
    code = _error_code(tree)
    seen = f"{response.url} answered {status}{f' {code}' if code else ''} for {what}"
    if status == 429 or (status == 503 and response.retry_at):
        return Throttled(response.retry_at or _later(response.received_at), seen)
    if status >= 500 or status in (408, 425):
        return TransientError(seen)
    if status != 200 or code:
        return EndpointHalted(f"{seen}: correct its secrets or renew them, then resume")
    if not _text(tree.get("access_token")):
        return TransientError(f"{seen}, but without a token")
    return None


def _later(now: datetime) -> datetime:
    return now + _DEFAULT_PAUSE


def _tree(response: Response) -> dict[str, Any]:
    try:
        tree = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        return {}
    return tree if isinstance(tree, dict) else {}


def _error_code(tree: dict[str, Any]) -> str:
    code = tree.get("error")
    if not code:
        return ""
    return code if isinstance(code, str) and _CODE.fullmatch(code) else "error"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _life(expires_in: object) -> timedelta:
    """Return how long a token lives; some say it as text, some not at all."""
    try:
        seconds = float(str(expires_in))
        life = timedelta(seconds=min(seconds, _LONGEST_LIFE.total_seconds()))
    except (ValueError, OverflowError):
        return DEFAULT_LIFE
    return life if life > timedelta(0) else DEFAULT_LIFE
