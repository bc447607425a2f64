"""Reading and compiling one endpoint: queries and milliseconds, with one source and with 500."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import event

from bench.figures import medians_in_turn, verdict
from bench.ledgers import add_copies, builtin, empty_registry, fill, mysql_ledger, sqlite_ledger
from patra_ingest.ledger.db import Db
from patra_ingest.model.codes import Operation
from patra_ingest.registry.code_book import CodeBook, read_code_book
from patra_ingest.registry.read import read_declaration
from patra_ingest.spec.compile import compile_spec
from patra_ingest.spec.declaration import Declaration, Overrides

MANY = 500
REPEATS = 21
PROCESSES = 3
MAX_QUERIES = 8
MAX_MS = 20.0
ENDPOINTS = (("crossref", "works"), ("pubmed", "new"), ("epmc", "search"))

Endpoint = tuple[str, str]
OpenLedger = Callable[[], AbstractContextManager[Db]]
Figures = Mapping[int, float]  # by the number of sources in the Registry


@dataclass(frozen=True)
class Case:
    """One endpoint in one ledger."""

    endpoint: Endpoint
    sources: int
    db: Db
    at: datetime
    codes: CodeBook

    def read(self, codes: CodeBook | None) -> Declaration:
        """Read the declaration as the planner does; without `codes` the dictionary is asked."""
        with self.db.read() as tx:
            return read_declaration(tx, *self.endpoint, Operation.HARVEST, self.at, codes)

    def count_queries(self, codes: CodeBook | None) -> int:
        """Return how many statements one reading sends."""
        sent: list[str] = []
        with self.db.read() as tx:
            event.listen(tx, "before_cursor_execute", lambda *sending: sent.append(sending[2]))
            read_declaration(tx, *self.endpoint, Operation.HARVEST, self.at, codes)
        return len(sent)


def measure_registry(folder: Path, mysql_server: str) -> None:
    """Print queries and times on SQLite, and on MySQL when a server is given."""
    _measure("SQLite", lambda: sqlite_ledger(folder), is_first_wanted=True)
    if mysql_server:
        _measure("MySQL", lambda: mysql_ledger(mysql_server), is_first_wanted=False)
    else:
        print("\nRegistry on MySQL: not measured, PATRA_TEST_MYSQL_URL is not set")


def _measure(engine: str, open_ledger: OpenLedger, is_first_wanted: bool) -> None:
    packs = {code: builtin(code) for code, _ in ENDPOINTS}
    with open_ledger() as small, open_ledger() as large:
        at = fill(large, packs.values())
        began = time.perf_counter()
        add_copies(large, list(packs.values()), MANY - len(packs))
        made = time.perf_counter() - began
        print(
            f"\nRegistry on {engine}, medians of {REPEATS}; copies of sources made in {made:.1f} s"
        )
        print(f"{'':45}{'1 source':>10}{f'{MANY} sources':>13}")
        for endpoint in ENDPOINTS:
            print("/".join(endpoint))
            empty_registry(small)
            alone = _case(endpoint, 1, small, fill(small, [packs[endpoint[0]]]))
            among_many = _case(endpoint, MANY, large, at)
            _say_queries([alone, among_many])
            _say_times([alone, among_many])
            if is_first_wanted:
                _say_first(among_many)


def _case(endpoint: Endpoint, sources: int, db: Db, at: datetime) -> Case:
    with db.read() as tx:
        return Case(endpoint, sources, db, at, read_code_book(tx))


def _say_queries(cases: list[Case]) -> None:
    asked = {case.sources: case.count_queries(None) for case in cases}
    remembered = {case.sources: case.count_queries(case.codes) for case in cases}
    for what, counts in (("queries", asked), ("queries, dictionary remembered", remembered)):
        is_met = max(counts.values()) <= MAX_QUERIES
        _say(what, counts, ".0f", verdict(f"≤ {MAX_QUERIES}", is_met))


def _say_times(cases: list[Case]) -> None:
    actions: dict[tuple[str, int], Callable[[], object]] = {}
    for case in cases:
        actions.update({(what, case.sources): act for what, act in _actions(case).items()})
    taken = medians_in_turn(actions, REPEATS)
    for what in dict.fromkeys(what for what, _ in taken):
        times = {case.sources: taken[what, case.sources] for case in cases}
        _say(f"{what}, ms", times, ".2f", _judged(what, times))


def _actions(case: Case) -> Mapping[str, Callable[[], object]]:
    declaration = case.read(case.codes)

    def forget_and_compile() -> None:
        _forget()
        compile_spec(declaration, Overrides())

    return {
        "read": lambda: case.read(None),
        "read, dictionary remembered": lambda: case.read(case.codes),
        "compile": lambda: compile_spec(declaration, Overrides()),
        "compile, its paths never seen": forget_and_compile,
        "read and compile": lambda: compile_spec(case.read(None), Overrides()),
    }


def _forget() -> None:
    """Empty what the expression modules remember: compiled paths, values, templates, patterns."""
    modules = [
        module for name, module in sys.modules.items() if name.startswith("patra_ingest.expr")
    ]
    for module in modules:
        for member in vars(module).values():
            if hasattr(member, "cache_clear"):
                member.cache_clear()


def _judged(what: str, times: Figures) -> str:
    if "compile" in what:
        return verdict(f"< {MAX_MS:.0f} ms", max(times.values()) < MAX_MS)
    return f"{times[MANY] / times[1]:.2f} × with {MANY} sources"


def _say_first(case: Case) -> None:
    url = case.db.engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "bench.first_compile", url, *case.endpoint]
    times = [
        float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(PROCESSES)
    ]
    first = {case.sources: statistics.median(times)}
    _say("compile, first of a process, ms", first, ".2f", _judged("compile", first))


def _say(what: str, figures: Figures, form: str, judged: str) -> None:
    shown = [f"{figures[size]:{form}}" if size in figures else "" for size in (1, MANY)]
    print(f"  {what:<43}{shown[0]:>10}{shown[1]:>13}   {judged}")
