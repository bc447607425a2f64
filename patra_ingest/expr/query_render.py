"""From a neutral query and a query book to what one provenance is asked, in its own words.

The order is: capability check, render rules, parameter names, transforms. By default everything
that cannot be said is refused, all at once. A lenient caller lets a clause go instead, with a
warning, and only where that widens the question: an OR or a NOT goes whole, so no record that was
asked for is lost.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from patra_ingest.expr.query import And, Atom, Const, Node, Not, Or
from patra_ingest.expr.query_atoms import as_piece, can_stand, clauses_of, find_rule, write_atom
from patra_ingest.expr.query_book import rule_problems
from patra_ingest.expr.query_check import check_query
from patra_ingest.expr.query_compose import Piece, all_of, any_of, atoms, negative, simplified
from patra_ingest.expr.query_compose import positive as alone
from patra_ingest.expr.query_issues import Code, QueryIssue, QueryRefused
from patra_ingest.expr.query_params import map_params, missing, unsendable
from patra_ingest.expr.query_rules import QUERY_KEY, QueryBook, RenderRule, Syntax
from patra_ingest.model.codes import EmitType, InboundLocation

_NOTHING: Mapping[str, str] = {}
_Parts = TypeVar("_Parts")
_How = Callable[[_Parts, Syntax, str | None], Piece]


@dataclass(frozen=True)
class Rendered:
    """What is asked: the boolean text, and every parameter under the provenance's own name."""

    text: str | None
    params: dict[str, str | list[str]]
    warnings: tuple[QueryIssue, ...] = ()
    locations: dict[str, InboundLocation] = field(default_factory=dict)


def render_query(
    query: Node,
    book: QueryBook,
    *,
    given: Mapping[str, str] = _NOTHING,
    taken: Collection[str] = (),
    lenient: bool = False,
) -> Rendered:
    """Say the query in the book's words, or raise QueryRefused with every problem at once.

    `given` are values of our own keys beside the query (limit, …); `taken` are the provenance's
    parameters that are set already.
    """
    writer = _Writer(book, lenient, {key: [value] for key, value in given.items()})
    writer.check(query)
    text = writer.write(simplified(query))
    writer.require_sent(given)
    mapped = map_params(writer.values, book, taken, writer.withheld)
    if writer.issues:  # what was refused may be just what is missing here
        mapped.issues = [i for i in mapped.issues if i.code is not Code.PARAM_REQUIRED]
    if issues := [*writer.issues, *mapped.issues]:
        raise QueryRefused([*issues, *writer.warnings])
    return Rendered(text, mapped.params, tuple(writer.warnings), mapped.locations)


class _Skipped(Exception):
    """A clause was let go; the nearest AND outside any NOT goes on without it."""


@dataclass(frozen=True)
class _Place:
    """Where a node stands: below an OR or a NOT nothing can be a parameter."""

    nested: bool = False
    negated: bool = False


@dataclass
class _Writer:
    """Writes one query; collects values by std key, issues and warnings."""

    book: QueryBook
    lenient: bool
    values: dict[str, list[str]]
    issues: list[QueryIssue] = field(default_factory=list)
    warnings: list[QueryIssue] = field(default_factory=list)
    not_negatable: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)  # atoms that did not pass the check
    withheld: set[str] = field(default_factory=set)  # keys of what was let go: no default there
    has_params: bool = False  # whether a clause of the query is a parameter

    def check(self, query: Node) -> None:
        for issue in check_query(query, self.book):
            if self.lenient and issue.code is Code.NOT_UNSUPPORTED:
                self.not_negatable.add(issue.path)
            else:
                self.issues.append(issue)
        self.refused = {
            atom.path
            for atom in atoms(query)
            if any(f"{issue.path}.".startswith(f"{atom.path}.") for issue in self.issues)
        }

    def write(self, query: Node) -> str | None:
        if query == Const(False):
            self._report(Code.QUERY_NEVER, "", "can match nothing", "ask for something")
        if isinstance(query, Const):
            return None
        try:
            piece = self._node(query, _Place())
            return self._carried(piece) if piece is not None else None
        except _Skipped:
            if not self.has_params:
                message = "nothing is left of it; that would ask for everything"
                self._report(Code.QUERY_EMPTIED, "", message, "correct what the warnings say")
            return None

    def require_sent(self, given: Mapping[str, str]) -> None:
        for key, value in given.items():
            found = self._unsent({key: [value]}, {}, "given")
            if self.lenient and found:  # then no clause of the query has this key either
                self.withheld.add(key)
                del self.values[key]
            kept = self.warnings if self.lenient else self.issues
            kept.extend(found)

    def _unsent(
        self, clauses: Mapping[str, list[str]], earlier: Mapping[str, list[str]], path: str
    ) -> list[QueryIssue]:
        found = list(missing(clauses, self.book, path))
        # Without leniency the mapping refuses these, by key and as errors.
        return found + list(unsendable(clauses, earlier, self.book, path) if self.lenient else ())

    def _carried(self, piece: Piece) -> str:
        text = self._joined("", alone, piece).text
        if found := self._unsent({QUERY_KEY: [text]}, self.values, ""):
            self._let_go((), found)
        limit = self.book.max_query_length
        if limit and len(text) > limit:
            message = f"comes out {len(text)} characters long"
            self._report(Code.QUERY_LEN_MAX, "", message, f"at most {limit}: ask in several")
        self.values.setdefault(QUERY_KEY, []).append(text)
        return text

    def _node(self, node: Node, place: _Place) -> Piece | None:
        match node:
            case And():
                return self._all(node, place)
            case Or(children, path):
                below = _Place(True, place.negated)
                pieces = [self._required(child, below) for child in children]
                return self._joined(path, any_of, pieces)
            case Not(child, path):
                return self._not(child, path, place)
            case Atom():
                return self._atom(node, place, negated=False)
            case Const():
                raise AssertionError("simplified() leaves no constant inside a query")

    def _all(self, node: And, place: _Place) -> Piece | None:
        pieces: list[Piece] = []
        said = 0
        for child in node.children:
            try:
                piece = self._node(child, place)
            except _Skipped:
                if place.negated:  # less inside a NOT would ask for less
                    raise
                continue
            said += 1
            pieces += [piece] if piece is not None else []
        if not said:
            raise _Skipped
        return self._joined(node.path, all_of, pieces) if pieces else None

    def _not(self, child: Node, path: str, place: _Place) -> Piece | None:
        if any(atom.path in self.not_negatable for atom in atoms(child)):
            message = "the provenance cannot be asked this NOT; more will come than was asked for"
            issue = QueryIssue(Code.NOT_SKIPPED, path, message, "filter the records later")
            self._let_go(atoms(child), [issue])
        if isinstance(child, Atom):
            return self._atom(child, place, negated=True)
        return negative(self._required(child, _Place(nested=True, negated=True)))

    def _required(self, node: Node, place: _Place) -> Piece:
        return self._node(node, place) or Piece("")

    def _atom(self, atom: Atom, place: _Place, negated: bool) -> Piece | None:
        if atom.path in self.refused:
            return Piece("")
        rule = find_rule(self.book, atom, negated, place.nested)
        if rule is None:
            said = f"{'NOT ' if negated else ''}{atom.op}{f' {atom.match}' if atom.match else ''}"
            message = f"no rule writes {said} on {atom.field}"
            issue = QueryIssue(Code.RENDER_RULE_MISSING, atom.path, message, "ask otherwise")
            return self._let_go([atom], [issue])
        if not can_stand(rule, negated, place.nested):
            message = f"{atom.field} is a parameter, which no OR or NOT can hold"
            return self._report(Code.PARAMS_NESTED, atom.path, message, "ask in several queries")
        return self._written(atom, rule, negated)

    def _written(self, atom: Atom, rule: RenderRule, negated: bool) -> Piece | None:
        if problems := list(rule_problems(rule, self.book, atom.path)):
            return self._faulty(atom, problems)
        try:
            clauses = write_atom(atom, rule, self.book)
        except QueryRefused as refused:
            self.issues.extend(refused.issues)
            return Piece("")
        if rule.emit is EmitType.QUERY:
            piece = as_piece(atom, rule, clauses[""][0])
            return negative(piece) if negated and not rule.negated else piece
        if found := self._unsent(clauses, self.values, atom.path):
            self._let_go([atom], found)
        self.has_params = True
        for key, values in clauses.items():
            self.values.setdefault(key, []).extend(values)
        return None

    def _faulty(self, atom: Atom, problems: Sequence[QueryIssue]) -> Piece:
        unknown = [issue for issue in problems if issue.code is Code.FN_NOTFOUND]
        if self.lenient and unknown:  # its other problems may come from just that
            warning = replace(unknown[0], code=Code.FN_OR_TRANSFORM_NOTFOUND)
            return self._let_go([atom], [warning])
        self.issues.extend(problems)
        return Piece("")

    def _let_go(self, unsaid: Iterable[Atom], why: Sequence[QueryIssue]) -> Piece:
        if not self.lenient:
            self.issues.extend(why)
            return Piece("")
        self.warnings.extend(why)
        fields = {atom.field for atom in unsaid}
        rules = [rule for rule in self.book.rules if rule.field in fields]
        self.withheld |= {QUERY_KEY}.union(*map(clauses_of, rules))
        raise _Skipped

    def _report(self, code: Code, path: str, message: str, remedy: str) -> Piece:
        self.issues.append(QueryIssue(code, path, message, remedy))
        return Piece("")

    def _joined(self, path: str, how: _How[_Parts], parts: _Parts) -> Piece:
        try:
            return how(parts, self.book.syntax, self.book.everything)
        except ValueError as error:
            remedy = "add what it is taken away from, or give the book its `everything`"
            return self._report(Code.NOT_ALONE, path, str(error), remedy)
