"""The parts of a slice that was cut by a second dimension, held against what the slice held.

Windows tile by construction; values and prefixes that a pack lists need not name everything. When
the last part of such a family has succeeded, all of them together must hold what was measured.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.ledger.db import read_json
from patra_ingest.model.lineage import SliceId


@dataclass(frozen=True)
class Shortfall:
    """A family that holds less than the slice it was cut from."""

    parent: SliceId
    parts: int
    measured: int
    landed: int


_PARENT = text("SELECT parent_slice_id FROM ing_plan_slice WHERE id = :id")
_CHILDREN = text("""
    SELECT id, status_code, slice_spec FROM ing_plan_slice WHERE parent_slice_id = :id ORDER BY id
""")
_SPEC = text("SELECT slice_spec FROM ing_plan_slice WHERE id = :id")
_MEASURED = text("SELECT density FROM ing_reslice_request WHERE slice_id = :id ORDER BY id DESC")
_PROOF = text("""
    SELECT r.certificate FROM ing_task_run r JOIN ing_task t ON t.id = r.task_id
     WHERE t.slice_id = :id AND r.status_code = 'SUCCEEDED' ORDER BY r.id DESC
""")


def find_shortfall(tx: Connection, slice_id: SliceId, tolerance: float) -> Shortfall | None:
    """Return the first family above a succeeded slice that is complete and holds too little."""
    for parent in _above(tx, slice_id):
        measured = _measured(tx, parent)
        children = tx.execute(_CHILDREN, {"id": parent}).all()
        if measured is None or not _is_split(tx, parent, children[0].slice_spec):
            return None
        landed = [_landed(tx, child) for child in children]
        if any(part is None for part in landed):
            return None  # whoever ends last will look again
        total = sum(part for part in landed if part is not None)
        if measured - total > floor(tolerance * measured):
            return Shortfall(SliceId(parent), len(children), measured, total)
    return None


def _above(tx: Connection, slice_id: int) -> Iterator[int]:
    parent = tx.execute(_PARENT, {"id": slice_id}).scalar()
    while parent is not None:
        yield parent
        parent = tx.execute(_PARENT, {"id": parent}).scalar()


def _is_split(tx: Connection, parent: int, child_spec: Any) -> bool:
    """Return whether children were cut by a second dimension, and not by time, pages or ids."""
    own = read_json(tx.execute(_SPEC, {"id": parent}).scalar_one())
    return len(read_json(child_spec).get("split", ())) > len(own.get("split", ()))


def _measured(tx: Connection, parent: int) -> int | None:
    density = tx.execute(_MEASURED, {"id": parent}).scalars().first()
    found: int | None = (read_json(density) or {}).get("total") if density else None
    return found


def _landed(tx: Connection, child: Any) -> int | None:
    """Return what a slice, or its own parts, have brought; None while that is not all."""
    if child.status_code == "SUCCEEDED":
        proof = read_json(tx.execute(_PROOF, {"id": child.id}).scalars().first()) or {}
        found = proof.get("found")
        return int(proof["landed"] if found is None else found) if "landed" in proof else None
    below = tx.execute(_CHILDREN, {"id": child.id}).all()
    parts = [_landed(tx, one) for one in below]
    if not parts or any(part is None for part in parts):
        return None
    return sum(part for part in parts if part is not None)
