"""The declaration: what the Registry says of one endpoint and operation, as layers of parts.

A layer holds plain values by group and key, in the words of the pack language. A key that is
absent is inherited from a lower layer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from patra_ingest.expr.query_rules import QueryBook
from patra_ingest.model.codes import Operation
from patra_ingest.spec import parts, policies
from patra_ingest.spec.planning import PlanningPart
from patra_ingest.spec.policies import Credential
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.words import Word

# The parts of a spec and the words each may say, in the order people read them.
PARTS: Mapping[str, type[Word]] = {
    "endpoint": parts.EndpointWords,
    "request": parts.RequestPart,
    "names": parts.ParamNames,
    "http": policies.HttpPart,
    "auth": policies.AuthPart,
    "paging": parts.PagingPart,
    "window": parts.WindowPart,
    "cap": parts.CapPart,
    "response": parts.ResponsePart,
    "detail": parts.DetailPart,
    "batching": policies.BatchingPart,
    "retry": policies.RetryPart,
    "rate": policies.RatePart,
    "planning": PlanningPart,
}
GROUPS = tuple(PARTS)

Values = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Layer:
    """Values from one place. `origin` names it for people, `where` is its place in the pack."""

    origin: str
    values: Values
    where: str = ""


@dataclass(frozen=True)
class NamedCredential:
    """A credential of the Registry that this endpoint may use; the first is taken first."""

    name: str
    credential: Credential
    where: str = "auth.credentials"

    @property
    def place(self) -> str:
        """Where it stands in the pack."""
        return f"{self.where}.{self.name}"


@dataclass(frozen=True)
class Declaration:
    """One endpoint as declared, lowest layer first; the trigger's own values come on top later."""

    provenance: str
    endpoint: str
    operation: Operation
    layers: tuple[Layer, ...]
    credentials: tuple[NamedCredential, ...] = ()
    book: QueryBook | None = None
    detail: "Declaration | None" = None  # the DETAIL endpoint this one hands its ids to
    endpoints: tuple[str, ...] = ()  # every endpoint of the source, for what refers to them
    problems: tuple[Problem, ...] = ()  # found while reading: codes the dictionary lacks


@dataclass(frozen=True)
class Overrides:
    """What one trigger asks to be different, the parameters it adds, and its neutral query."""

    values: Values = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] | None = None
    lenient: bool = False  # let clauses go that the source cannot say, and name them


def said(part: Word) -> dict[str, Any]:
    """Return the keys of a part that were given a value."""
    return {
        name: getattr(part, name)
        for name in type(part).model_fields
        if getattr(part, name) is not None
    }
