"""One question and its answer: permit, request, stored body, judgement, decoded page.

Nothing here writes to the ledger but the rate gate and the quotas; asking again leaves no trace but
a stored body and a spent permit.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

from patra_ingest.clock import Clock
from patra_ingest.errors import (
    CredentialRefused,
    EndpointHalted,
    IngestError,
    PageTooBig,
    Throttled,
    TransientError,
)
from patra_ingest.executor.asking import Asking, variables_of
from patra_ingest.executor.breaker import Breakers, is_failure
from patra_ingest.executor.decoding import (
    BodyUnreadable,
    Decoded,
    decode,
    path,
    read_tree,
    require_echo,
)
from patra_ingest.executor.digests import request_digest, response_digest
from patra_ingest.executor.leased import Work
from patra_ingest.executor.request import render
from patra_ingest.executor.triage import judge
from patra_ingest.ledger.db import Db
from patra_ingest.ledger.quotas import try_spend
from patra_ingest.model.quotas import charges_at
from patra_ingest.rate.bucket import Limits
from patra_ingest.rate.gate import RateGate
from patra_ingest.rawstore.store import RawStore
from patra_ingest.spec.paging import Paging, UrlPaging
from patra_ingest.spec.quotas import rules_of
from patra_ingest.spec.snapshot import AuthSpec, CallSpec
from patra_ingest.spec.words import Action
from patra_ingest.transport.auth import Authenticator, Signed
from patra_ingest.transport.client import Transport
from patra_ingest.transport.hiding import hide_in_body
from patra_ingest.transport.messages import Request, Response
from patra_ingest.transport.redirects import find_redirect

# Longer pauses are spent in the queue, not on a lane.
LONGEST_WAIT = timedelta(seconds=60)
_NOTHING = Decoded([], total=0)


@dataclass(frozen=True)
class Upstream:
    """Everything a batch needs to reach the source and keep what it said."""

    gate: RateGate
    transport: Transport
    raw: RawStore
    contact: str
    auth: Authenticator
    breakers: Breakers


@dataclass(frozen=True)
class Exchanged:
    """One answer as it came back, and what it took to get it."""

    request: Request
    response: Response
    decoded: Decoded
    storage_key: str
    waited_seconds: float
    is_gone: bool = False  # the source says that it has none of the ids

    def digests(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the ledger keeps of the request and of the response, without secrets."""
        return request_digest(self.request), response_digest(self.response, self.storage_key)


class _NextCredential(CredentialRefused):
    """This credential has to rest; the next one is at hand."""


@dataclass(frozen=True)
class _Reply:
    """A response and what it means; its body is parsed when somebody looks into it."""

    response: Response
    meaning: IngestError | Action | None
    tree: Callable[[], Any]
    waited_seconds: float


class Exchange:
    """Asks questions of one source after the other, each with its own permit."""

    def __init__(self, db: Db, clock: Clock, upstream: Upstream) -> None:
        self._db = db
        self._clock = clock
        self._upstream = upstream

    @property
    def contact(self) -> str:
        """Who we say we are."""
        return self._upstream.contact

    def count(self, work: Work, request: Request, where: str) -> int:
        """Return the number that the answer to a counting request has at a path."""
        spec = work.plan.spec
        signed = self._signed(work, request, spec.auth)
        reply = self._deliver(work, spec, signed, None)
        self._renew(spec, signed, reply.meaning)
        self._note(work, spec, reply.meaning)
        if isinstance(reply.meaning, IngestError):
            raise reply.meaning
        if reply.meaning is not None:  # a rule says that there is nothing
            return 0
        found = path(where).first(reply.tree())
        try:
            return int(str(found))
        except ValueError:
            raise EndpointHalted(f"the count at {where} is {found!r}, not a number") from None

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
        variables = variables_of(work.plan.spec, asking)
        request = render(work.plan.spec, asking)
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
        signed = self._signed(work, request, call.auth)
        reply = self._deliver(work, call, signed, paging)
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
        return Exchanged(signed.request, reply.response, decoded, key, waited, is_gone)

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
        upstream, rate = self._upstream, call.rate
        limits = Limits(rate.per_second, rate.burst, rate.in_flight)
        deadline = self._clock.now() + LONGEST_WAIT
        with upstream.gate.permit(rate.key, limits, rate.cost, deadline, work.stop) as permit:
            self._pay(work, call)  # last: who has to be silent pays for nothing
            try:
                response = _without_keys(upstream.transport.send(signed.request, permit))
            except TransientError as error:
                self._note(work, call, error)
                raise
            tree = cache(lambda: read_tree(response, call.response))
            meaning = self._unless_spent(call, signed, judge(response, call, tree, self._now()))
            if isinstance(meaning, Throttled) and meaning.for_all:
                # Before our place is free again: nobody slips in ahead of the silence.
                upstream.gate.feedback(rate.key, meaning.retry_at)
        if paging is not None and response.status in paging.shrink_on:
            raise PageTooBig(f"{response.url} answered {response.status} to a page of this size")
        return _Reply(response, meaning, tree, permit.waited_seconds)

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
            self._upstream.gate.feedback(call.rate.key, until)
            work.healing.circuit_open = True

    def _renew(self, call: CallSpec, signed: Signed, meaning: IngestError | Action | None) -> None:
        """After a refusal, prepare another credential; without one a person must help."""
        if not isinstance(meaning, CredentialRefused) or isinstance(meaning, _NextCredential):
            return
        if not self._upstream.auth.renew(call.auth, signed):
            raise EndpointHalted(f"{meaning} (there is no other credential to try)")

    def _pay(self, work: Work, call: CallSpec) -> None:
        """Take the request out of its quotas; Throttled until the one that is empty ends."""
        rules = rules_of(call.rate)
        if not rules:
            return
        with self._db.write() as tx:
            now = self._db.now(tx)
            charges = charges_at(rules, now, Decimal(str(call.rate.cost)))
            empty = try_spend(tx, work.lease.slice_id, charges, now)
        if empty is not None:
            raise Throttled(empty.end, "the quota is used up")


def _without_keys(response: Response) -> Response:
    """Return the answer without our keys: whoever is answered with one must not store it."""
    body = hide_in_body(response.body, response.hidden)
    return response if body is response.body else replace(response, body=body)
