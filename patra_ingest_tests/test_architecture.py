"""The shape of the package, as tests."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    path
    for folder in ("patra_ingest", "patra_ingest_tests")
    for path in (ROOT / folder).rglob("*.py")
)


def test_the_import_contracts_hold():
    # In a process of its own: the linter switches off every logger that it finds.
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    linted = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)

    assert linted.returncode == 0, linted.stdout


@pytest.mark.parametrize("module", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_has_something_in_it_and_fits_on_a_few_screens(module):
    lines = module.read_text().splitlines()

    assert 1 <= len(lines) <= 300


@pytest.mark.parametrize("dialect", ["mysql", "sqlite"])
def test_there_is_no_ddl_outside_the_sql_folder(dialect):
    assert list((ROOT / "sql" / dialect).glob("*.sql"))
    for module in (ROOT / "patra_ingest").rglob("*.py"):
        assert "CREATE TABLE" not in module.read_text(), module
