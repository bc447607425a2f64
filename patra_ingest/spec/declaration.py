"""The declaration: what the Registry says of one endpoint and operation, as plain values.

Keys are the words of the pack language. A key that is absent is inherited from a lower layer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from patra_ingest.model.codes import Operation

# The parts of a spec, in the order people read them.
GROUPS = ("request", "http", "paging", "window", "response", "mapping", "retry", "rate")

Values = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Layer:
    """Values from one place; `origin` names that place for people."""

    origin: str
    values: Values


@dataclass(frozen=True)
class Declaration:
    """One endpoint as declared, lowest layer first; the trigger's own values come on top later."""

    provenance: str
    endpoint: str
    operation: Operation
    layers: tuple[Layer, ...]


@dataclass(frozen=True)
class Overrides:
    """What one trigger asks to be different, and the parameters it adds to the request."""

    values: Values = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
