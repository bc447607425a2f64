"""The documentation, as far as a machine can check it."""

import re
import shlex
from enum import StrEnum
from pathlib import Path

import pytest
import typer

import patra_ingest
from patra_ingest.cli.app import app
from patra_ingest.executor.attempt import TaskEnd
from patra_ingest.executor.certificate import Verdict
from patra_ingest.expr.functions import FUNCTIONS
from patra_ingest.expr.value import VALUE_CALLS
from patra_ingest.model import codes
from patra_ingest.model.lifecycle import MACHINES, mermaid
from patra_ingest.model.records import ChangeRule
from patra_ingest.settings import Settings
from patra_ingest.spec.common_shape import COMMON_FIELDS
from patra_ingest.spec.subject import VARIABLES
from patra_ingest.spec.words import Action, Downgrade, Meaning, PagingType, StopRule

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "patra_ingest"
README = ROOT / "README.md"
PAGES = [README, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
PACKAGES = sorted(init.parent.name for init in PACKAGE.glob("*/__init__.py"))

STATUSES = [enum for name, enum in vars(codes).items() if name.endswith("Status")]
MET_BY_PEOPLE = [
    *(codes.Operation, codes.SliceStrategy, codes.NamespaceScope, codes.HoldReason),
    *(codes.CursorType, codes.CursorDirection, codes.CursorReason, codes.QuarantineKind),
    *(codes.Scheduler, codes.TriggerType, StopRule, Verdict, ChangeRule, TaskEnd),
    Downgrade,
]


def relative(path):
    return str(path.relative_to(ROOT))


def sections(page):
    """Return the text under each heading of a page."""
    parts = re.split(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def table(text):
    """Return the cells of every row below a table's head."""
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def leaf_commands(command=None, words=("patra",)):
    """Return every command of the command line by its full name."""
    command = command or typer.main.get_command(app)
    children = getattr(command, "commands", None)
    if not children:
        return {" ".join(words): command}
    found = {}
    for name, child in children.items():
        found |= leaf_commands(child, (*words, name))
    return found


COMMANDS = leaf_commands()


def written_commands():
    """Return every use of the command in the documentation, as (page, words)."""
    for page in PAGES:
        text = page.read_text()
        spans = re.findall(r"`([^`\n]+)`", text)
        blocks = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
        for span in [*spans, *blocks.splitlines()]:
            if re.match(r"(\$ )?(\.venv/bin/)?patra [a-z]", span):
                yield page, re.split(r"\s{2,}", span.removeprefix("$ "))[0]


def test_the_readme_is_short():
    assert len(README.read_text().splitlines()) < 160


@pytest.mark.parametrize("decision", DECISIONS, ids=relative)
def test_a_decision_fits_on_a_page_and_has_its_three_parts(decision):
    assert len(decision.read_text().splitlines()) <= 40
    assert list(sections(decision))[1:] == ["Context", "Decision", "Consequences"]


def test_the_map_of_the_readme_names_every_package_in_the_packages_own_order():
    mapped = [row[0].strip("`") for row in table(sections(README)["The map"])]
    told = re.findall(r"^(\w+)  +\S", patra_ingest.__doc__ or "", flags=re.MULTILINE)

    assert sorted(mapped) == PACKAGES
    assert sorted(told) == PACKAGES
    assert mapped == told


def test_every_place_the_readme_points_to_is_there():
    rows = table(sections(README)["Where is …?"])

    assert len(rows) >= 12
    for _, places in rows:
        for path, name in re.findall(r"`([\w./]+)`(?: `(\w+)`)?", places):
            target = PACKAGE / path
            assert target.exists(), path
            if name:
                assert re.search(rf"\b{name}\b", target.read_text()), (path, name)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name):
    used = [words for _, words in written_commands()]

    assert any(words.removeprefix(".venv/bin/").startswith(name) for words in used)


def test_every_command_in_the_documentation_can_be_typed():
    for page, words in written_commands():
        typed = shlex.split(words.replace("…", "").removeprefix(".venv/bin/"))
        names = [name for name in COMMANDS if typed[: len(name.split())] == name.split()]
        assert names, f"{relative(page)}: {words}"
        known = {
            option
            for parameter in COMMANDS[names[0]].params
            if parameter.param_type_name == "option"
            for option in parameter.opts
        }
        options = {word for word in typed if word.startswith("--")}
        assert options <= known, f"{relative(page)}: {words}"


@pytest.mark.parametrize("enum", [*STATUSES, *MET_BY_PEOPLE], ids=lambda enum: enum.__name__)
def test_the_glossary_explains_every_code(enum: type[StrEnum]):
    glossary = sections(ROOT / "docs" / "glossary.md")
    [heading] = [head for head in glossary if f"`{enum.__name__}`" in head]
    rows = table(glossary[heading])
    explained = {code for code, meaning in rows if meaning}
    enums = [named for named in [*STATUSES, *MET_BY_PEOPLE] if f"`{named.__name__}`" in heading]

    assert {member.value for member in enum} <= explained
    assert explained == {member.value for named in enums for member in named}


@pytest.mark.parametrize("enum", [*STATUSES, *MET_BY_PEOPLE], ids=lambda enum: enum.__name__)
def test_what_the_glossary_leaves_for_later_is_named_by_no_code(enum: type[StrEnum]):
    glossary = sections(ROOT / "docs" / "glossary.md")
    [heading] = [head for head in glossary if f"`{enum.__name__}`" in head]
    later = {code for code, meaning in table(glossary[heading]) if meaning == "*later*"}
    names = [f"{enum.__name__}.{member.name}" for member in enum if member.value in later]
    named = {
        name
        for module in (ROOT / "patra_ingest").rglob("*.py")
        if "model" not in module.parts
        for name in names
        if name in module.read_text()
    }

    assert not named


@pytest.mark.parametrize(
    "words",
    [
        FUNCTIONS,
        VALUE_CALLS,
        VARIABLES,
        Action,
        ChangeRule,
        Downgrade,
        Meaning,
        PagingType,
        StopRule,
    ],
    ids=lambda words: getattr(words, "__name__", f"{len(words)} words"),
)
def test_the_page_on_packs_speaks_of_every_word(words):
    taught = (ROOT / "docs" / "sources.md").read_text().partition("## Every key")[0]

    assert [
        word for word in words if not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", taught)
    ] == []


def test_the_page_on_packs_lists_the_common_record():
    rows = table(sections(ROOT / "docs" / "sources.md")["The common record"])

    assert [(name.strip("`"), meaning, written) for name, meaning, written in rows] == [
        (name, field.meaning, field.written) for name, field in COMMON_FIELDS.items()
    ]


@pytest.mark.parametrize("kind", MACHINES, ids=lambda kind: kind.__name__)
def test_the_walkthrough_draws_every_lifecycle_as_it_is(kind):
    assert f"```mermaid\n{mermaid(kind)}```" in (ROOT / "docs" / "walkthrough.md").read_text()


def test_the_readme_lists_every_setting_with_its_default():
    listed = {row[0].strip("`"): row[1].strip("`") for row in table(sections(README)["Settings"])}
    defaults = {f"PATRA_{name.upper()}": f.default for name, f in Settings.model_fields.items()}

    assert listed == {
        name: f"{value:g}" if isinstance(value, float) else str(value) or "(empty)"
        for name, value in defaults.items()
    }


def test_every_variable_in_the_documentation_is_read_somewhere():
    readers = [PACKAGE / "settings.py", *Path(__file__).parent.rglob("conftest.py")]
    readers += (ROOT / "bench").glob("*.py")
    known = {f"PATRA_{name.upper()}" for name in Settings.model_fields}
    known |= set(re.findall(r"PATRA_[A-Z_]+", "".join(file.read_text() for file in readers)))

    for page in PAGES:
        assert set(re.findall(r"PATRA_[A-Z_]+", page.read_text())) <= known, relative(page)


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_link_and_image_leads_somewhere(page):
    targets = re.findall(r"\]\(([^)\s]+)\)", page.read_text())

    for target in targets:
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target.partition("#")[0]).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_table_a_page_speaks_of_is_in_the_schema(page):
    ddl = "".join(file.read_text() for file in (ROOT / "sql" / "sqlite").glob("*.sql"))
    tables = set(re.findall(r"CREATE TABLE (\w+)", ddl))
    named = set(re.findall(r"\b(?:ing|reg|sys_dict)_[a-z_]+[a-z]\b", page.read_text()))

    assert named <= tables
