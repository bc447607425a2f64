"""Ask again: the same question after a pause, or a smaller one. Retries live here and nowhere else.

Every try that failed is listed with its batch; the row of the batch stays the same.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from patra_ingest.clock import Clock
from patra_ingest.errors import (
    IngestError,
    PageTooBig,
    SliceTooBig,
    TransientError,
    Unreachable,
)
from patra_ingest.executor.attempt import Attempt, shown_attempt
from patra_ingest.executor.leased import Place, Work
from patra_ingest.executor.paging import shrunk
from patra_ingest.executor.pass_gate import LONGEST_WAIT
from patra_ingest.executor.patience import Tried, patience
from patra_ingest.executor.run_batch import Answer, BatchRunner, Patience
from patra_ingest.model.codes import ResliceReason

T = TypeVar("T")


def ask_patiently(
    runner: BatchRunner, attempt: Attempt, place: Place, number: int, clock: Clock
) -> Answer:
    """Ask for a page; one that is too big for the source, or for us, is asked for in parts."""
    work, patient = attempt.work, patience_of(attempt, clock)
    while True:
        try:
            return runner.ask(work, place, number, attempt.history, patient)
        except (PageTooBig, Unreachable) as error:
            smaller = _smaller(work, place, error)
            if smaller is None:
                raise
            work.healing.page_shrunk = True
            place = smaller


def _smaller(work: Work, place: Place, error: IngestError) -> Place | None:
    """Return the same place at half its size, if that may help."""
    paging = work.plan.spec.paging
    if isinstance(error, Unreachable) and not (error.timed_out and paging.shrink_on_timeout):
        return None
    smaller = None if place.details else shrunk(work.walk, place.page)
    if smaller is None and isinstance(error, PageTooBig):
        raise SliceTooBig(ResliceReason.RESPONSE_SIZE, str(error)) from error
    return Place(smaller) if smaller else None


def patience_of(attempt: Attempt, clock: Clock) -> Patience:
    """Return how a question is asked: transient errors are answered by waiting."""
    history, stop = attempt.history, attempt.work.stop

    def note(tried: Tried) -> None:
        waited = timedelta(seconds=tried.waited_seconds)
        history.attempts.append(shown_attempt(tried.no, tried.at, tried.error, waited))

    trying = patience(attempt.work.plan.spec.retry, clock, stop, note, LONGEST_WAIT)

    def patient(ask: Callable[[], T]) -> T:
        def once() -> T:
            if stop.is_set():
                raise TransientError("the worker was asked to stop")
            return history.count(ask)

        return trying(once)

    return patient
