"""Whose cursor a plan moves."""

from dataclasses import dataclass

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
