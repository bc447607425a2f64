"""Whose cursor a plan moves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from patra_ingest.model.codes import NamespaceScope, Operation


@dataclass(frozen=True)
class Namespace:
    """The scope of one cursor. Namespaces are walls: no operation reaches into another's."""

    provenance: str
    endpoint: str
    operation: Operation
    cursor_key: str
    scope: NamespaceScope
    key: str

    @classmethod
    def of(cls, columns: Mapping[Any, Any]) -> "Namespace":
        """Return the namespace that a row names; the opposite of `columns`."""
        return cls(
            columns["provenance_code"],
            columns["endpoint_name"],
            Operation(columns["operation_code"]),
            columns["cursor_key"],
            NamespaceScope(columns["namespace_scope_code"]),
            columns["namespace_key"],
        )

    def columns(self) -> dict[str, str]:
        """Return the columns that name this namespace in every table."""
        return {
            "provenance_code": self.provenance,
            "endpoint_name": self.endpoint,
            "operation_code": self.operation.value,
            "cursor_key": self.cursor_key,
            "namespace_scope_code": self.scope.value,
            "namespace_key": self.key,
        }
