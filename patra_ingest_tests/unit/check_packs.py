"""Valid packs, one wrong thing each, and the whole way they go: read, applied, read back, compiled.

A case changes a valid pack at one place. `refusal` sends it through a real ledger and returns the
problems as a person would read them; the transaction then ends without a trace. `template` is the
migrated ledger of the fixture `sqlite_template`.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from patra_ingest.errors import CompileError
from patra_ingest.ledger.db import Db, open_db
from patra_ingest.model.codes import Operation
from patra_ingest.registry.apply import apply_pack
from patra_ingest.registry.code_book import CodeBook, read_code_book
from patra_ingest.registry.dictionary import load_dictionary
from patra_ingest.registry.pack import parse_pack
from patra_ingest.registry.pack_file import PackText
from patra_ingest.registry.read import read_declaration
from patra_ingest.spec import checks
from patra_ingest.spec.checks import Check
from patra_ingest.spec.compile import compile_spec
from patra_ingest.spec.declaration import Overrides
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.subject import Subject
from patra_ingest_tests.builders import NOON, an_endpoint, by_token, pack_text

HARVEST, BACKFILL, UPDATE = Operation.HARVEST, Operation.BACKFILL, Operation.UPDATE
GONE = object()  # as a value: takes the key away
_LATER = NOON + timedelta(seconds=1)

Change = Mapping[str, Any]
PackForm = dict[str, Any]


def a_search() -> PackForm:
    """Return a valid pack: `works` is searched by offset, within an inclusive window."""
    pack = pack_text("https://api.example.org")
    del pack["http"]
    return pack


def a_token_walk() -> PackForm:
    """Return a valid pack whose `works` hands out tokens."""
    return {**a_search(), "endpoints": {"works": by_token()}}


def a_pair() -> PackForm:
    """Return a valid pack of two phases: `works` finds ids, `fetch` turns them into records."""
    works = an_endpoint(response={"items": "$.ids", "id": "$"}, detail={"endpoint": "fetch"})
    for key in ("fields", "changed"):
        del works[key]
    fetch = {
        "usage": "DETAIL",
        "operations": ["UPDATE"],
        "request": {"method": "POST", "path": "/fetch", "form": {"id": "${ids|join(',')}"}},
        "paging": {"type": "NONE"},
        "batching": {"ids_per_request": 50},
        "response": {
            "format": "XML",
            "namespaces": {"x": "urn:example"},
            "items": "$.x:set.x:work",
            "id": "$.x:id",
        },
        "changed": "HASH",
        "fields": {"title": "$.x:title"},
    }
    return {**a_search(), "endpoints": {"works": works, "fetch": fetch}}


def with_a_key() -> PackForm:
    """Return a valid pack with a credential `k` that unlocks a higher rate."""
    key = {"type": "API_KEY", "location": "HEADER", "field": "X-Key", "secret": "env:EXAMPLE_KEY"}
    unlocks = {"rate": {"per_second": 2000}}
    return {**a_search(), "auth": {"credentials": {"k": {**key, "unlocks": unlocks}}}}


def with_a_book() -> PackForm:
    """Return a valid pack that can be asked for a title."""
    book = {
        "syntax": "LUCENE",
        "fields": {"title": {"type": "TEXT"}},
        "capabilities": {"title": {"ops": ["TERM"], "matches": ["PHRASE"], "supports_not": False}},
        "rules": [{"field": "title", "op": "TERM", "template": "title:{{quoted}}"}],
        "params": {"query": "q"},
    }
    return {**a_search(), "expressions": book}


VALID = (a_search, a_token_walk, a_pair, with_a_key, with_a_book)


def changed(pack: PackForm, change: Change) -> PackForm:
    """Return the pack with a value put at each dotted place; GONE takes the key away."""
    pack = deepcopy(pack)
    for place, value in change.items():
        *steps, last = place.split(".")
        part = pack
        for step in steps:
            part = part.setdefault(step, {})
        part[last] = value
        if value is GONE:
            del part[last]
    return pack


@dataclass(frozen=True)
class Case:
    """One wrong thing in a valid pack, the check that sees it, and what it must say of it."""

    check: Check
    what: str
    change: Change
    path: str
    reason: str  # a piece of it
    remedy: str  # a piece of it
    pack: Callable[[], PackForm] = a_search
    operation: Operation = HARVEST
    asked: Overrides = field(default_factory=Overrides)
    at_hand: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.check.__name__}: {self.what}"


@dataclass(frozen=True)
class Refusal:
    """The problems of a pack as a person reads them, and the checks that saw any."""

    problems: tuple[str, ...]
    seen_by: frozenset[Check]


def refusal(template: Path, case: Case, known: tuple[Check, ...] = checks.CHECKS) -> Refusal:
    """Send the case's pack the whole way, and return what is wrong with it."""
    form = changed(case.pack(), case.change)
    with _watched(known) as seen_by:
        problems = problems_of(template, form, case.operation, case.asked, case.at_hand)
    return Refusal(problems, frozenset(seen_by))


def problems_of(
    template: Path,
    form: PackForm,
    operation: Operation = HARVEST,
    asked: Overrides | None = None,
    at_hand: frozenset[str] = frozenset(),
    by_hand: str = "",
) -> tuple[str, ...]:
    """Read, apply, read back and compile a pack; return every problem, none if it compiles.

    `by_hand` is SQL that someone ran on the Registry after the pack was applied.
    """
    ledger, codes = _ledger(template)
    with _rolled_back(ledger) as tx:
        apply_pack(tx, parse_pack(PackText("the case", form, {})), NOON)
        if by_hand:
            tx.execute(text(by_hand))
        declaration = read_declaration(tx, "example", "works", operation, _LATER, codes)
        try:
            compile_spec(declaration, asked or Overrides(), at_hand)
        except CompileError as error:
            return error.problems
        return ()


def assert_refused(template: Path, case: Case) -> None:
    """The problem stands at its place with reason and remedy, and nothing else is complained of."""
    found = refusal(template, case)
    places = [problem.partition(": ")[0] for problem in found.problems]
    assert places == [case.path], found.problems
    reason, _, remedy = found.problems[0].rpartition(" (")
    assert case.reason in reason
    assert case.remedy in remedy
    assert case.check in found.seen_by


@contextmanager
def _rolled_back(ledger: Db) -> Iterator[Connection]:
    with ledger.engine.connect() as tx, tx.begin() as transaction:
        yield tx
        transaction.rollback()


@contextmanager
def _watched(known: tuple[Check, ...]) -> Iterator[set[Check]]:
    """Note which checks find something; they run as ever, where they always run."""
    seen_by: set[Check] = set()

    def noting(check: Check) -> Check:
        def look(subject: Subject) -> Iterator[Problem]:
            for problem in check(subject):
                seen_by.add(check)
                yield problem

        return look

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "CHECKS", tuple(map(noting, known)))
        yield seen_by


@cache
def _ledger(template: Path) -> tuple[Db, CodeBook]:
    """Return one ledger with its dictionary for all cases; none leaves a trace in it."""
    copy = template.with_name("checks.db")
    shutil.copyfile(template, copy)
    opened = open_db(f"sqlite:///{copy}")
    with opened.write() as tx:
        load_dictionary(tx)
        return opened, read_code_book(tx)
