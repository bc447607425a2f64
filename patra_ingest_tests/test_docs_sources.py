"""How to write a pack: every example of the page compiles, every output is what is printed.

`python patra_ingest_tests/test_docs_sources.py` writes the tables of keys anew.
"""

import json
import os
import re
import shlex
import shutil
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

import patra_ingest
from patra_ingest.cli import main
from patra_ingest.errors import CompileError, PackError
from patra_ingest.expr.template import compile_template
from patra_ingest.expr.value import compile_value
from patra_ingest.ledger.db import Db, open_db
from patra_ingest.model.window import Window, parse_instant
from patra_ingest.registry.apply import apply_checked
from patra_ingest.registry.code_book import builtin_code_book
from patra_ingest.registry.pack import Pack, parse_pack
from patra_ingest.registry.pack_file import PackText, read_pack_text
from patra_ingest.spec.localize import window_variables
from patra_ingest.spec.platform import PLATFORM
from patra_ingest.spec.words import duration_text
from patra_ingest_tests.builders import NOON, a_spec

PAGE = Path(__file__).parents[1] / "docs" / "sources.md"
BEGIN, END = "<!-- keys: begin -->\n", "<!-- keys: end -->\n"
BARE = {"query": {"q": "${window.from} ${window.last}", "c": "${page.token}"}}
NEW_YORK_DAY = Window(*map(parse_instant, ("2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z")))
MARK = re.compile(r"<!-- ([a-z ]+): (.*) -->")  # `<!-- adds to: library/works -->`
MASKED = re.compile(r"\b[0-9a-f]{12,64}\b|(?<=#)\d+")


class Undo(Exception):
    """Ends a transaction without a trace."""


@dataclass(frozen=True)
class Block:
    """A block of the page with the marks that stand before it."""

    line: int
    marks: Mapping[str, str]
    text: str

    def __str__(self) -> str:
        return f"line {self.line}"


def blocks(language: str) -> list[Block]:
    """Return the blocks of one language, in order."""
    text = PAGE.read_text()
    wanted = rf"((?:^<!-- [^\n]* -->\n)*)^```{language}\n(.*?)^```$"
    return [
        Block(text.count("\n", 0, found.start(2)) + 1, dict(MARK.findall(found[1])), found[2])
        for found in re.finditer(wanted, text, re.MULTILINE | re.DOTALL)
    ]


EXAMPLES = blocks("yaml")
WHOLE = {block.marks["pack"]: block for block in EXAMPLES if "pack" in block.marks}


def laid_out(block: Block) -> dict[str, Any]:
    """Return the whole pack that an example stands for."""
    said = read_pack_text(block.text, "the example").value
    if "pack" in block.marks:
        return said
    is_added = "adds to" in block.marks
    source, _, endpoint = block.marks["adds to" if is_added else "replaces in"].partition("/")
    pack = deepcopy(read_pack_text(WHOLE[f"{source}.yaml"].text, source).value)
    home = pack["endpoints"].setdefault(endpoint, {}) if endpoint else pack
    for part, words in said.items():
        both = is_added and isinstance(home.get(part), dict)
        home[part] = {**home[part], **words} if both else words
    return pack


@pytest.fixture(scope="module")
def ledger(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Db]:
    """One ledger for all examples: each of them leaves it as it was."""
    copy = shutil.copyfile(sqlite_template, tmp_path_factory.mktemp("page") / "ledger.db")
    opened = open_db(f"sqlite:///{copy}")
    yield opened
    opened.close()


def compile_in(ledger: Db, pack: dict[str, Any], given: dict[str, str]) -> None:
    """Read, apply and compile a pack; raise Undo when there is nothing against it."""
    codes = builtin_code_book()
    with ledger.write() as tx:
        read = parse_pack(PackText("the example", pack, {}), codes, given)
        apply_checked(tx, read, NOON, codes, lambda _reference: False)
        raise Undo


@pytest.mark.parametrize("block", EXAMPLES, ids=str)
def test_every_example_compiles_or_is_refused_as_the_page_says(ledger: Db, block: Block):
    is_refused = "refused" in block.marks
    message = re.escape(message_below(block)) if is_refused else None

    with pytest.raises((PackError, CompileError) if is_refused else Undo, match=message):
        compile_in(ledger, laid_out(block), json.loads(block.marks.get("with", "{}")))


def message_below(block: Block) -> str:
    """Return the message that the page shows right after an example."""
    return re.findall(r"```\n+```text\n(.*)\n```", PAGE.read_text().partition(block.text)[2])[0]


def test_the_page_begins_small_and_ends_with_a_way_to_say_everything():
    assert EXAMPLES[0] is WHOLE["library.yaml"]
    assert len(EXAMPLES[0].text.splitlines()) <= 25
    assert len(EXAMPLES) >= 40
    assert sum("refused" in block.marks for block in EXAMPLES) >= 5


def test_the_shown_outputs_are_what_the_commands_print(tmp_path, monkeypatch, capsys, recorded):
    for name in [name for name in os.environ if name.startswith("PATRA_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATRA_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    printed(capsys, monkeypatch, "patra init")
    for block in EXAMPLES:
        if file := block.marks.get("file", block.marks.get("pack")):
            Path(file).write_text(json.dumps(laid_out(block)))
    for block in blocks("console"):
        for command, shown in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block.text, re.M):
            said = printed(capsys, monkeypatch, command)
            lines = MASKED.sub("#", shown).splitlines(keepends=True)
            pattern = "".join(r"(?:.*\n)*" if x.strip() == "…" else re.escape(x) for x in lines)
            assert re.fullmatch(pattern, MASKED.sub("#", said)), f"{block}: {command}\n{said}"


def printed(capsys, monkeypatch, command: str) -> str:
    """Run a command and return what it prints, errors included."""
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    with pytest.raises(SystemExit):
        main()
    captured = capsys.readouterr()
    return captured.out + captured.err


def marked_rows(kind: str) -> list[list[str]]:
    """Return the cells of every table that is marked so, without their code marks."""
    tables = re.findall(rf"<!-- table: {kind} -->\n((?:\|.*\n)+)", PAGE.read_text())
    rows = [line for table in tables for line in table.splitlines()[2:]]
    cut = [re.split(r"(?<!\\)\|", row.strip().strip("|")) for row in rows]
    return [[cell.strip().strip("`").replace("\\|", "|") for cell in row] for row in cut]


@pytest.mark.parametrize(("text", "variables", "sent"), marked_rows("template"))
def test_a_template_gives_what_the_page_says(text, variables, sent):
    given = compile_template(text).render_clause(json.loads(variables))

    assert given == (None if sent == "(dropped)" else sent)


@pytest.mark.parametrize(("expression", "item", "kept"), marked_rows("value"))
def test_a_value_expression_finds_what_the_page_says(expression, item, kept):
    found = compile_value(expression).find(json.loads(item))

    shown = found.isoformat() if isinstance(found, datetime) else found
    assert shown == json.loads(kept)


@pytest.mark.parametrize(("words", "_why"), marked_rows("pubmed"))
def test_the_words_explained_for_pubmed_are_in_its_pack(words, _why):
    assert words in (Path(patra_ingest.__file__).parent / "packs" / "pubmed.yaml").read_text()


@pytest.mark.parametrize(("words", "first", "last"), marked_rows("bounds"))
def test_a_window_is_written_as_the_page_says(words, first, last):
    spec = a_spec(request=BARE, window={"zone": "UTC", "safety_lag": "2d", **json.loads(words)})
    bounds = window_variables(spec.window, NEW_YORK_DAY)

    assert (bounds["from"].written(), bounds["last"].written()) == (first, last)


def test_the_tables_of_keys_are_current_and_explain_every_key():
    page = PAGE.read_text()
    tables = key_tables(page)

    assert page.partition(BEGIN)[2].partition(END)[0] == tables
    assert not re.findall(r"^\|.*\| +\|$", tables, re.M), "a key has no meaning"


COMPUTED = {"paging.stop": "by type", "rate.key": "the source's code", "window.min_span": "a grain"}
COMPUTED |= {"window.safety_lag": "10m, or a grain", "window.zone": "the source's"}
KINDS: dict[Any, str] = {str: "text", int: "whole number", float: "number", Any: "anything"}
KINDS |= {bool: "true or false", timedelta: "duration", dict: "mapping"}


def key_tables(page: str) -> str:
    """Write one table per part of the language; a meaning that only the page says is kept."""
    known = dict(written_meanings(page))
    return "\n" + "".join(_table(part, place, known) for part, place in reachable().items())


def written_meanings(page: str) -> Iterator[tuple[tuple[str, str], str]]:
    """Read the last column of the tables that the page has."""
    place = ""
    for line in page.partition(BEGIN)[2].partition(END)[0].splitlines():
        place = line[6:-1] if line.startswith("#### `") else place
        if row := re.fullmatch(r"\| `([^`]+)` \|.*\|.*\| (.*?) *\|", line):
            yield (place, row[1]), row[2]


def reachable() -> dict[type[BaseModel], str]:
    """Return every part that a pack can have, with the first place where it stands."""
    places: dict[type[BaseModel], str] = {Pack: "the file"}
    waiting: list[type[BaseModel]] = [Pack]
    for part in waiting:
        above = "" if part is Pack else places[part] + "."
        for name, field in part.model_fields.items():
            for inner in _models(field.annotation):
                if inner not in places:
                    places[inner] = above + name + _told_apart(field, inner)
                    waiting.append(inner)
    return places


def _told_apart(field: FieldInfo, part: type[BaseModel]) -> str:
    named = ".NAME" if "dict[" in str(field.annotation) else ""
    kinds = [part.model_fields[key].annotation for key in part.model_fields if key in "type by"]
    said = [typing.get_args(kind)[0] for kind in kinds if typing.get_origin(kind) is Literal]
    return " ".join([named, *said])


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for inner in typing.get_args(kind):
        yield from _models(inner)


def _table(part: type[BaseModel], place: str, known: Mapping[tuple[str, str], str]) -> str:
    rows = []
    for name, field in part.model_fields.items():
        meaning = field.description or known.get((place, name), "")
        cells = (f"`{name}`", _kind(field.annotation), _default(place, name, field), meaning)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    promise = (part.__doc__ or "").strip().partition("\n")[0]
    head = "| key | is | default | meaning |\n|---|---|---|---|\n"
    return f"#### `{place}`\n\n{promise}\n\n{head}{''.join(rows)}\n"


def _kind(kind: Any) -> str:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return "part"
    if origin is Literal or (isinstance(kind, type) and issubclass(kind, StrEnum)):
        return ", ".join(map(str, inner or kind))
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_kind(one) for one in inner if one is not type(None))
    if origin is Annotated:
        return _kind(inner[0])
    if origin is tuple:
        return f"list of {_kind(inner[0])}"
    return KINDS[origin or kind]


def _default(place: str, name: str, field: FieldInfo) -> str:
    group = "endpoint" if place == "endpoints.NAME" else place.rpartition(".")[2]
    if field.is_required():
        return "required"
    if group in PLATFORM or f"{group}.{name}" in COMPUTED:
        value = COMPUTED.get(f"{group}.{name}", PLATFORM.get(group, {}).get(name))
    else:
        value = field.get_default(call_default_factory=True)
    match value:
        case timedelta():
            value = duration_text(value)
        case tuple():
            value = ", ".join(map(str, value))
        case bool():
            value = str(value).lower()
    return "" if value is None or value in ("", {}) else f"`{value}`"


if __name__ == "__main__":
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(before + BEGIN + key_tables(page) + END + rest.partition(END)[2])
