"""`patra sources`: what can be harvested, how fast, how fresh, and with which credential."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from patra_ingest.cli.show import Json, print_json, print_table, say

if TYPE_CHECKING:
    from patra_ingest.ledger.db import Db
    from patra_ingest.registry.catalogue import EndpointSheet, Sheet
    from patra_ingest.settings import Settings

Write = Annotated[
    Path | None, typer.Option("--write", help="Write the pages of the built-in sources there.")
]
Check = Annotated[
    bool, typer.Option("--check", help="With --write: only say which pages are not current.")
]


def sources(write: Write = None, check: Check = False, as_json: Json = False) -> None:
    """List every source, built in or applied: operations, rate, freshness, credential, evidence."""
    from patra_ingest.wiring import read_settings

    if check and write is None:
        raise typer.BadParameter("--check needs --write DIR: the folder of the pages.")
    if write is not None:
        _write_pages(write, check)
        return
    settings = read_settings()
    found = _list(settings)
    if as_json:
        print_json([_form(sheet, state, settings.has_secret) for sheet, state in found])
    else:
        _print(found, settings.has_secret)


def _list(settings: "Settings") -> "list[tuple[Sheet, str]]":
    """Return every source with its state: applied, applied and changed, or built in."""
    from patra_ingest.registry.forms import pack_form
    from patra_ingest.wiring import has_ledger, open_reader

    built_in = {sheet.code: sheet for sheet in builtin_sheets()}
    found: dict[str, tuple[Sheet, str]] = {
        code: (sheet, "built in") for code, sheet in built_in.items()
    }
    if has_ledger(settings):
        with open_reader(settings) as live:
            for sheet in _sheets(live.db, live.clock.now()):
                own = built_in.get(sheet.code)
                same = own is not None and pack_form(own.pack) == pack_form(sheet.pack)
                state = "applied" if same or own is None else "applied, changed"
                found[sheet.code] = (sheet, state)
    return [found[code] for code in sorted(found)]


def builtin_sheets() -> "list[Sheet]":
    """Return the sheets of the packs that come with us, with what their authors noted."""
    from patra_ingest.packs import builtin_packs
    from patra_ingest.registry.comments import read_comments
    from patra_ingest.registry.pack import read_pack
    from patra_ingest.registry.pack_file import read_pack_file
    from patra_ingest.wiring import open_scratch

    files = {read_pack(path).provenance.code: path for path in builtin_packs()}
    with open_scratch([read_pack(path) for path in files.values()]) as scratch:
        sheets = _sheets(scratch.db, scratch.clock.now())
    return [
        replace(
            sheet,
            comments=read_comments(
                files[sheet.code].read_text(encoding="utf-8"), read_pack_file(files[sheet.code])
            ),
        )
        for sheet in sheets
    ]


def _sheets(db: "Db", now: Any) -> "list[Sheet]":
    from patra_ingest.registry.catalogue import list_sources, read_sheet
    from patra_ingest.registry.code_book import read_code_book

    with db.read() as tx:
        codes = read_code_book(tx)
        return [read_sheet(tx, code, now, codes) for code in list_sources(tx)]


def pages() -> dict[str, str]:
    """Return every page of docs/sources by the name of its file."""
    from patra_ingest.cli.source_page import index_page, source_page

    sheets = builtin_sheets()
    return {"README.md": index_page(sheets)} | {
        f"{sheet.code}.md": source_page(sheet) for sheet in sheets
    }


def _write_pages(folder: Path, check: bool) -> None:
    from patra_ingest.errors import PersonMustAct

    wanted = pages()
    try:
        there = {file.name: file.read_text(encoding="utf-8") for file in folder.glob("*.md")}
        changed = [name for name, text in wanted.items() if there.get(name) != text]
        gone = [name for name in there if name not in wanted]
        if not check:
            folder.mkdir(parents=True, exist_ok=True)
            for name in changed:
                (folder / name).write_text(wanted[name], encoding="utf-8")
            for name in gone:
                (folder / name).unlink()
    except OSError as error:
        raise PersonMustAct(f"{folder}: {error.strerror}.", "Choose another folder.") from None
    listed = ", ".join([*changed, *gone])
    if check and listed:
        raise PersonMustAct(f"Not current in {folder}: {listed}.", "Run `make sources`.")
    say(f"{len(wanted)} pages in {folder}: {f'written {listed}' if listed else 'all current'}.")


def _print(found: "Sequence[tuple[Sheet, str]]", has_secret: Callable[[str], bool]) -> None:
    from rich.table import Table

    from patra_ingest.cli.source_page import fresh, rate

    table = Table()
    for name in ("source", "endpoints", "sees a record", "rate", "credential"):
        table.add_column(name, overflow="fold")
    for name in ("schedule", "looked at", "state"):
        table.add_column(name, no_wrap=True)
    for sheet, state in found:
        evidence = sheet.pack.provenance.evidence
        table.add_row(
            f"{sheet.code}\n{sheet.pack.provenance.name}",
            "\n".join(f"{one.name}: {_offer(one)}" for one in sheet.endpoints),
            fresh(sheet),
            rate(sheet),
            _credential(sheet, has_secret),
            "\n".join(_crons(sheet)) or "as usual",
            evidence.date if evidence else "—",
            state,
        )
    print_table(table)
    say("More of one: `patra registry show SOURCE`. A look at it: `patra test-read SOURCE`.")


def _offer(one: "EndpointSheet") -> str:
    if one.problems:
        return "does not compile"
    return ", ".join(one.operations) or "details only"


def _credential(sheet: "Sheet", has_secret: Callable[[str], bool]) -> str:
    from patra_ingest.spec.references import secrets_of

    lines = []
    for own, required in sheet.credentials.values():
        places = secrets_of(own)
        there = "set" if all(map(has_secret, places)) else "not set"
        kind = "required" if required else "optional"
        lines += [f"{kind}, {there}:", *(places or [own.type])]
    return "\n".join(lines) or "none"


def _crons(sheet: "Sheet") -> list[str]:
    return [
        f"{one.name} {each}: {part.cron}"
        for one in sheet.endpoints
        for each, part in one.part.schedule.items()
    ]


def _form(sheet: "Sheet", state: str, has_secret: Callable[[str], bool]) -> dict[str, Any]:
    from patra_ingest.spec.references import secrets_of

    who = sheet.pack.provenance
    return {
        "code": who.code,
        "name": who.name,
        "base_url": who.base_url,
        "docs_url": who.docs_url,
        "state": state,
        "evidence": who.evidence.model_dump(mode="json") if who.evidence else None,
        "credentials": [
            {
                "name": name,
                "type": own.type,
                "required": required,
                "secrets": list(secrets_of(own)),
                "at_hand": all(map(has_secret, secrets_of(own))),
                "unlocks": own.unlocks,
            }
            for name, (own, required) in sheet.credentials.items()
        ],
        "endpoints": [_endpoint_form(one) for one in sheet.endpoints],
    }


def _endpoint_form(one: "EndpointSheet") -> dict[str, Any]:
    spec, by_window = one.spec, one.by_window
    return {
        "name": one.name,
        "usage": one.part.usage,
        "operations": list(one.operations),
        "problems": list(one.problems),
        "window": by_window.window.model_dump(mode="json") if by_window else None,
        "rate": spec.rate.model_dump(mode="json") if spec else None,
        "paging": spec.paging.model_dump(mode="json", exclude_none=True) if spec else None,
        "cap": by_window.cap.max if by_window else None,
        "schedule": {each.value: part.cron for each, part in one.part.schedule.items()},
        "warnings": list(spec.warnings) if spec else [],
    }
