"""`patra init` and `patra registry …`: the ledger's tables and what the Registry says."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patra_ingest.cli.show import Json, print_json, say

if TYPE_CHECKING:
    from patra_ingest.settings import Settings
    from patra_ingest.spec.compile import Compiled

Source = Annotated[str, typer.Argument(help="Source code, for example sandbox.")]


def init() -> None:
    """Create or migrate the ledger, load the dictionary and the built-in packs. Safe to repeat."""
    from patra_ingest.wiring import read_settings

    say(prepare(read_settings()))


def prepare(settings: "Settings") -> str:
    """Bring the ledger up to date and return what was done, in one sentence."""
    from patra_ingest.ledger.migrate import migrate
    from patra_ingest.packs import builtin_packs
    from patra_ingest.registry.apply import apply_pack
    from patra_ingest.registry.dictionary import load_dictionary
    from patra_ingest.registry.pack import read_pack
    from patra_ingest.wiring import open_reader

    applied = migrate(settings.ledger_url, settings.db_timeout_seconds)
    packs = [read_pack(path) for path in builtin_packs()]
    with open_reader(settings) as live, live.db.write() as tx:
        items = load_dictionary(tx)
        now = live.db.now(tx)
        changes = [change for pack in packs for change in apply_pack(tx, pack, now)]
        shown = live.db.shown
    if not (applied or items or changes):
        return f"The ledger {shown} is up to date."
    return (
        f"The ledger {shown} is ready: {len(applied)} migrations applied,"
        f" {items} dictionary rows and {len(changes)} Registry rows written."
    )


def apply(
    files: Annotated[list[Path], typer.Argument(help="Pack files (YAML).")],
) -> None:
    """Make the Registry say what the packs say; plans made before keep their own snapshot."""
    from patra_ingest.registry.apply import apply_pack
    from patra_ingest.registry.pack import read_pack
    from patra_ingest.wiring import open_reader

    packs = [read_pack(path) for path in files]
    with open_reader() as live, live.db.write() as tx:
        now = live.db.now(tx)
        for pack in packs:
            changes = apply_pack(tx, pack, now)
            for change in changes:
                say(f"{pack.provenance.code}: {change.action} {change.what}")
            if not changes:
                say(f"{pack.provenance.code}: nothing to change")


def show(source: Source, endpoint: str = "", as_json: Json = False) -> None:
    """Print a source as it compiles now, each value with its origin."""
    compiled = _compile(source, endpoint or None)
    spec = compiled.spec.model_dump(mode="json")
    if as_json:
        print_json({"spec": spec, "origins": compiled.origins})
        return
    for path, origin in sorted(compiled.origins.items()):
        group, _, key = path.partition(".")
        part = spec.get(group)
        value = part.get(key) if isinstance(part, dict) else spec.get(key)
        say(f"{path} = {value}  [{origin}]")
    say(f"spec_fingerprint = {compiled.fingerprint}")


def check(source: Annotated[str, typer.Argument(help="Only this source.")] = "") -> None:
    """Compile every endpoint of the Registry and list what is wrong with it."""
    from patra_ingest.errors import CompileError, UnknownName
    from patra_ingest.registry.read import list_endpoints
    from patra_ingest.wiring import open_reader

    with open_reader() as live, live.db.read() as tx:
        names = [
            name
            for name in list_endpoints(tx, live.clock.now())
            if not source or name.provenance == source.lower()
        ]
    if not names:
        raise UnknownName(f"There is no source {source!r} to check.", "See `patra status`.")
    refused = 0
    for name in names:
        try:
            compiled = _compile(name.provenance, name.endpoint)
        except CompileError as error:
            refused += 1
            say(f"✗ {name.provenance}/{name.endpoint}: {'; '.join(error.problems)}")
            continue
        say(f"✓ {name.provenance}/{name.endpoint} {compiled.fingerprint[:12]}")
        for warning in compiled.spec.warnings:
            say(f"    warning: {warning}")
    if refused:
        raise typer.Exit(1)


def _compile(source: str, endpoint: str | None) -> "Compiled":
    from patra_ingest.model.codes import Operation
    from patra_ingest.registry.read import read_declaration
    from patra_ingest.spec.compile import compile_spec
    from patra_ingest.spec.declaration import Overrides
    from patra_ingest.wiring import open_reader

    with open_reader() as live, live.db.read() as tx:
        declaration = read_declaration(tx, source, endpoint, Operation.HARVEST, live.clock.now())
    return compile_spec(declaration, Overrides())
