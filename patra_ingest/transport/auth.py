"""Who we say we are: a request in, the same request signed with a usable credential out.

A credential is usable while its secrets are there, the source has not refused it and its quota is
not used up. Whoever replaces a secret lifts what was held against the old one.
"""

import logging
import threading
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from patra_ingest.clock import Clock
from patra_ingest.errors import EndpointHalted, Throttled
from patra_ingest.model.lineage import CORRELATION
from patra_ingest.spec.policies import ApiKey, Basic, Bearer, Custom, OAuth2
from patra_ingest.spec.snapshot import AuthSpec, CredentialSpec
from patra_ingest.spec.words import Rotation
from patra_ingest.transport.credentials import Credentials
from patra_ingest.transport.hooks import Signers
from patra_ingest.transport.messages import Request
from patra_ingest.transport.oauth import Tokens, Wanted
from patra_ingest.transport.signing import with_header, with_key, with_user

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Signed:
    """A request ready to be sent, and which credential it carries (None: it is anonymous)."""

    request: Request
    credential_name: str | None
    owner: str
    token_no: int | None = None  # which of the OAuth tokens we have had


@dataclass(frozen=True)
class _Block:
    """Why a credential is left alone: refused, or (`until`) out of quota."""

    fingerprint: str
    until: datetime | None


class Authenticator:
    """Signs the requests of all threads of a process; `owner` is always a provenance code."""

    def __init__(self, credentials: Credentials, tokens: Tokens, clock: Clock) -> None:
        self._credentials = credentials
        self._tokens = tokens
        self._clock = clock
        self._signers = Signers()
        self._blocks: dict[tuple[str, str], _Block] = {}
        self._turns: Counter[str] = Counter()
        self._lock = threading.Lock()

    def sign(
        self, request: Request, auth: AuthSpec, owner: str, stop: threading.Event | None = None
    ) -> Signed:
        """Return the request with the first usable credential, or with the next one in turn.

        Without any it stays anonymous, unless a credential is required: then EndpointHalted names
        what is missing, or Throttled says when a quota is full again.
        """
        usable = self._in_turn(auth, owner)
        for left, each in zip(reversed(range(len(usable))), usable, strict=True):
            try:
                return self._sign_with(request, each, owner, stop)
            except EndpointHalted as error:
                if not left:
                    raise
                self._block(owner, each, None)
                _log.warning("%s; the next credential is tried", error)
        self._require_none_needed(auth, owner)
        return Signed(request, None, owner)

    def renew(self, auth: AuthSpec, signed: Signed) -> bool:
        """After a source refused `signed`: True if signing again will give something else.

        An OAuth token is dropped, once; any other credential, or a token that was renewed a
        moment ago, is refused for as long as its secret stays the same.
        """
        each = _find(auth, signed)
        if each is None:
            return False
        if self._has_new_token(each, signed):
            return True
        self._block(signed.owner, each, None)
        return bool(self.usable(auth, signed.owner))

    def exhaust(self, auth: AuthSpec, signed: Signed, until: datetime) -> bool:
        """Leave the credential of `signed` alone until then; True if another one is usable."""
        each = _find(auth, signed)
        if each is not None:
            self._block(signed.owner, each, until)
        return bool(self.usable(auth, signed.owner))

    def usable(self, auth: AuthSpec, owner: str) -> list[CredentialSpec]:
        """Return the credentials that can be used now: the chosen one, the preferred, the rest."""
        ordered = sorted(
            auth.credentials,
            key=lambda each: (each.name != auth.chosen, not each.credential.preferred),
        )
        return [each for each in ordered if self._is_usable(each, owner)]

    def _is_usable(self, each: CredentialSpec, owner: str) -> bool:
        return not self._credentials.missing(each.credential) and not self._find_block(each, owner)

    def _find_block(self, each: CredentialSpec, owner: str) -> _Block | None:
        block = self._blocks.get((owner, each.name))
        if block is None or block.fingerprint != self._credentials.fingerprint(each.credential):
            return None
        return block if block.until is None or block.until > self._clock.now() else None

    def _block(self, owner: str, each: CredentialSpec, until: datetime | None) -> None:
        fingerprint = self._credentials.fingerprint(each.credential)
        self._blocks[(owner, each.name)] = _Block(fingerprint, until)

    def _in_turn(self, auth: AuthSpec, owner: str) -> list[CredentialSpec]:
        usable = self.usable(auth, owner)
        if auth.rotation is not Rotation.IN_TURN or len(usable) < 2:
            return usable
        with self._lock:
            turn = self._turns[owner] % len(usable)
            self._turns[owner] += 1
        return [*usable[turn:], *usable[:turn]]

    def _sign_with(
        self, request: Request, each: CredentialSpec, owner: str, stop: threading.Event | None
    ) -> Signed:
        get, credential = self._credentials.get, each.credential
        match credential:
            case ApiKey():
                signed = with_key(request, credential, get(credential.secret))
            case Bearer(field=name, prefix=prefix):
                signed = with_header(request, name, prefix, get(credential.secret))
            case Basic(username=user, password=password):
                signed = with_user(request, get(user), get(password) if password else "")
            case OAuth2():
                token = self._tokens.get(_wanted(request, each, credential, owner), stop)
                signed = with_header(request, "Authorization", "Bearer ", token.value)
                return Signed(signed, each.name, owner, token.number)
            case Custom(hook=hook, secret=place):
                secret = get(place) if place else None
                signed = self._signers.sign(request, hook, secret, self._clock.now())
            case _:
                assert_never(credential)
        return Signed(signed, each.name, owner)

    def _has_new_token(self, each: CredentialSpec, signed: Signed) -> bool:
        oauth = each.credential
        if not isinstance(oauth, OAuth2) or signed.token_no is None:
            return False
        wanted = _wanted(signed.request, each, oauth, signed.owner)
        return self._tokens.renew(wanted, signed.token_no)

    def _require_none_needed(self, auth: AuthSpec, owner: str) -> None:
        blocks = [self._find_block(each, owner) for each in auth.credentials]
        waits = [block.until for block in blocks if block and block.until]
        # A plan that counts on its credential waits for it; it does not go on anonymously.
        if waits and (auth.required or auth.chosen):
            raise Throttled(min(waits), f"the quota of every credential of {owner} is used up")
        if auth.required:
            raise EndpointHalted(self._why_none(auth, owner))

    def _why_none(self, auth: AuthSpec, owner: str) -> str:
        missing = [
            f"{each.name} needs {' and '.join(places)}"
            if (places := self._credentials.missing(each.credential))
            else f"{each.name} was refused"
            for each in auth.credentials
        ]
        return (
            f"{owner} is never asked without a credential, and none can be used"
            f" ({'; '.join(missing) or 'none is declared'}): set or replace a secret, then resume"
        )


def _find(auth: AuthSpec, signed: Signed) -> CredentialSpec | None:
    return next((each for each in auth.credentials if each.name == signed.credential_name), None)


def _wanted(request: Request, each: CredentialSpec, oauth: OAuth2, owner: str) -> Wanted:
    correlation = request.headers.get(CORRELATION)
    return Wanted(owner, each.name, oauth, request.options, request.timeouts, correlation)
