"""Answer the questions of a batch once more from what was stored of it. No network, no ledger.

An answer is found by its question, and where the same was asked twice by the order they came in.
Of an answer's headers only its content type is kept: a total, or a next page, that stood in another
header is taken from the batch's own numbers, and that is said.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any

from patra_ingest.errors import IngestError, RequestRejected
from patra_ingest.executor.asking import Asking, variables_of
from patra_ingest.executor.decoding import BodyUnreadable, Decoded, decode, read_tree, require_echo
from patra_ingest.executor.digests import request_digest
from patra_ingest.executor.exchange import Exchanged
from patra_ingest.executor.leased import Work
from patra_ingest.executor.likeness import aside_of, find_unlike, hidden_names, signed_names
from patra_ingest.executor.looks import looks_of
from patra_ingest.executor.request import render
from patra_ingest.executor.triage import judge
from patra_ingest.model.evidence import KeptBatch
from patra_ingest.rawstore.store import RawStore
from patra_ingest.spec.paging import Paging, TokenPaging, UrlPaging
from patra_ingest.spec.snapshot import CallSpec
from patra_ingest.spec.words import Action
from patra_ingest.transport.hiding import strip_url
from patra_ingest.transport.messages import Request, Response

_NOTHING = Decoded([], total=0)


@dataclass(frozen=True)
class KeptExchange:
    """One question and its answer as the ledger lists them; the body is in the raw store."""

    request: dict[str, Any]
    response: dict[str, Any]

    @property
    def key(self) -> str:
        """Where the body is kept."""
        return str(self.response["body"])

    @property
    def received_at(self) -> datetime:
        """When the answer came."""
        return datetime.fromisoformat(self.response["receivedAt"])

    def rebuilt(self, body: bytes) -> Response:
        """Return the answer as far as it is known."""
        hints = self.response.get("headerHints") or {}
        headers = {
            "content-type": self.response.get("contentType"),
            "retry-after": hints.get("retryAfter"),
            "x-ratelimit-remaining": hints.get("rateLimitRemaining"),
        }
        known = {name: value for name, value in headers.items() if value is not None}
        url = str(self.request.get("url", ""))
        return Response(self.response["status"], known, body, 0.0, url, self.received_at)


def exchanges_of(batch: KeptBatch) -> list[KeptExchange]:
    """Return every exchange of a batch, in the order in which the answers came."""
    first = KeptExchange(batch.request, batch.response)
    others = [
        KeptExchange(one["request"], one["response"]) for one in batch.response.get("also", ())
    ]
    return sorted([first, *others], key=lambda one: one.received_at)


@dataclass(frozen=True)
class Recalled:
    """One question that was answered from what is stored, so that it can be asked again live."""

    call: CallSpec
    asking: Asking
    paging: Paging | None
    exchanged: Exchanged


@dataclass
class Recall:
    """The stored answers of one batch."""

    raw: RawStore
    batch: KeptBatch
    answered: list[Recalled] = field(default_factory=list)
    unlike: list[str] = field(default_factory=list)  # parts of a request that differ
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._left = exchanges_of(self.batch)
        # Where ids were halved, questions that failed left nothing: only the very same one counts.
        self._is_exact = bool((self.batch.stats.get("selfHealing") or {}).get("idsHalved"))

    @property
    def unasked(self) -> int:
        """How many stored answers no question was asked for."""
        return len(self._left)

    def ask(
        self,
        work: Work,
        call: CallSpec,
        asking: Asking,
        paging: Paging | None,
        is_suspect: bool = False,
    ) -> Exchanged:
        """Return what was answered to this question; RequestRejected when nothing was stored."""
        spec = work.plan.spec
        request = render(spec, asking)
        kept = self._take(request, work, call, asking)
        response = kept.rebuilt(self.raw.get(kept.key))
        meaning, decoded = _read(response, call, paging, variables_of(spec, asking))
        decoded = self._completed(decoded, call, paging)
        is_gone = meaning is Action.GONE
        exchanged = Exchanged(request, response, decoded, kept.key, 0.0, is_gone)
        self.answered.append(Recalled(call, asking, paging, exchanged))
        return exchanged

    def _take(self, request: Request, work: Work, call: CallSpec, asking: Asking) -> KeptExchange:
        own, aside = request_digest(request), aside_of(work.plan.spec, call, asking)
        for kept in self._left:
            if not find_unlike(kept.request, own, aside):
                self._left.remove(kept)
                return kept
        if not self._left or self._is_exact:
            raise RequestRejected(f"nothing is stored as the answer to {request.shown_url}")
        kept = self._left.pop(0)
        self.unlike += find_unlike(kept.request, own, aside)
        return kept

    def _completed(self, decoded: Decoded, call: CallSpec, paging: Paging | None) -> Decoded:
        """Put in what stood in headers, and leave out of an address what signing puts in."""
        if paging is None:
            return decoded
        hint = self.batch.stats.get("nextHint") or {}
        if isinstance(paging, TokenPaging | UrlPaging) and _next_is_in_header(paging):
            self._note("the next page")
            decoded = replace(decoded, next=hint.get("token") or hint.get("url"))
        elif isinstance(paging, UrlPaging) and decoded.next:
            names = {*signed_names(call.auth), *hidden_names(decoded.next)}
            decoded = replace(decoded, next=strip_url(decoded.next, (), names))
        if paging.total is not None and paging.total.header is not None:
            self._note("the total")
            decoded = replace(decoded, total=self.batch.stats.get("total"))
        return decoded

    def _note(self, what: str) -> None:
        note = f"{what} stood in a header, which is not kept: the ledger's own is used"
        if note not in self.notes:
            self.notes.append(note)


def _next_is_in_header(paging: TokenPaging | UrlPaging) -> bool:
    place = paging.next_token if isinstance(paging, TokenPaging) else paging.next_url
    return place.header is not None or place.link is not None


def _read(
    response: Response, call: CallSpec, paging: Paging | None, variables: Mapping[str, object]
) -> tuple[Action | None, Decoded]:
    """Judge and decode an answer as it was when it came."""
    tree = cache(lambda: read_tree(response, call.response, looks=looks_of(call)))
    meaning = judge(response, call, tree, response.received_at)
    if isinstance(meaning, IngestError):
        raise meaning
    if meaning is None:
        return None, decode(response, tree(), call, paging, variables)
    with suppress(BodyUnreadable):
        require_echo(response, tree(), call, variables)
    return meaning, _NOTHING
