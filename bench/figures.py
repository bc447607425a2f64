"""How figures are taken and shown: medians of rounds in turn, each beside its target."""

import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

Kind = TypeVar("Kind", bound=Hashable)


def medians_in_turn(
    actions: Mapping[Kind, Callable[[], object]], repeats: int
) -> dict[Kind, float]:
    """Return the median milliseconds of each action; a busy moment then hits all of them alike."""
    taken: dict[Kind, list[float]] = {kind: [] for kind in actions}
    for action in actions.values():
        action()  # the first call fills caches and opens connections
    for _ in range(repeats):
        for kind, action in actions.items():
            taken[kind].append(milliseconds(action))
    return {kind: statistics.median(times) for kind, times in taken.items()}


def milliseconds(action: Callable[[], object]) -> float:
    """Return how long one call takes."""
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1000


def verdict(target: str, is_met: bool) -> str:
    """Return a target with whether it is met."""
    return f"target {target}: {'met' if is_met else 'MISSED'}"
