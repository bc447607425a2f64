"""Two stored snapshots side by side: which of their hashes differ, and by which parts."""

from dataclasses import dataclass

from sqlalchemy import Connection, text

from patra_ingest.errors import UnknownName
from patra_ingest.ledger.db import read_json
from patra_ingest.spec.differences import Difference, find_differences

_HASHES = ("spec_fingerprint", "expr_proto_hash", "provenance_config_hash")


@dataclass(frozen=True)
class Comparison:
    """Whether each hash is the same, and every path at which the snapshots differ."""

    hashes: dict[str, bool]
    differences: list[Difference]


def compare_snapshots(tx: Connection, first: int, second: int) -> Comparison:
    """Compare what two plans were made of; UnknownName for a plan that is not there."""
    query = text(
        f"SELECT id, spec_snapshot, {', '.join(_HASHES)} FROM ing_plan WHERE id IN (:a, :b)"
    )
    rows = {row["id"]: row for row in tx.execute(query, {"a": first, "b": second}).mappings()}
    for plan in (first, second):
        if plan not in rows:
            raise UnknownName(f"There is no plan {plan}.", "See `patra status` for the latest.")
    old, new = rows[first], rows[second]
    return Comparison(
        {name: old[name] == new[name] for name in _HASHES},
        find_differences(read_json(old["spec_snapshot"]), read_json(new["spec_snapshot"])),
    )
