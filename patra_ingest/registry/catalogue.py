"""What there is to know of a source before it is harvested: its pack, and how it compiles.

Everything is compiled without any credential, so that it says the same on every machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, text

from patra_ingest.errors import CompileError
from patra_ingest.model.codes import Operation
from patra_ingest.registry.code_book import CodeBook
from patra_ingest.registry.comments import Comments
from patra_ingest.registry.pack import EndpointPart, Pack
from patra_ingest.registry.read import list_endpoints, read_named
from patra_ingest.registry.unpack import read_source
from patra_ingest.spec.compile import compile_spec
from patra_ingest.spec.declaration import Overrides
from patra_ingest.spec.policies import Credential
from patra_ingest.spec.snapshot import SpecSnapshot

_ORDER = (Operation.HARVEST, Operation.BACKFILL, Operation.UPDATE)
_CODES = text("""
    SELECT provenance_code FROM reg_provenance
     WHERE deleted = 0 AND is_active = 1 AND lifecycle_status_code = 'ACTIVE'
     ORDER BY provenance_code
""")


@dataclass(frozen=True)
class EndpointSheet:
    """One endpoint: what the pack says, and what it compiles to for each operation."""

    name: str
    part: EndpointPart
    specs: Mapping[Operation, SpecSnapshot]
    problems: tuple[str, ...] = ()

    @property
    def spec(self) -> SpecSnapshot | None:
        """What it compiles to for its first operation."""
        return next((self.specs[each] for each in _ORDER if each in self.specs), None)

    @property
    def operations(self) -> list[Operation]:
        """What it can be asked for; none where only a search asks it for ids."""
        return [each for each in _ORDER if each in self.part.operations]

    @property
    def by_window(self) -> SpecSnapshot | None:
        """What it compiles to for an operation that asks for a window of time."""
        return next((self.specs[each] for each in _ORDER[:2] if each in self.specs), None)


@dataclass(frozen=True)
class Sheet:
    """One source, whole."""

    pack: Pack
    endpoints: tuple[EndpointSheet, ...]
    comments: Comments = field(default_factory=lambda: Comments("", {}))

    @property
    def code(self) -> str:
        """The name in commands and tables."""
        return self.pack.provenance.code

    @property
    def credentials(self) -> dict[str, tuple[Credential, bool]]:
        """Every credential, and whether something of the source is never asked without one."""
        needed = {
            each.name
            for one in self.endpoints
            for spec in one.specs.values()
            for each in spec.auth.credentials
            if spec.auth.required
        }
        parts = (self.pack.auth, *(one.part.auth for one in self.endpoints))
        return {
            name: (own, name in needed)
            for auth in parts
            for name, own in ((auth and auth.credentials) or {}).items()
        }


def list_sources(tx: Connection) -> list[str]:
    """Return the codes of every active source of the Registry."""
    return list(tx.execute(_CODES).scalars())


def read_sheet(tx: Connection, code: str, at: datetime, codes: CodeBook) -> Sheet:
    """Return what the Registry says of a source at `at`."""
    pack = read_source(tx, code, at)
    specs: dict[str, dict[Operation, SpecSnapshot]] = {name: {} for name in pack.endpoints}
    problems: dict[str, list[str]] = {name: [] for name in pack.endpoints}
    for name in list_endpoints(tx, at):
        if name.provenance != pack.provenance.code:
            continue
        try:
            compiled = compile_spec(read_named(tx, name, at, codes), Overrides(), frozenset())
            specs[name.endpoint][name.operation] = compiled.spec
        except CompileError as error:
            problems[name.endpoint] += error.problems
    return Sheet(
        pack,
        tuple(
            EndpointSheet(name, part, specs[name], tuple(dict.fromkeys(problems[name])))
            for name, part in pack.endpoints.items()
        ),
    )
