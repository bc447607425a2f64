"""Ask for records by their ids: in one request, or in as many as the source needs to answer.

A request that is too long, or that one poisonous id makes fail, is halved until it passes or the
bad id is alone. That an id is bad is believed only when others of the same request came through, or
of the same walk where ids are asked for one by one: a source that is down is no reason to blame its
records. Nor is one that has nothing to say about any of several ids a reason to call them gone: it
must have something for others, or call each of them gone alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from patra_ingest.errors import IngestError, PageTooBig, RequestRejected, Throttled, TransientError
from patra_ingest.executor.asking import Asking
from patra_ingest.executor.exchange import Exchanged
from patra_ingest.executor.leased import Work
from patra_ingest.executor.request import render
from patra_ingest.executor.two_phase import BadId, Reconciled, combine, halves, join, reconcile
from patra_ingest.model.codes import HttpMethod
from patra_ingest.spec.paging import Paging
from patra_ingest.spec.snapshot import CallSpec, ReconcileSpec
from patra_ingest.spec.words import MissingIds

Patient = Callable[[Callable[[], Exchanged]], Exchanged]
_FAILED = (TransientError, RequestRejected, PageTooBig)
_MOST_WITNESSES = 3
_MOST_AT_ONCE = 10  # of them, in one request
MOST_OTHERS = _MOST_WITNESSES * _MOST_AT_ONCE  # more are never looked at


class Asker(Protocol):
    """Answers questions: a source over the network, or what was stored of its answers."""

    def ask(
        self,
        work: Work,
        call: CallSpec,
        asking: Asking,
        paging: Paging | None,
        is_suspect: bool = False,
    ) -> Exchanged:
        """Return the answer to one question; raise what it means, if it is none."""
        ...


@dataclass
class IdsAnswer:
    """Everything that came for some ids, over all the requests it took."""

    exchanges: list[Exchanged] = field(default_factory=list)
    items: list[object] = field(default_factory=list)
    tombstones: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    bad: list[BadId] = field(default_factory=list)
    told: list[str] = field(default_factory=list)  # missing; the source itself calls them gone
    is_mute: bool = False  # it says nothing about any of them, and has nothing for others

    def add(self, other: "IdsAnswer") -> None:
        """Take in what came for other ids."""
        self.exchanges += other.exchanges
        self.items += other.items
        self.tombstones += other.tombstones
        self.missing += other.missing
        self.merged |= other.merged
        self.bad += other.bad
        self.told += other.told


@dataclass(frozen=True)
class IdsQuestion:
    """Which ids are asked for, of whom, and what a missing one means."""

    work: Work
    call: CallSpec
    rule: ReconcileSpec
    asking: Asking
    is_suspect: bool = False  # the ids may be to blame, and not the source, when it fails

    @property
    def per_request(self) -> int:
        """How many ids may travel together."""
        detail, most = self.work.plan.spec.detail, self.call.batching.ids_per_request
        return min(detail.batch, most) if self.asking.details and detail else most

    def of(self, ids: tuple[str, ...]) -> "IdsQuestion":
        """Return the same question for other ids."""
        return replace(self, asking=replace(self.asking, ids=ids))


def ask_for_ids(
    exchange: Asker,
    question: IdsQuestion,
    patient: Patient,
    once: Patient,
    others: Sequence[str] = (),
) -> IdsAnswer:
    """Return what the source has for the ids of a question; halves are asked for only `once`.

    `others` are ids of the same walk: they tell whether an id that is alone is bad, or the source,
    and whether ids that do not come are gone, or all of them.
    """
    answer = _ask_or_isolate(exchange, question, patient, once, others)
    silent = set(answer.missing) - set(answer.told)
    nobody = len(answer.missing) + len(answer.bad) == len(question.asking.ids)
    if nobody and len(silent) > 1 and question.rule.missing is not MissingIds.FAIL:
        answer.is_mute = not _has_others(exchange, question, once, others, answer)
    return answer


def _has_others(
    exchange: Asker, question: IdsQuestion, once: Patient, others: Sequence[str], answer: IdsAnswer
) -> bool:
    """Return whether the source has anything for other ids; what it says is kept as evidence."""
    question.work.healing.halved = True  # what failed left nothing to be replayed
    plain = question.rule.model_copy(update={"missing": MissingIds.GONE})  # not asked for twice
    size = min(len(question.asking.ids), _MOST_AT_ONCE)
    for start in range(min(_MOST_WITNESSES, len(others))):
        some = tuple(others[start::_MOST_WITNESSES][:size])
        try:
            found = _ask(exchange, replace(question.of(some), rule=plain), once)
        except Throttled:
            raise
        except _FAILED:
            continue
        answer.exchanges += found.exchanges
        if found.items and len(found.missing) < len(some):
            return True
    return False


def _ask_or_isolate(
    exchange: Asker,
    question: IdsQuestion,
    patient: Patient,
    once: Patient,
    others: Sequence[str],
) -> IdsAnswer:
    try:
        return _ask(exchange, question, patient)
    except _FAILED as error:
        alone = len(question.asking.ids) < 2
        if isinstance(error, Throttled) or not question.rule.isolate or (alone and not others):
            raise
        question.work.healing.halved = True  # what failed left nothing to be replayed
        if alone:
            return _blame(exchange, question, error, once, others)
        return _isolate(exchange, question, error, patient, once)


def _blame(
    exchange: Asker,
    question: IdsQuestion,
    whole: IngestError,
    once: Patient,
    others: Sequence[str],
) -> IdsAnswer:
    """Call the one id bad that a request fails for, if the source answers for another one."""
    (one,) = question.asking.ids
    witness = _find_witness(exchange, question, whole, once, others)
    answer, failed = IdsAnswer(), {one: whole}
    if isinstance(whole, TransientError):
        answer = _ask_again(exchange, question, [one], failed, once)
    answer.exchanges += witness.exchanges
    answer.bad = [BadId(one, str(error)) for error in failed.values()]
    return answer


def _find_witness(
    exchange: Asker,
    question: IdsQuestion,
    whole: IngestError,
    once: Patient,
    others: Sequence[str],
) -> IdsAnswer:
    for other in others[:_MOST_WITNESSES]:
        try:
            return _ask(exchange, question.of((other,)), once)
        except Throttled:
            raise
        except _FAILED:
            continue
    raise whole


def _isolate(
    exchange: Asker, question: IdsQuestion, whole: IngestError, patient: Patient, once: Patient
) -> IdsAnswer:
    """Find who makes a request fail; raise its error when the source is to blame, not an id."""
    answer, failed = IdsAnswer(), dict[str, IngestError]()
    waiting = list(halves(question.asking.ids))
    while waiting:
        part = waiting.pop(0)
        try:
            answer.add(_ask(exchange, question.of(part), once))
        except Throttled:
            raise
        except _FAILED as error:
            if len(part) == 1:
                failed[part[0]] = error
            else:
                waiting[:0] = halves(part)
    fine = [one for one in question.asking.ids if one not in failed]
    if not fine:
        raise whole
    passing = [one for one, error in failed.items() if isinstance(error, TransientError)]
    if passing:
        _require_alive(exchange, question.of((fine[0],)), whole, once)
        answer.add(_ask_again(exchange, question, passing, failed, patient))
        if failed.keys() & passing:
            _require_alive(exchange, question.of((fine[0],)), whole, once)
    answer.bad = [BadId(one, str(error)) for one, error in failed.items()]
    return answer


def _ask_again(
    exchange: Asker,
    question: IdsQuestion,
    ids: list[str],
    failed: dict[str, IngestError],
    patient: Patient,
) -> IdsAnswer:
    """Ask for ids that may have failed by chance; one that comes through has not `failed`."""
    answer = IdsAnswer()
    for one in ids:
        try:
            answer.add(_ask(exchange, replace(question.of((one,)), is_suspect=True), patient))
            del failed[one]
        except Throttled:
            raise
        except _FAILED as error:
            failed[one] = error
    return answer


def _require_alive(
    exchange: Asker, question: IdsQuestion, whole: IngestError, once: Patient
) -> None:
    """Raise unless the source still answers for an id that it has answered for before."""
    try:
        _ask(exchange, question, once)
    except Throttled:
        raise
    except _FAILED:
        raise whole from None


def _ask(exchange: Asker, question: IdsQuestion, patient: Patient) -> IdsAnswer:
    if len(question.asking.ids) > 1 and _is_too_long(question):
        answer = IdsAnswer()
        for half in halves(question.asking.ids):
            answer.add(_ask(exchange, question.of(half), patient))
        return answer
    return _ask_whole(exchange, question, patient)


def _ask_whole(exchange: Asker, question: IdsQuestion, patient: Patient) -> IdsAnswer:
    first, answer = _ask_once(exchange, question, patient)
    rule = question.rule.missing
    if first.missing and rule is MissingIds.RETRY_THEN_GONE:
        again, more = _ask_once(exchange, question.of(first.missing), patient)
        first = combine(first, again)
        answer.add(more)
    answer.items = list(first.items)
    answer.missing, answer.merged = list(first.missing), dict(first.merged)
    return answer


def _ask_once(
    exchange: Asker, question: IdsQuestion, patient: Patient
) -> tuple[Reconciled, IdsAnswer]:
    work, call, asking = question.work, question.call, question.asking
    is_suspect = question.is_suspect or (question.rule.isolate and len(asking.ids) > 1)
    got = patient(lambda: exchange.ask(work, call, asking, None, is_suspect))
    answer = IdsAnswer([got], tombstones=list(got.decoded.gone))
    if not got.is_gone:
        return reconcile(asking.ids, got.decoded, call, question.rule), answer
    if len(asking.ids) == 1:
        answer.told = list(asking.ids)
        return Reconciled([], asking.ids), answer
    work.healing.halved = True  # one of them may be meant: whom, only each alone can tell
    parts = []
    for half in halves(asking.ids):
        part, more = _ask_once(exchange, question.of(half), patient)
        parts.append(part)
        answer.add(more)
    return join(*parts), answer


def _is_too_long(question: IdsQuestion) -> bool:
    """Return whether the address would be longer than the source takes; a body is no address."""
    call = question.call
    if call.request.method is not HttpMethod.GET:
        return False
    request = render(question.work.plan.spec, question.asking)
    return request.body is None and len(request.full_url) > call.batching.max_url
