"""What a source remembers of its callers' walks: tokens, scrolls, and what happened once."""

from collections.abc import Hashable
from typing import Any


class Memory:
    """Forgotten whenever the habits change or the sandbox is reset."""

    def __init__(self) -> None:
        self._births: dict[str, float] = {}
        self._happened: set[Hashable] = set()
        self._walks: dict[str, Any] = {}
        self.scrolls: list[int] = []  # by number: how far each walk with one cursor has come

    def hand_out(self, token: str, now: float, walk: Any = None) -> str:
        """Remember when a token was handed out, and what it goes on with; return it."""
        self._births[token] = now
        self._walks[token] = walk
        return token

    def age(self, token: str, now: float) -> float:
        """Return how many seconds ago a token was handed out last; 0 for one we never gave."""
        return now - self._births.get(token, now)

    def walk(self, token: str) -> Any:
        """Return what a token goes on with; None for one we never gave."""
        return self._walks.get(token)

    def is_first(self, event: Hashable) -> bool:
        """Say whether this happens for the first time, and remember that it did."""
        first = event not in self._happened
        self._happened.add(event)
        return first
