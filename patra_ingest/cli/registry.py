"""`patra registry …`: packs in and out of the Registry, and what they compile to."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from patra_ingest.cli.show import Json, print_json, say

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from patra_ingest.registry.check import Verdict
    from patra_ingest.registry.code_book import CodeBook
    from patra_ingest.registry.pack import Pack
    from patra_ingest.spec.compile import Compiled

Source = Annotated[str, typer.Argument(help="Source code, for example sandbox.")]
At = Annotated[str, typer.Option("--at", help="As of this instant, ISO; default: now.")]
Endpoint = Annotated[str, typer.Option(help="Endpoint; default: the source's first.")]
Op = Annotated[str, typer.Option("--op", help="Operation.")]
Packs = Annotated[list[Path], typer.Argument(help="Pack files (YAML), or names of built-in packs.")]
Given = Annotated[
    list[str], typer.Option("--param", help="NAME=VALUE for what the pack leaves open.")
]


def apply(
    files: Packs,
    param: Given = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """Make the Registry say what the packs say; a pack that does not compile changes nothing."""
    from patra_ingest.registry.apply import apply_checked
    from patra_ingest.registry.code_book import read_code_book
    from patra_ingest.wiring import open_reader, read_settings

    settings = read_settings()
    with open_reader(settings) as live, live.db.write() as tx:
        codes = read_code_book(tx)
        packs = _read(files, param, codes)
        now = live.db.now(tx)
        changes = {
            pack.provenance.code: apply_checked(tx, pack, now, codes, settings.has_secret)
            for pack in packs
        }
    if as_json:
        print_json(changes)
        return
    for code, found in changes.items():
        for change in found:
            say(f"{code}: {change.action} {change.what}")
        if not found:
            say(f"{code}: nothing to change")


def _read(files: list[Path], param: list[str], codes: "CodeBook") -> "list[Pack]":
    from patra_ingest.packs import find_pack
    from patra_ingest.registry.pack import read_pack

    if param and len(files) != 1:
        raise typer.BadParameter("--param is for one pack; apply the others without it.")
    given = dict(_pair(said) for said in param)
    return [read_pack(find_pack(path), codes, given) for path in files]


def _pair(said: str) -> tuple[str, str]:
    name, equals, value = said.partition("=")
    if not equals:
        raise typer.BadParameter(f"--param {said!r:.60} has no value; write NAME=VALUE.")
    return name.strip(), value.strip()


def diff(
    files: Packs = [],  # noqa: B006
    param: Given = [],  # noqa: B006
    snapshots: Annotated[
        tuple[int, int], typer.Option(help="Compare the snapshots of two plans instead.")
    ] = (0, 0),
    as_json: Json = False,
) -> None:
    """Show what applying packs would change, field by field; or what differs between two plans."""
    if all(snapshots):
        _diff_snapshots(*snapshots, as_json)
        return
    if not files:
        raise typer.BadParameter("Give a pack file, or --snapshots PLAN1 PLAN2.")
    from patra_ingest.registry.code_book import read_code_book
    from patra_ingest.registry.forms import pack_form
    from patra_ingest.spec.differences import find_differences
    from patra_ingest.wiring import open_reader

    found: dict[str, Any] = {}
    with open_reader() as live, live.db.read() as tx:
        codes, now = read_code_book(tx), live.clock.now()
        for pack in _read(files, param, codes):
            code = pack.provenance.code
            found[code] = find_differences(_form_now(tx, code, now), pack_form(pack))
    _print_differences(found, as_json)


def _form_now(tx: "Connection", code: str, now: "datetime") -> dict[str, Any]:
    from patra_ingest.errors import UnknownName
    from patra_ingest.registry.forms import pack_form
    from patra_ingest.registry.unpack import read_source

    try:
        return pack_form(read_source(tx, code, now))
    except UnknownName:
        return {}


def _diff_snapshots(first: int, second: int, as_json: bool) -> None:
    from patra_ingest.views.snapshots import compare_snapshots
    from patra_ingest.wiring import open_reader

    with open_reader() as live, live.db.read() as tx:
        comparison = compare_snapshots(tx, first, second)
    if as_json:
        print_json(comparison)
        return
    for name, same in comparison.hashes.items():
        say(f"{name}: {'the same' if same else 'different'}")
    _print_differences({f"plan {first} → plan {second}": comparison.differences}, False)


def _print_differences(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    for what, differences in found.items():
        say(f"{what}: {len(differences)} differences" if differences else f"{what}: no difference")
        for difference in differences:
            say(f"  {difference}")


def show(
    source: Source,
    endpoint: Endpoint = "",
    op: Op = "HARVEST",
    at: At = "",
    origins: Annotated[
        bool, typer.Option("--origins", help="The compiled values, each with where it came from.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print a source as a pack again; `--origins`: as it compiles, each value with its origin."""
    from patra_ingest.registry.forms import pack_form
    from patra_ingest.registry.unpack import pack_text, read_source
    from patra_ingest.wiring import open_reader

    if origins or endpoint:
        _show_origins(_compile(source, endpoint, op, at), as_json)
        return
    with open_reader() as live, live.db.read() as tx:
        pack = read_source(tx, source, _instant(at) or live.clock.now())
    if as_json:
        print_json(pack_form(pack))
    else:
        say(pack_text(pack).rstrip())


def _show_origins(compiled: "Compiled", as_json: bool) -> None:
    if as_json:
        spec = compiled.spec.model_dump(mode="json")
        print_json({"spec": spec, "origins": compiled.origins})
        return
    for path, origin in sorted(compiled.origins.items()):
        say(f"{path} = {compiled.declared[path]}  [{origin}]")
    say(f"spec_fingerprint = {compiled.fingerprint}")
    say(f"expr_proto_hash = {compiled.proto_hash}")
    say(f"provenance_config_hash = {compiled.config_hash}")


def check(
    source: Annotated[str, typer.Argument(help="Only this source.")] = "",
    at: At = "",
    as_json: Json = False,
) -> None:
    """Compile every endpoint and list what is wrong with it; exit code 1 if anything is."""
    from patra_ingest.registry.check import check_endpoints, find_overlaps
    from patra_ingest.registry.code_book import read_code_book
    from patra_ingest.wiring import open_reader, read_settings

    settings = read_settings()
    with open_reader(settings) as live, live.db.read() as tx:
        instant, codes = _instant(at) or live.clock.now(), read_code_book(tx)
        verdicts = list(check_endpoints(tx, source or None, instant, codes, settings.has_secret))
        names = dict.fromkeys(verdict.name.provenance for verdict in verdicts)
        hidden = {name: find_overlaps(tx, name, instant) for name in names}
    if as_json:
        print_json({"endpoints": verdicts, "hidden_rows": hidden})
    else:
        for verdict in verdicts:
            _say_verdict(verdict)
        for name, sentences in hidden.items():
            for sentence in sentences:
                say(f"! {name}: {sentence}")
        bad = sum(bool(verdict.problems) for verdict in verdicts)
        warned = sum(len(verdict.warnings) for verdict in verdicts)
        good = len(verdicts) - bad
        say(f"{good} compiled, {bad} refused, {warned} warnings that are not intended.")
    if any(verdict.problems for verdict in verdicts):
        raise typer.Exit(1)


def _say_verdict(verdict: "Verdict") -> None:
    name = verdict.name
    shown = f"{name.provenance}/{name.endpoint} {name.operation}"
    if verdict.problems:
        say(f"✗ {shown}")
        for problem in verdict.problems:
            say(f"    {problem}")
        return
    say(f"✓ {shown} {(verdict.fingerprint or '')[:12]}")
    for warning in verdict.warnings:
        say(f"    warning {warning}")
    for intended in verdict.intended:
        say(f"    intended {intended}")
    if verdict.not_ready:
        say(f"    not to be run by this version yet: {', '.join(verdict.not_ready)}")


def query(
    source: Source,
    asked: Annotated[str, typer.Argument(help="A neutral query: JSON, or @FILE.")],
    endpoint: Endpoint = "",
    op: Op = "HARVEST",
    lenient: Annotated[bool, typer.Option("--lenient", help="Ask wider where it must.")] = False,
    as_json: Json = False,
) -> None:
    """Print what a source would be asked for a neutral query, in its own syntax."""
    from patra_ingest.cli.harvest import read_query

    spec = _compile(source, endpoint, op, "", read_query(asked), lenient).spec.query
    if spec is None:
        return
    if as_json:
        print_json(spec.model_dump(mode="json"))
        return
    say(f"text: {spec.text}")
    for name, values in {**spec.params, **spec.placed}.items():
        for value in values:
            say(f"{name} = {value}")
    for warning in spec.warnings:
        say(f"warning {warning}")


def schema() -> None:
    """Print the JSON Schema of packs, for editors."""
    from patra_ingest.registry.schema import schema_text

    say(schema_text().rstrip())


def _compile(
    source: str,
    endpoint: str,
    op: str,
    at: str,
    asked: dict[str, Any] | None = None,
    lenient: bool = False,
) -> "Compiled":
    from patra_ingest.cli.harvest import build_trigger
    from patra_ingest.wiring import open_ingest

    trigger = build_trigger(source, endpoint, op, "", "", [], asked, lenient)
    with open_ingest() as live:
        return live.planner.look(trigger, _instant(at) or live.clock.now())


def _instant(text: str) -> "datetime | None":
    from patra_ingest.cli.harvest import read_instant

    instant: datetime | None = read_instant(text, "--at")
    return instant
