"""The neutral query language: `{"and": [{"term": {…}}, {"range": {…}}, {"not": {…}}, …]}`.

Reading is bounded in depth, nodes and text, so whatever a person or a program sends ends in a
small tree or in a refusal that lists every problem. A value is text; nothing in it has a meaning.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from patra_ingest.expr.query_bounds import plain_text
from patra_ingest.expr.query_issues import Code, QueryIssue, QueryRefused, shown, suggest
from patra_ingest.model.codes import ExprOp, MatchType

MAX_DEPTH = 16
MAX_NODES = 500
MAX_CHARS = 65_536

_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True)
class Atom:
    """One condition on one field; `values` are the term, the items, or the two bounds."""

    op: ExprOp
    path: str
    field: str
    values: tuple[str | None, ...] = ()
    match: MatchType | None = None
    kind: str | None = None
    case_sensitive: bool = False


@dataclass(frozen=True)
class And:
    """All of them."""

    children: tuple["Node", ...]
    path: str = field(default="", compare=False)


@dataclass(frozen=True)
class Or:
    """At least one of them."""

    children: tuple["Node", ...]
    path: str = field(default="", compare=False)


@dataclass(frozen=True)
class Not:
    """Everything but this."""

    child: "Node"
    path: str


@dataclass(frozen=True)
class Const:
    """Everything, or nothing."""

    value: bool


Node = Atom | And | Or | Not | Const


def parse_query(source: str | Mapping[str, object]) -> Node:
    """Read a query from JSON text or plain values; raise QueryRefused with every problem."""
    reader = _Reader()
    node = reader.node(_loaded(source), "", 1)
    if reader.issues:
        raise QueryRefused(reader.issues)
    return node


def _loaded(source: str | Mapping[str, object]) -> object:
    if not isinstance(source, str):
        return source
    if len(source) > MAX_CHARS:
        raise QueryRefused([_too_long()])
    try:
        return json.loads(source, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        issue = QueryIssue(Code.QUERY_SHAPE, "", f"is no JSON: {error}", "write one JSON object")
        raise QueryRefused([issue]) from error


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError(f"a key stands twice in the object with {shown(sorted(read))}")
    return read


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON value")


def _too_long() -> QueryIssue:
    message = f"is longer than {MAX_CHARS} characters"
    return QueryIssue(Code.QUERY_LIMIT, "", message, "ask in several queries")


def _joined(path: str, part: str) -> str:
    return f"{path}.{part}" if path else part


@dataclass
class _Reader:
    """Reads one query; counts what it has seen and collects what it cannot read."""

    issues: list[QueryIssue] = field(default_factory=list)
    nodes: int = 0
    chars: int = 0

    def node(self, raw: object, path: str, depth: int) -> Node:
        self.nodes += 1
        if depth > MAX_DEPTH:
            return self._refuse(path, f"is nested deeper than {MAX_DEPTH}", Code.QUERY_LIMIT)
        if self.nodes > MAX_NODES:
            return self._refuse_once(f"has more than {MAX_NODES} nodes")
        if not isinstance(raw, Mapping) or len(raw) != 1:
            return self._refuse(path, f"{shown(raw)} is no node with one key such as term")
        name, body = next(iter(raw.items()))
        place = _joined(path, str(name)[:60])
        if name in ("and", "or"):
            return self._group(str(name), body, place, depth)
        if name == "not":
            child = self.node(body, place, depth + 1)
            return child.child if isinstance(child, Not) else Not(child, place)
        if name == "const":
            return Const(self._flag(body, place))
        return self._atom(name, body, place)

    def _group(self, name: str, body: object, path: str, depth: int) -> Node:
        if not isinstance(body, list | tuple) or not body:
            return self._refuse(path, "needs a list with at least one node")
        children = []
        for index, child in enumerate(body):
            if self.nodes > MAX_NODES:
                break
            children.append(self.node(child, f"{path}[{index}]", depth + 1))
        return And(tuple(children), path) if name == "and" else Or(tuple(children), path)

    def _atom(self, name: object, body: object, path: str) -> Node:
        read = _ATOMS.get(name) if isinstance(name, str) else None
        if read is None:
            known = {*_ATOMS, "and", "or", "not", "const"}
            return self._refuse(path, "is no node", remedy=suggest(str(name)[:60], known))
        keys, make = read
        if not isinstance(body, Mapping):
            return self._refuse(path, f"needs an object with {', '.join(keys)}")
        for key in body:
            if key not in keys:
                self._refuse(
                    _joined(path, str(key)[:60]), "is no key", remedy=suggest(str(key)[:60], keys)
                )
        return make(self, body, path)

    def _refuse(
        self, path: str, message: str, code: Code = Code.QUERY_SHAPE, remedy: str = ""
    ) -> Node:
        remedy = remedy or 'write for example {"term": {"field": …, "value": …}}'
        self.issues.append(QueryIssue(code, path, message, remedy))
        return Const(True)

    def _refuse_once(self, message: str) -> Node:
        if not any(issue.message == message for issue in self.issues):
            self._refuse("", message, Code.QUERY_LIMIT, "ask in several queries")
        return Const(True)

    def _flag(self, value: object, path: str) -> bool:
        if not isinstance(value, bool):
            self._refuse(path, f"{shown(value)} is neither true nor false")
        return value is True

    def text(self, value: object, path: str) -> str:
        self.chars += 1  # whatever it is: a list of nothings ends too
        try:
            read = plain_text(value)
        except ValueError as error:
            self._refuse(path, str(error))
            return ""
        if not isinstance(read, str):
            self._refuse(path, f"{shown(value)} is no text")
            return ""
        if _LONE_SURROGATE.search(read):
            self._refuse(path, "holds half a character", remedy="send the text as UTF-8")
        self.chars += len(read)
        if self.chars > MAX_CHARS:
            self._refuse_once(f"is longer than {MAX_CHARS} characters")
        return read

    def bound(self, body: Mapping[str, object], key: str, path: str) -> str | None:
        value = body.get(key)
        return None if value is None else self.text(value, _joined(path, key))

    def values(self, body: Mapping[str, object], path: str) -> tuple[str, ...]:
        listed = body.get("values")
        if not isinstance(listed, list | tuple):
            self._refuse(_joined(path, "values"), f"{shown(listed)} is no list")
            return ()
        read = []
        for index, value in enumerate(listed):
            if self.chars > MAX_CHARS:
                break
            read.append(self.text(value, f"{path}.values[{index}]"))
        return tuple(read)

    def match(self, body: Mapping[str, object], path: str) -> MatchType:
        asked = body.get("match", MatchType.PHRASE)
        if isinstance(asked, str) and asked in list(MatchType):
            return MatchType(asked)
        remedy = suggest(str(asked)[:60], MatchType)
        self._refuse(_joined(path, "match"), f"{shown(asked)} is no match", remedy=remedy)
        return MatchType.PHRASE

    def case(self, body: Mapping[str, object], path: str) -> bool:
        return self._flag(body.get("case_sensitive", False), _joined(path, "case_sensitive"))

    def named(self, body: Mapping[str, object], key: str, path: str) -> str:
        return self.text(body.get(key), _joined(path, key))


def _term(reader: _Reader, body: Mapping[str, object], path: str) -> Atom:
    name, value = reader.named(body, "field", path), reader.named(body, "value", path)
    match, case = reader.match(body, path), reader.case(body, path)
    return Atom(ExprOp.TERM, path, name, (value,), match, case_sensitive=case)


def _in(reader: _Reader, body: Mapping[str, object], path: str) -> Atom:
    name, values = reader.named(body, "field", path), reader.values(body, path)
    return Atom(ExprOp.IN, path, name, values, case_sensitive=reader.case(body, path))


def _range(reader: _Reader, body: Mapping[str, object], path: str) -> Atom:
    bounds = (reader.bound(body, "from", path), reader.bound(body, "to", path))
    return Atom(ExprOp.RANGE, path, reader.named(body, "field", path), bounds)


def _exists(reader: _Reader, body: Mapping[str, object], path: str) -> Atom:
    return Atom(ExprOp.EXISTS, path, reader.named(body, "field", path))


def _token(reader: _Reader, body: Mapping[str, object], path: str) -> Atom:
    name, value = reader.named(body, "field", path), reader.named(body, "value", path)
    kind = reader.named(body, "kind", path).lower()
    return Atom(ExprOp.TOKEN, path, name, (value,), kind=kind)


_Make = Callable[[_Reader, Mapping[str, object], str], Atom]
_ATOMS: Mapping[str, tuple[tuple[str, ...], _Make]] = {
    "term": (("field", "value", "match", "case_sensitive"), _term),
    "in": (("field", "values", "case_sensitive"), _in),
    "range": (("field", "from", "to"), _range),
    "exists": (("field",), _exists),
    "token": (("field", "kind", "value"), _token),
}
