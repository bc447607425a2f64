"""What shapes a record: the same item, read by two specs of one shape, is the same record."""

from patra_ingest.model.keys import digest
from patra_ingest.spec.snapshot import CallSpec, SpecSnapshot

_SHAPING = {"response", "fields", "changed"}


def record_shape(spec: SpecSnapshot) -> str:
    """Return the identity of how a spec reads records; speed, paging and window are no part of it.

    Where a search only finds ids, its detail yields the records: so a HARVEST in two phases and
    the UPDATE of its detail endpoint have one shape.
    """
    yielding: CallSpec = spec.detail or spec
    return digest({"kind": "record-shape", **yielding.model_dump(mode="json", include=_SHAPING)})
