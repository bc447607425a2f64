"""What a slice is made of: pure, so that the same trigger makes the same slices."""

from datetime import timedelta

from patra_ingest.model import keys
from patra_ingest.model.bounds import Bounds
from patra_ingest.model.slices import NewSlice
from patra_ingest.spec.localize import localize, reading_of
from patra_ingest.spec.slice_spec import Expected, slice_spec
from patra_ingest.spec.snapshot import SpecSnapshot


class Derivation:
    """Makes the slices of one spec; what all of them share is worked out once."""

    def __init__(self, spec: SpecSnapshot, priority: int | None = None) -> None:
        self._spec = spec
        self._reading = reading_of(spec)
        self._priority = priority or spec.planning.priority_of(spec.operation)

    def slice(
        self,
        no: int,
        bounds: Bounds,
        expected: Expected | None = None,
        lookback: timedelta = timedelta(0),
    ) -> NewSlice:
        """Return the slice of a boundary: its slice_spec, its localized spec, and its signature."""
        spec = self._spec
        written = slice_spec(spec, bounds, self._priority, expected, lookback)
        localized = localize(self._reading, written)
        expr_hash = keys.expr_hash(localized)
        signature = keys.slice_signature(
            provenance=spec.provenance,
            endpoint=spec.endpoint,
            operation=spec.operation,
            expr_hash=expr_hash,
            slice_spec=written,
        )
        return NewSlice(no, bounds.window, signature, written, expr_hash, localized)
