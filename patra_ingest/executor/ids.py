"""A slice of ids: how what came is held against what was asked for."""

from collections.abc import Sequence
from dataclasses import replace

from patra_ingest.executor.mapping import Mapped
from patra_ingest.expr.value import compile_value
from patra_ingest.model.records import BadItem
from patra_ingest.spec.snapshot import SpecSnapshot
from patra_ingest.transport.redact import redact_text


def find_unanswered(asked: Sequence[str], items: Sequence[object], spec: SpecSnapshot) -> list[str]:
    """Return the ids of a request that no item of its answer has."""
    values = compile_value(spec.response.id).column(list(items))
    found = {str(value).strip() for value in values if isinstance(value, str | int)}
    return [one for one in asked if one not in found]


def hold_against(asked: Sequence[str], mapped: Mapped) -> Mapped:
    """Put every record that nobody asked for among the bad items: it may be another one's."""
    wanted = set(asked)
    foreign = [record for record in mapped.records if record.provider_id not in wanted]
    if not foreign:
        return mapped
    number = len(mapped.records) + len(mapped.bad)
    strange = [
        BadItem(number + n, one.provider_id, "id", "nobody asked for it", redact_text(one.payload))
        for n, one in enumerate(foreign, start=1)
    ]
    kept = [record for record in mapped.records if record.provider_id in wanted]
    return replace(mapped, records=kept, bad=[*mapped.bad, *strange])
