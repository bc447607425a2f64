"""What a judgement of health is made of: what is asked, how strict we are, and what was found."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection

from patra_ingest.errors import PersonMustAct


class Severity(StrEnum):
    """How bad it is that a check does not pass."""

    WARN = "WARN"
    ERROR = "ERROR"


@dataclass(frozen=True)
class Finding:
    """What one check says of one endpoint; `severity` counts only when it has not passed."""

    check: str
    subject: str
    passed: bool
    severity: Severity
    value: float | None
    threshold: float | None
    why: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Thresholds:
    """Where the lines are drawn; times in seconds, shares from 0 to 1.

    A share is held against its line only from `fewest_errors` on: one answer that failed among
    three is no trend.
    """

    completeness_days: float = 7
    coverage_days: float = 30
    cursor_lag: float = 1800
    cursor_lag_error: float = 7200
    fold_events: float = 10_000
    fold_grace: float = 60
    error_share: float = 0.05
    throttled_share: float = 0.05
    fewest_errors: float = 3
    quarantine_share: float = 0.01
    quarantine_share_error: float = 0.05
    freshness: float = 86_400
    outbox_age: float = 3600

    @classmethod
    def read(cls, text: str) -> "Thresholds":
        """Return the thresholds with those that a JSON object names put in their place."""
        known = {one.name for one in fields(cls)}
        try:
            said = json.loads(text or "{}")
            given = {name: float(value) for name, value in said.items()}
        except (ValueError, TypeError, AttributeError):
            raise _refusal("is no JSON object of numbers", known) from None
        if strange := sorted(given.keys() - known):
            raise _refusal(f"names {', '.join(strange)}", known)
        if any(not value >= 0 for value in given.values()):
            raise _refusal("has a number below zero", known)
        return cls(**given)


def _refusal(wrong: str, known: set[str]) -> PersonMustAct:
    return PersonMustAct(
        f"PATRA_CHECK_THRESHOLDS {wrong}.",
        f'Write it like {{"cursor_lag": 3600}}; there are {", ".join(sorted(known))}.',
    )


@dataclass(frozen=True)
class Cadence:
    """How often an endpoint is harvested without a person: `every` at the longest, if declared."""

    every: timedelta | None = None
    is_enabled: bool = True


@dataclass(frozen=True)
class Look:
    """One endpoint, looked at once: one transaction, one now, one set of lines."""

    tx: Connection
    now: datetime
    lines: Thresholds
    provenance: str
    endpoint: str
    cadence: Cadence = Cadence()

    @property
    def place(self) -> dict[str, str]:
        """Return what every query binds."""
        return {"provenance": self.provenance, "endpoint": self.endpoint}

    def before(self, **ago: float) -> datetime:
        """Return the instant so long ago."""
        return self.now - timedelta(**ago)

    def fine(
        self, check: str, why: str, value: float | None = None, threshold: float | None = None
    ) -> Finding:
        """Return a finding that passed."""
        subject = f"{self.provenance}/{self.endpoint}"
        return Finding(check, subject, True, Severity.WARN, value, threshold, why)

    def bad(
        self,
        check: str,
        severity: Severity,
        why: str,
        value: float | None = None,
        threshold: float | None = None,
        **metadata: Any,
    ) -> Finding:
        """Return a finding that did not pass."""
        subject = f"{self.provenance}/{self.endpoint}"
        return Finding(check, subject, False, severity, value, threshold, why, metadata)
