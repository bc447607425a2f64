"""One question and its answer: permit, request, stored body, judgement, decoded page.

Nothing here writes to the ledger but the rate gate and the quotas; asking again leaves no trace but
a stored body and a spent permit.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any

from patra_ingest.clock import Clock
from patra_ingest.errors import (
    CredentialRefused,
    CredentialSpent,
    EndpointHalted,
    IngestError,
    PageTooBig,
    Throttled,
    TransientError,
)
from patra_ingest.executor.asking import CONTACT, TOOL, Asking, variables_of
from patra_ingest.executor.breaker import Breakers, is_failure
from patra_ingest.executor.decoding import (
    BodyUnreadable,
    Decoded,
    decode,
    read_tree,
    require_echo,
)
from patra_ingest.executor.digests import request_digest, response_digest
from patra_ingest.executor.leased import Work
from patra_ingest.executor.looks import looks_of
from patra_ingest.executor.pass_gate import Gatekeeper
from patra_ingest.executor.places import find_count
from patra_ingest.executor.request import render
from patra_ingest.executor.triage import judge
from patra_ingest.ledger.db import Db
from patra_ingest.rate.gate import RateGate
from patra_ingest.rawstore.store import RawStore
from patra_ingest.spec.paging import Paging, UrlPaging
from patra_ingest.spec.snapshot import AuthSpec, CallSpec
from patra_ingest.spec.words import Action
from patra_ingest.transport.auth import Authenticator, Signed
from patra_ingest.transport.client import Transport
from patra_ingest.transport.messages import Request, Response
from patra_ingest.transport.redirects import find_redirect

_NOTHING = Decoded([], total=0, is_ruled=True)
_NAMELESS: set[str] = set()  # sources that this process has asked without a contact
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Upstream:
    """Everything a batch needs to reach the source and keep what it said."""

    gate: RateGate
    transport: Transport
    raw: RawStore
    contact: str
    auth: Authenticator
    breakers: Breakers
    tool: str = TOOL


@dataclass(frozen=True)
class Exchanged:
    """One answer as it came back, and what it took to get it."""

    request: Request
    response: Response
    decoded: Decoded
    storage_key: str
    waited_seconds: float
    is_gone: bool = False  # the source says that it has none of the ids
    gate: Mapping[str, Any] = field(default_factory=dict)  # how the request passed the gate

    def digests(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the ledger keeps of the request and of the response, without secrets."""
        answer = response_digest(self.response, self.storage_key)
        return request_digest(self.request), {**answer, **self.gate}


class _NextCredential(CredentialRefused):
    """This credential has to rest; the next one is at hand."""


@dataclass(frozen=True)
class _Reply:
    """A response and what it means; its body is parsed when somebody looks into it."""

    response: Response
    meaning: IngestError | Action | None
    tree: Callable[[], Any]
    waited_seconds: float
    gate: Mapping[str, Any]


class Exchange:
    """Asks questions of one source after the other, each with its own permit."""

    def __init__(self, db: Db, clock: Clock, upstream: Upstream) -> None:
        self._clock = clock
        self._upstream = upstream
        self._gate = Gatekeeper(db, clock, upstream.gate)

    def introduced(self, asking: Asking) -> Asking:
        """Return a question with who we say we are."""
        return replace(asking, contact=self._upstream.contact, tool=self._upstream.tool)

    def count(self, work: Work, request: Request, where: str) -> int:
        """Return the number that the answer to a counting request has at a path."""
        spec = work.plan.spec
        signed, reply = self._answered(work, spec, request, None)
        self._renew(spec, signed, reply.meaning)
        self._note(work, spec, reply.meaning)
        if isinstance(reply.meaning, IngestError):
            raise reply.meaning
        if reply.meaning is not None:  # a rule says that there is nothing
            return 0
        try:
            return find_count(reply.tree(), where)
        except ValueError as error:
            raise EndpointHalted(str(error)) from None

    def ask(
        self,
        work: Work,
        call: CallSpec,
        asking: Asking,
        paging: Paging | None,
        is_suspect: bool = False,
    ) -> Exchanged:
        """Send one question and read its answer; raise what the answer means, if it is none.

        When a suspect question fails, one of its ids may be to blame, and not the source.
        """
        spec = work.plan.spec
        if not asking.contact and spec.provenance not in _NAMELESS:
            _note_nameless(spec.provenance, f"{call.http} {call.request}")
        variables = variables_of(spec, asking)
        request = render(spec, asking)
        return self.send(work, call, request, paging, variables, is_suspect)

    def send(
        self,
        work: Work,
        call: CallSpec,
        request: Request,
        paging: Paging | None,
        variables: Mapping[str, object],
        is_suspect: bool = False,
    ) -> Exchanged:
        """Send one written request and read its answer."""
        signed, reply = self._answered(work, call, request, paging)
        self._renew(call, signed, reply.meaning)
        if isinstance(reply.meaning, TransientError):
            self._note(work, call, reply.meaning, is_suspect)
            raise reply.meaning
        key = self._upstream.raw.put(reply.response.body)
        try:
            decoded = self._decoded(call, reply, paging, variables)
        except TransientError as error:  # a gateway's page with status 200 is no success
            self._note(work, call, error)
            raise
        self._note(work, call, None)
        if decoded.next and isinstance(paging, UrlPaging):
            # Some sources repeat our key in the address of the next page.
            decoded = replace(decoded, next=signed.request.strip(decoded.next))
        is_gone = reply.meaning is Action.GONE
        waited = reply.waited_seconds
        return Exchanged(signed.request, reply.response, decoded, key, waited, is_gone, reply.gate)

    def _decoded(
        self,
        call: CallSpec,
        reply: _Reply,
        paging: Paging | None,
        variables: Mapping[str, object],
    ) -> Decoded:
        if isinstance(reply.meaning, IngestError):
            raise reply.meaning
        if reply.meaning is not None:  # a rule says that there is nothing
            self._require_echo(call, reply, variables)
            return _NOTHING
        return decode(reply.response, reply.tree(), call, paging, variables)

    def _require_echo(self, call: CallSpec, reply: _Reply, variables: Mapping[str, object]) -> None:
        with suppress(BodyUnreadable):  # "no matches" may be said in plain words
            require_echo(reply.response, reply.tree(), call, variables)

    def _answered(
        self, work: Work, call: CallSpec, request: Request, paging: Paging | None
    ) -> tuple[Signed, _Reply]:
        """Sign with the first credential that has something left in our books, and send."""
        signed = self._signed(work, request, call.auth)
        try:
            return signed, self._deliver(work, call, signed, paging)
        except CredentialSpent as spent:
            if not self._upstream.auth.exhaust(call.auth, signed, spent.retry_at):
                raise
            return self._answered(work, call, request, paging)

    def _signed(self, work: Work, request: Request, auth: AuthSpec) -> Signed:
        owner = work.plan.namespace.provenance
        signed = self._upstream.auth.sign(request, auth, owner, work.stop)
        if auth.chosen is not None and signed.credential_name is None:
            raise EndpointHalted(
                f"the credential {auth.chosen} is not there any more, and this plan counts on what"
                " the source allows with it; set it again and resume, or cancel the plan"
            )
        return signed

    def _deliver(self, work: Work, call: CallSpec, signed: Signed, paging: Paging | None) -> _Reply:
        """Send a request and follow where it is led, each hop with a permit of its own."""
        reply = self._send_one(work, call, signed, paging)
        while there := find_redirect(signed.request, reply.response, call.http):
            signed, before = replace(signed, request=there), reply.waited_seconds
            reply = self._send_one(work, call, signed, paging)
            reply = replace(reply, waited_seconds=reply.waited_seconds + before)
        return reply

    def _send_one(
        self, work: Work, call: CallSpec, signed: Signed, paging: Paging | None
    ) -> _Reply:
        self._upstream.transport.prepare(signed.request)
        with self._gate.permit(work, call, signed.credential_name) as passed:
            try:
                sent = self._upstream.transport.send(signed.request, passed.permit)
            except TransientError as error:
                self._note(work, call, error)
                raise
            response = sent.without_keys()
            tree = cache(lambda: read_tree(response, call.response, looks=looks_of(call)))
            meaning = self._unless_spent(call, signed, judge(response, call, tree, self._now()))
            # Before our place is free again: nobody slips in ahead of a silence.
            digest = self._gate.report(work, passed, response, meaning, tree)
        if paging is not None and response.status in paging.shrink_on:
            raise PageTooBig(f"{response.url} answered {response.status} to a page of this size")
        return _Reply(response, meaning, tree, passed.permit.waited_seconds, digest)

    def _unless_spent(
        self, call: CallSpec, signed: Signed, meaning: IngestError | Action | None
    ) -> IngestError | Action | None:
        """Turn a budget that is gone for long into a change of credential, if there is another."""
        if not isinstance(meaning, Throttled) or signed.credential_name is None:
            return meaning
        is_long = meaning.retry_at - self._now() >= call.rate.park_after
        if is_long and self._upstream.auth.exhaust(call.auth, signed, meaning.retry_at):
            told = f"the budget of the credential {signed.credential_name} is used up: {meaning}"
            return _NextCredential(told)
        return meaning

    def _now(self) -> datetime:
        return self._clock.now()

    def _note(
        self,
        work: Work,
        call: CallSpec,
        meaning: IngestError | Action | None,
        is_suspect: bool = False,
    ) -> None:
        """Count how it went; after too many failures everyone leaves the source alone."""
        if isinstance(meaning, Throttled):
            work.healing.slowed_down = True
            work.healing.times_turned_away += 1
            return
        failed = is_failure(meaning if isinstance(meaning, IngestError) else None)
        if failed and is_suspect:
            return
        until = self._upstream.breakers.note(
            call.rate.key, call.retry.breaker, failed, self._clock.now()
        )
        if until is not None and failed:
            self._gate.silence(call, until, "CIRCUIT_OPEN")
            work.healing.circuit_open, work.healing.last_failure = True, str(meaning)

    def _renew(self, call: CallSpec, signed: Signed, meaning: IngestError | Action | None) -> None:
        """After a refusal, prepare another credential; without one a person must help."""
        if not isinstance(meaning, CredentialRefused) or isinstance(meaning, _NextCredential):
            return
        if not self._upstream.auth.renew(call.auth, signed):
            raise EndpointHalted(f"{meaning} (there is no other credential to try)")


def _note_nameless(provenance: str, templates: str) -> None:
    """Say once for each source that it would be told whom to write to, and is not."""
    _NAMELESS.add(provenance)
    if CONTACT in templates:
        _log.warning(
            "%s is not told whom to write to: PATRA_CONTACT is empty; it may serve us last.",
            provenance,
        )
