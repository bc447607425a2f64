"""Every exception we raise, grouped by what the caller must do about it.

IngestError
├── PersonMustAct         a person must change something first; shown as one sentence, exit code 1
│   ├── UnknownName           no such provenance, endpoint, plan, …
│   ├── PackError             the pack cannot be read or does not fit the pack language
│   ├── CompileError          the declaration cannot become a spec; no plan is created
│   ├── PlanError             the trigger asks for something the spec does not allow
│   ├── NotReady              the spec asks for what this version cannot execute; nothing is planned
│   ├── LedgerUnavailable     the database is not there, or refuses us
│   │   └── LedgerUnreachable     … and may be back in a moment: a worker rides that out
│   ├── LedgerBusy            another process holds the ledger
│   ├── LedgerMismatch        the ledger's schema is missing, older or newer than this code
│   └── PortTaken             another program listens where we wanted to
├── TransientError        L1: back off and send the same batch again
│   ├── Unreachable           … because no whole answer came
│   ├── Throttled             … and not before `retry_at`
│   │   └── NotSent               … because our own gate or a quota let nothing through
│   │       └── CredentialSpent       … with this credential; another one may have some left
│   ├── SourceFails           … when the source has had time to recover: it failed too often
│   └── CredentialRefused     … with a new token, or with another credential
├── RequestRejected       L2: this batch is FAILED; sending it again cannot help
├── BadRecord             L3: quarantine one item, keep the rest of the batch
├── EndpointHalted        L4: stop the endpoint until a person resumes it
├── PageTooBig            ask for the same position again, for half as many items
├── SliceIncomplete       the slice ended without its completeness certificate; never SUCCEEDED
│   ├── SliceMustRestart      what was walked is void: the slice begins again at its first page
│   └── SliceTooBig           its rest must be cut again
└── LeaseLost             another worker owns the task now; write nothing more
"""

from collections.abc import Sequence
from datetime import datetime


class IngestError(Exception):
    """Base of every error raised on purpose by this package."""


class PersonMustAct(IngestError):
    """Something only a person can mend: what happened, where, and the remedy."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what} {remedy}")
        self.what = what
        self.remedy = remedy


class UnknownName(PersonMustAct):
    """A name that the ledger or the Registry does not know."""


class PackError(PersonMustAct):
    """A pack file that cannot be read or does not fit the pack language."""


class CompileError(PersonMustAct):
    """A declaration that cannot become a spec; `problems` lists every reason."""

    def __init__(self, where: str, problems: Sequence[str]) -> None:
        listed = "; ".join(problems)
        asked = all(problem.startswith(("--set ", "query.", "params.")) for problem in problems)
        super().__init__(
            f"{where} does not compile: {listed}.",
            "Correct what was asked for."
            if asked
            else "Correct the pack and apply it again (patra registry apply FILE).",
        )
        self.problems = tuple(problems)


class PlanError(PersonMustAct):
    """A trigger that asks for something the spec does not allow."""


class NotReady(PersonMustAct):
    """A spec that compiles but needs what this version cannot do; `problems` names it."""

    def __init__(self, where: str, missing: Sequence[str]) -> None:
        super().__init__(
            f"{where} compiles, but this version cannot run it yet: {', '.join(missing)}.",
            "Take those out of the pack, or wait for a version that can.",
        )
        self.problems = tuple(missing)


class LedgerUnavailable(PersonMustAct):
    """The database is not there, or refuses us."""


class LedgerUnreachable(LedgerUnavailable):
    """The way to the database is cut; it may be back in a moment."""


class LedgerBusy(PersonMustAct):
    """Another process holds the ledger longer than we are ready to wait."""


class LedgerMismatch(PersonMustAct):
    """The ledger's schema is missing, older or newer than this code."""


class PortTaken(PersonMustAct):
    """Another program listens where we wanted to."""


class TransientError(IngestError):
    """L1: the upstream may answer if the same request is sent later."""


class Unreachable(TransientError):
    """L1: the network, or the source, did not let a whole answer through."""

    def __init__(self, message: str, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class Throttled(TransientError):
    """L1: no request may leave before `retry_at`: the upstream said so, or our own budget does."""

    def __init__(self, retry_at: datetime, why: str = "", for_all: bool = True) -> None:
        because = f" ({why})" if why else ""
        super().__init__(f"no request may leave before {retry_at.isoformat()}{because}")
        self.retry_at = retry_at
        self.for_all = for_all  # False: only this very request has to wait


class NotSent(Throttled):
    """L1: our own gate, or a quota, let the request not through; the source was not asked."""


class CredentialSpent(NotSent):
    """L1: what the source allows one credential is used up in our books."""


class SourceFails(TransientError):
    """L1: so many requests failed in a row that everybody leaves the source alone for a while."""

    def __init__(self, message: str, retry_at: datetime) -> None:
        super().__init__(message)
        self.retry_at = retry_at


class CredentialRefused(TransientError):
    """L1 as long as there is a way on: a fresh token, or another credential."""


class RequestRejected(IngestError):
    """L2: the upstream refused this very request; the same request will be refused again."""


class BadRecord(IngestError):
    """L3: one item cannot be mapped; `path` says which field is to blame."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class EndpointHalted(IngestError):
    """L4: nothing this endpoint says can be trusted until a person has looked."""


class SliceIncomplete(IngestError):
    """The pages ended, but they do not add up to what the upstream promised."""


class SliceMustRestart(SliceIncomplete):
    """The walk cannot go on where it stopped, for example because its token has died."""


class PageTooBig(IngestError):
    """The source, or our own limit, cannot take a page of this size at this position."""


class SliceTooBig(SliceIncomplete):
    """A slice holds more than the source gives for one question: its rest must be cut again."""

    def __init__(self, reason: str, message: str, total: int | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.total = total


class LeaseLost(IngestError):
    """Another worker owns the task now: write nothing more for it."""
