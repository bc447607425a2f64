"""Boolean composition: which clauses are left to say, and how they are put together as text.

A clause that does not hold together by itself is put in parentheses wherever it meets another,
so no reader has to know which operator a source lets go first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from patra_ingest.expr.query import And, Atom, Const, Node, Not, Or
from patra_ingest.expr.query_rules import Syntax

LOOSE = "?"  # joined by something we did not write


@dataclass(frozen=True)
class Piece:
    """Query text; `joint` is what holds its parts together, `is_negative` asks for a NOT before."""

    text: str
    joint: str = ""
    is_negative: bool = False

    def inside(self, joint: str) -> str:
        """Return the text as it may stand between two of `joint`."""
        return self.text if self.joint in ("", joint) else f"({self.text})"


def simplified(node: Node) -> Node:
    """Return the same question without constants, nested groups or groups of one; order is kept."""
    match node:
        case And() | Or():
            return _group(node)
        case Not(child, path):
            inner = simplified(child)
            if isinstance(inner, Const):
                return Const(not inner.value)
            return inner.child if isinstance(inner, Not) else Not(inner, path)
        case _:
            return node


def _group(group: And | Or) -> Node:
    neutral = isinstance(group, And)
    kept: list[Node] = []
    for child in map(simplified, group.children):
        if child == Const(not neutral):
            return child
        if isinstance(child, And | Or) and type(child) is type(group):
            kept.extend(child.children)
        elif child != Const(neutral):
            kept.append(child)
    if len(kept) == 1:
        return kept[0]
    return type(group)(tuple(kept), group.path) if kept else Const(neutral)


def atoms(node: Node) -> list[Atom]:
    """Return every atom of a query, in reading order."""
    match node:
        case And(children) | Or(children):
            return [atom for child in children for atom in atoms(child)]
        case Not(child):
            return atoms(child)
        case Atom():
            return [node]
        case _:
            return []


def all_of(pieces: Sequence[Piece], syntax: Syntax, everything: str | None) -> Piece:
    """Join by AND, what is excluded last; ValueError when there is nothing to exclude it from."""
    excluded = [piece for piece in pieces if piece.is_negative]
    wanted = [piece for piece in pieces if not piece.is_negative]
    if len(wanted) == len(pieces) == 1:
        return wanted[0]
    if not wanted:
        wanted = [_require_everything(everything)]
    text = " AND ".join(piece.inside("AND") for piece in wanted)
    before = " NOT " if syntax is Syntax.PUBMED else " AND NOT "
    text += "".join(before + piece.inside("") for piece in excluded)
    return Piece(text, "AND")


def any_of(pieces: Sequence[Piece], syntax: Syntax, everything: str | None) -> Piece:
    """Join by OR; ValueError when one is negative and nothing says everything."""
    whole = [positive(piece, syntax, everything) for piece in pieces]
    if len(whole) == 1:
        return whole[0]
    return Piece(" OR ".join(piece.inside("OR") for piece in whole), "OR")


def positive(piece: Piece, syntax: Syntax, everything: str | None) -> Piece:
    """Return a piece that can stand alone: what is excluded is taken away from everything."""
    return all_of([piece], syntax, everything) if piece.is_negative else piece


def negative(piece: Piece) -> Piece:
    """Return the piece to be excluded; twice gives it back."""
    return Piece(piece.text, piece.joint, not piece.is_negative)


def _require_everything(everything: str | None) -> Piece:
    if everything is None:
        raise ValueError("a NOT needs something to be taken away from")
    return Piece(everything)
