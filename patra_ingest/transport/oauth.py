"""OAuth 2 access tokens: fetched once for all threads, renewed before they end.

A token request is a request like any other: it passes the rate gate, under `oauth:HOST`.
"""

import threading
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from urllib.parse import quote, urlsplit

from patra_ingest.clock import Clock
from patra_ingest.errors import Throttled, TransientError
from patra_ingest.model.codes import OauthGrantType
from patra_ingest.model.lineage import CORRELATION
from patra_ingest.rate.bucket import Limits
from patra_ingest.rate.gate import RateGate
from patra_ingest.rate.signals import Complaint, Silence
from patra_ingest.spec.policies import OAuth2
from patra_ingest.transport.client import Transport
from patra_ingest.transport.credentials import Credentials
from patra_ingest.transport.messages import Options, Request, Response, Timeouts
from patra_ingest.transport.signing import FORM, with_user
from patra_ingest.transport.token_answer import (
    Granted,
    find_error,
    is_client_unseen,
    read_granted,
)

REFRESH_AHEAD = timedelta(seconds=60)
_LIMITS = Limits(1, burst=5)
_LONGEST_WAIT = timedelta(seconds=60)
_MAX_ANSWER_BYTES = 1024 * 1024
# A token that was renewed this recently and is refused again will not be mended by renewing.
_TOO_SOON = timedelta(minutes=5)

_Key = tuple[str, ...]
_Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Wanted:
    """A token to be had: whose it is, how it is got, and how the request for it travels."""

    owner: str
    name: str
    oauth: OAuth2
    options: Options
    timeouts: Timeouts
    correlation: str | None = None  # of the request that needs the token

    @property
    def key(self) -> _Key:
        """What makes two tokens the same."""
        oauth = self.oauth
        said = (oauth.token_url, oauth.grant, oauth.client_id, oauth.scope, oauth.audience)
        return (self.owner, self.name, *(str(word) for word in said))

    @property
    def shown(self) -> str:
        """The credential as people know it."""
        return f"the credential {self.name} ({self.owner}, {self.oauth.client_id})"


@dataclass(frozen=True)
class Token:
    """An access token in hand; `number` tells it from the ones before and after it."""

    value: str = field(repr=False)
    number: int
    fetched_at: datetime
    fresh_until: datetime
    ends_at: datetime
    is_renewal: bool


class Tokens:
    """The access tokens of a process."""

    def __init__(
        self, transport: Transport, gate: RateGate, credentials: Credentials, clock: Clock
    ) -> None:
        self._transport = transport
        self._gate = gate
        self._credentials = credentials
        self._clock = clock
        self._held: dict[_Key, Token] = {}
        self._refused: set[_Key] = set()
        self._in_form: set[_Key] = set()  # who wants the client's secret in the form
        self._locks: dict[_Key, threading.Lock] = {}
        self._numbers = count(1)

    def get(self, wanted: Wanted, stop: threading.Event | None = None) -> Token:
        """Return a token that is good for a while; many threads cause one fetch.

        Raises EndpointHalted when the endpoint refuses us, TransientError or Throttled when it
        may answer later.
        """
        with self._lock(wanted):
            held = self._held.get(wanted.key)
            if held is not None and self._clock.now() < held.fresh_until:
                return held
            try:
                held = self._held[wanted.key] = self._fetch(wanted, stop)
            except TransientError:
                # Renewing goes wrong now and then; that is why it begins before the end.
                if held is None or held.ends_at <= self._clock.now():
                    raise
            return held

    def renew(self, wanted: Wanted, number: int) -> bool:
        """Let go of the token `number`, which was refused; False if it was new when it was."""
        with self._lock(wanted):
            held = self._held.get(wanted.key)
            if held is None or held.number != number:
                return True  # another thread was faster
            del self._held[wanted.key]
            if held.is_renewal and self._clock.now() - held.fetched_at < _TOO_SOON:
                return False
            self._refused.add(wanted.key)
            return True

    def _lock(self, wanted: Wanted) -> threading.Lock:
        return self._locks.setdefault(wanted.key, threading.Lock())

    def _fetch(self, wanted: Wanted, stop: threading.Event | None) -> Token:
        now = self._clock.now()
        granted = self._granted(wanted, stop)
        ahead = REFRESH_AHEAD if wanted.oauth.refresh_ahead is None else wanted.oauth.refresh_ahead
        ends_at = now + granted.life
        fresh_until = ends_at - min(ahead, granted.life / 2)
        is_renewal = wanted.key in self._refused
        self._refused.discard(wanted.key)
        number = next(self._numbers)
        return Token(granted.access_token, number, now, fresh_until, ends_at, is_renewal)

    def _granted(self, wanted: Wanted, stop: threading.Event | None) -> Granted:
        """Ask for a token; a refresh token is used by one process at a time, and then replaced."""
        oauth = wanted.oauth
        if oauth.grant != OauthGrantType.REFRESH_TOKEN or oauth.refresh_token is None:
            return read_granted(self._ask(wanted, None, stop), wanted.shown)
        place = (wanted.owner, wanted.name, oauth.refresh_token)
        with self._credentials.alone(wanted.owner, wanted.name):
            ours = self._credentials.refresh_token(*place)
            granted = read_granted(self._ask(wanted, ours, stop), wanted.shown)
            if granted.refresh_token not in (None, ours):
                self._credentials.keep_refresh_token(*place, granted.refresh_token)
        return granted

    def _ask(self, wanted: Wanted, refresh: str | None, stop: threading.Event | None) -> Response:
        """Ask with the client's secret in the header, as the standard says, or in the form."""
        in_form = wanted.key in self._in_form
        response = self._send(self._request(wanted, refresh, in_form), wanted, stop)
        if not is_client_unseen(response):
            return response
        other = self._send(self._request(wanted, refresh, not in_form), wanted, stop)
        if other.status == 200:
            self._in_form ^= {wanted.key}
        return other

    def _request(self, wanted: Wanted, refresh: str | None, in_form: bool) -> Request:
        oauth = wanted.oauth
        client = self._credentials.get(oauth.client_id)
        secret = self._credentials.get(oauth.client_secret)
        form: _Pairs = [("grant_type", oauth.grant.value.lower())]
        optional = (
            ("refresh_token", refresh),
            ("scope", oauth.scope),
            ("audience", oauth.audience),
        )
        form += [(name, value) for name, value in optional if value]
        if in_form:
            form += [("client_id", client), ("client_secret", secret)]
        options = replace(wanted.options, max_body_bytes=_MAX_ANSWER_BYTES)
        asked = Request("POST", oauth.token_url, timeouts=wanted.timeouts, options=options)
        sender = {CORRELATION: wanted.correlation} if wanted.correlation else {}
        asked = asked.with_headers({"Accept": "application/json", **sender})
        asked = asked.with_form("POST", form, FORM)
        asked = asked.hiding(client, secret, refresh or "")
        # RFC 6749 §2.3.1: both are encoded like a form before they become user and password.
        return asked if in_form else with_user(asked, quote(client, ""), quote(secret, ""))

    def _send(self, request: Request, wanted: Wanted, stop: threading.Event | None) -> Response:
        rate_key = f"oauth:{(urlsplit(request.url).hostname or '').lower()}"
        deadline = self._clock.now() + _LONGEST_WAIT
        with self._gate.permit(rate_key, _LIMITS, 1, deadline, stop) as permit:
            response = self._transport.send(request, permit)
            error = find_error(response, wanted.shown)
            if isinstance(error, Throttled):
                self._gate.feedback(rate_key, Complaint(), Silence(error.retry_at))
        return response
