"""Ask again: how often, after what pause, and not at all when the pause is too long.

The loop is tenacity's. Time, the dice and the wish to stop are handed in.
"""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from tenacity import RetryCallState, Retrying, stop_after_attempt

from patra_ingest.clock import Clock
from patra_ingest.errors import Throttled, TransientError, Unreachable
from patra_ingest.model.codes import BackoffPolicyType
from patra_ingest.spec.snapshot import RetrySpec

T = TypeVar("T")


class _Forgetful(Retrying):
    """Tenacity keeps the last steps of a call, and they keep it.

    Everything a page has seen would so live on until the collector comes, which is seldom.
    """

    def __call__(self, fn: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        try:
            return super().__call__(fn, *args, **kwargs)
        finally:
            self.iter_state.reset()


@dataclass(frozen=True)
class Tried:
    """A try that failed and was followed by another one."""

    no: int  # counts from 1
    at: datetime  # when it had failed
    error: str
    kind: str  # the class of the error
    waited_seconds: float  # before the next try


def patience(
    retry: RetrySpec,
    clock: Clock,
    stop: threading.Event,
    on_retry: Callable[[Tried], None],
    longest: timedelta,
    dice: random.Random | None = None,
) -> Retrying:
    """Return what calls a function until it succeeds: `patience(…)(function, *arguments)`.

    Only a TransientError is tried again, at most `max_attempts` times in all, and a Throttled only
    when its pause is not longer than `longest`; an Unreachable only when the pack retries network
    errors. The last error is raised as it came. Once `stop` is set, also during a pause, no
    further try is made. `on_retry` hears of each failed try right before the next one.
    """
    rolled = dice or random.Random()

    def is_worth_it(state: RetryCallState) -> bool:
        error = _error(state)
        if isinstance(error, Throttled):
            return error.retry_at - clock.now() <= longest
        if isinstance(error, Unreachable):
            return retry.network_errors
        return isinstance(error, TransientError)

    def seconds(state: RetryCallState) -> float:
        pause = delay(retry, state.attempt_number, state.upcoming_sleep, rolled)
        error = _error(state)
        if isinstance(error, Throttled):
            return max(pause, (error.retry_at - clock.now()).total_seconds())
        return pause

    def pause(state: RetryCallState) -> None:
        error, at, began = _error(state), clock.now(), clock.monotonic()
        if clock.wait(stop, state.upcoming_sleep) and error:
            raise error
        waited = clock.monotonic() - began
        on_retry(Tried(state.attempt_number, at, str(error), type(error).__name__, waited))

    return _Forgetful(
        retry=is_worth_it,
        stop=stop_after_attempt(retry.max_attempts),
        wait=seconds,
        before_sleep=pause,  # where the error is at hand; there is nothing left to sleep
        sleep=lambda _: None,
        reraise=True,
    )


def delay(retry: RetrySpec, no: int, before: float, dice: random.Random) -> float:
    """Return the seconds to wait after failed try `no`, when `before` was the pause before it."""
    first, most = retry.initial_delay.total_seconds(), retry.max_delay.total_seconds()
    grown = min(first * retry.multiplier ** (no - 1), most)
    match retry.backoff:
        case BackoffPolicyType.FIXED:
            return min(first, most)
        case BackoffPolicyType.EXP:
            return grown
        case BackoffPolicyType.EXP_JITTER:
            return min(grown * dice.uniform(1 - retry.jitter, 1 + retry.jitter), most)
        case BackoffPolicyType.DECOR_JITTER:
            return min(dice.uniform(first, max(before, first) * retry.multiplier), most)


def _error(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None
