"""What an answer means for us: first by the rules of the pack, in their order, then by its status.

Every error says who answered what, the first bytes of it without secrets, and what helps.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import orjson

from patra_ingest.errors import (
    CredentialRefused,
    EndpointHalted,
    IngestError,
    PageTooBig,
    RequestRejected,
    SliceMustRestart,
    SliceTooBig,
    Throttled,
    TransientError,
)
from patra_ingest.executor.conditions import holds
from patra_ingest.expr.path import compile_path
from patra_ingest.model.codes import ResliceReason, RetryAfterPolicy
from patra_ingest.spec.places import ErrorRule
from patra_ingest.spec.references import secrets_of
from patra_ingest.spec.snapshot import CallSpec, HttpSpec
from patra_ingest.spec.words import Action
from patra_ingest.transport.messages import Response
from patra_ingest.transport.redact import redact_text, redact_url

_DEFAULT_PAUSE = timedelta(seconds=1)
_SAMPLE_BYTES = 300

_RAISED: Mapping[Action, type[IngestError]] = {
    Action.RESTART_SLICE: SliceMustRestart,
    Action.SHRINK_PAGE: PageTooBig,
    Action.RENEW_TOKEN: CredentialRefused,
    Action.FATAL: EndpointHalted,
}
# Nothing but a person, at another place than the source's own access rules, can mend these.
_HALTS: Mapping[int, str] = {
    402: "the source wants to be paid; look at the account",
    407: "the proxy does not accept us; see http.proxy",
    511: "the network between us and the source wants a login",
}
_REMEDIES: Mapping[int, str] = {
    405: "the method is not allowed here; see request.method",
    406: "no such format; see the Accept header in http.headers",
    413: "the request or its page is too big; lower paging.page_size or batching.ids_per_request",
    414: "the URL is too long; set request.post_when_longer, or lower batching.ids_per_request",
    415: "the source does not read this kind of body; see request",
    431: "the headers are too long; see http.headers, or send less in the URL",
}

_MAX_READ = 65_536  # a longer answer is no error message: cut off, it is no JSON
_MAX_DEPTH, _MAX_FIELDS, _MAX_NAME = 8, 3, 80
_NAMING = ("parameter", "param", "field", "pointer", "loc")
_IN_A_LIST = ("name", "value")  # elsewhere they are about the error itself
_KINDS = ("type", "code", "reason")


def judge(
    response: Response, call: CallSpec, read_tree: Callable[[], Any], now: datetime
) -> IngestError | Action | None:
    """Return the error an answer stands for, or None when it is an ordinary answer.

    Action.EMPTY and Action.GONE are successes without items. `read_tree` reads the body, once at
    most if that works, and only for a rule that looks into it.
    """
    read_once = cache(read_tree)
    for rule in call.errors:
        if holds(rule.when, response, read_once):
            return _ruled(rule, response, call.http, now, _found(rule, response, read_once))
    return _by_status(response, call, now)


def _found(rule: ErrorRule, response: Response, read_tree: Callable[[], Any]) -> str | None:
    """Return what stands where a rule looked: an error deep in a body is seldom in its sample."""
    where = rule.when.path
    if where is None:
        return None
    value = compile_path(where).first(read_tree())
    if isinstance(value, bool | int | float):
        return f"{where}: {value}"
    text = value if isinstance(value, str) else getattr(value, "text", "")
    return f"{where}: {sample(response.hide(text).encode())}" if text.strip() else None


def _ruled(
    rule: ErrorRule, response: Response, http: HttpSpec, now: datetime, found: str | None
) -> IngestError | Action:
    seen = _seen(response, rule.note, found)
    match rule.do:
        case Action.EMPTY | Action.GONE:
            return rule.do
        case Action.RETRY:
            asked = find_retry_at(response, http, now)
            if asked is None and rule.wait is not None:
                # The pack asks for patience with this question, not for silence.
                return Throttled(response.received_at + rule.wait, seen, for_all=False)
            return _later(seen, asked, _plus(response, rule.wait))
        case Action.THROTTLE:
            pause = _plus(response, max(rule.wait or _DEFAULT_PAUSE, _DEFAULT_PAUSE))
            return _later(seen, find_retry_at(response, http, now), pause)
        case Action.RESLICE:
            return SliceTooBig(ResliceReason.RESULT_CAP, seen)
        case Action.REJECT:
            return RequestRejected(_seen(response, rule.note, found or _blamed(response)))
        case _:
            return _RAISED[rule.do](seen)


def _by_status(response: Response, call: CallSpec, now: datetime) -> IngestError | None:
    status, retry = response.status, call.retry
    if 200 <= status < 300:
        return None
    if status in retry.give_up:
        return _rejected(response, call, "retry.give_up says not to ask again")
    if status == 429:
        retry_at = find_retry_at(response, call.http, now)
        return _later(_seen(response), retry_at or _plus(response, _DEFAULT_PAUSE))
    if status in retry.statuses or (status >= 500 and status not in _HALTS):
        return _later(_seen(response), find_retry_at(response, call.http, now))
    if status == 401:
        return CredentialRefused(_seen(response, _refusal(call)))
    if status == 403 or status in _HALTS:
        return EndpointHalted(_seen(response, _HALTS.get(status) or _refusal(call)))
    return _rejected(response, call, _REMEDIES.get(status))


def _later(seen: str, *earliest: datetime | None) -> TransientError:
    """Return what is to be asked again; whoever names an instant is heard, the latest wins."""
    named = [at for at in earliest if at is not None]
    return Throttled(max(named), seen) if named else TransientError(seen)


def _rejected(response: Response, call: CallSpec, remedy: str | None) -> RequestRejected:
    if 300 <= response.status < 400 and (target := response.headers.get("location")):
        place = redact_text(redact_url(response.hide(target.strip())), _SAMPLE_BYTES)
        remedy = f"it points to {place}, and http.redirects is {call.http.redirects}"
    return RequestRejected(_seen(response, remedy, _blamed(response)))


def _refusal(call: CallSpec) -> str:
    refused = "the source does not accept our credentials"
    named = [
        f"{one.name} ({', '.join(secrets_of(one.credential))})" for one in call.auth.credentials
    ]
    if not named:
        return f"{refused}; the pack declares none"
    if call.auth.chosen is None:
        return f"{refused}; none is at hand: set {' or '.join(named)}"
    return f"{refused}, wrong or expired; see {' or '.join(named)}"


def _plus(response: Response, wait: timedelta | None) -> datetime | None:
    return None if wait is None else response.received_at + wait


def find_retry_at(response: Response, http: HttpSpec, now: datetime) -> datetime | None:
    """Return the instant a Retry-After header names, in seconds or as a date, never before `now`.

    None when there is none, when it cannot be read, or when the pack says to ignore it; and for 0
    seconds or a date that has passed: "at once" would be asked for ever, and count as no failure.
    """
    if http.retry_after is RetryAfterPolicy.IGNORE:
        return None
    named = response.retry_at
    if named is None or named <= response.received_at:
        return None
    if http.retry_after is RetryAfterPolicy.CLAMP and http.retry_after_cap is not None:
        named = min(named, response.received_at + http.retry_after_cap)
    return max(named, now)


def sample(body: bytes) -> str:
    """Return the beginning of a body, redacted, on one line."""
    text = " ".join(body[:_SAMPLE_BYTES].decode("utf-8", "replace").split())
    # A control character could rewrite the terminal of whoever reads the message.
    return redact_text("".join(sign if sign.isprintable() else "�" for sign in text))


def shown_answer(response: Response) -> str:
    """Return the beginning of an answer as `sample` does, also without the keys it repeats."""
    return sample(_hidden(response)) or "an empty body"


def _hidden(response: Response) -> bytes:
    # Before anything is cut short: half a key is not recognised any more.
    text = response.body[:_MAX_READ].decode("utf-8", "replace")
    return response.hide(text).encode()


def _seen(response: Response, *notes: str | None) -> str:
    said = "; ".join(note for note in notes if note)
    about = f" ({said})" if said else ""
    return f"{response.url} answered {response.status}{about}: {shown_answer(response)}"


def _blamed(response: Response) -> str | None:
    """Return what the answer blames, where it is JSON that says so in a usual way."""
    try:
        tree = orjson.loads(_hidden(response))
    except orjson.JSONDecodeError:
        return None
    fields = list(dict.fromkeys(_fields(tree, in_list=False, depth=0)))[:_MAX_FIELDS]
    return f"field: {', '.join(fields)}" if fields else None


def _fields(tree: Any, in_list: bool, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(tree, list):
        for member in tree:
            yield from _fields(member, True, depth + 1)
    elif isinstance(tree, dict):
        if name := _field(tree, in_list):
            yield name
        for member in tree.values():
            if isinstance(member, dict | list):
                yield from _fields(member, False, depth + 1)


def _field(entry: dict[str, Any], in_list: bool) -> str | None:
    """Return the field that one error entry names, and its kind: `rows (integer-not-valid)`."""
    keys = _NAMING + _IN_A_LIST if in_list else _NAMING
    name = next((found for key in keys if (found := _name(entry.get(key)))), None)
    kind = next((found for key in _KINDS if (found := _name(entry.get(key)))), None)
    return f"{name} ({kind})" if name and kind else name


def _name(value: Any) -> str | None:
    if isinstance(value, list):  # a place as steps: ["query", "rows"]
        value = ".".join(str(step) for step in value if isinstance(step, str | int))
    return redact_text(value.strip(), _MAX_NAME) or None if isinstance(value, str) else None
