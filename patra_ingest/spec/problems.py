"""Why a declaration is refused."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One reason: where in the pack, what is wrong there, and the remedy."""

    path: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason} ({self.remedy})"
