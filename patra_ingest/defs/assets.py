"""The assets an auditor walks: a source's API, its plans, its records, its cursors.

They are observations of what the ledger did: no asset computes anything. Built from the packs that
come with us, without opening the ledger; a source that only the Registry knows appears with its
first materialization.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import cache

import dagster as dg

from patra_ingest.defs.runs import LOCATION
from patra_ingest.model.codes import Operation
from patra_ingest.model.window import parse_instant
from patra_ingest.packs import builtin_packs
from patra_ingest.registry.pack import EndpointPart, Pack, read_pack
from patra_ingest.transport.redact import redact_url
from patra_ingest.views.health_plan import FIRST_DAY


def upstream_key(provenance: str) -> dg.AssetKey:
    """Return the asset that stands for the source itself."""
    return dg.AssetKey(["upstream", provenance.lower()])


def plans_key(provenance: str, endpoint: str) -> dg.AssetKey:
    """Return the asset of what was decided to be asked of an endpoint."""
    return _key("plans", provenance, endpoint)


def records_key(provenance: str, endpoint: str) -> dg.AssetKey:
    """Return the asset of an endpoint's records, by day of the source's time."""
    return _key("records", provenance, endpoint)


def cursors_key(provenance: str, endpoint: str) -> dg.AssetKey:
    """Return the asset of how far an endpoint has come."""
    return _key("cursors", provenance, endpoint)


def quarantine_key(provenance: str, endpoint: str) -> dg.AssetKey:
    """Return the asset of an endpoint's items that could not be read."""
    return _key("quarantine", provenance, endpoint)


def _key(kind: str, provenance: str, endpoint: str) -> dg.AssetKey:
    # MySQL's usual collation takes keys that differ in case for one.
    return dg.AssetKey([kind, provenance.lower(), endpoint.lower()])


@dataclass(frozen=True)
class Place:
    """An endpoint of a built-in pack that is planned, and so has assets and checks."""

    provenance: str
    endpoint: str


@cache
def builtin_sources() -> list[Pack]:
    """Return the packs that come with us, read once."""
    return [read_pack(path) for path in builtin_packs()]


def places_of(packs: list[Pack]) -> list[Place]:
    """Return the endpoints that are planned; the others serve them, their records are theirs."""
    return [
        Place(pack.provenance.code, name)
        for pack in packs
        for name, endpoint in pack.endpoints.items()
        if endpoint.operations.keys() & {Operation.HARVEST, Operation.BACKFILL}
    ]


def assets_of(packs: list[Pack]) -> list[dg.AssetSpec]:
    """Return the assets of these packs, API → plans → records → cursors, quarantine beside."""
    found = [_upstream(pack) for pack in packs]
    for pack in packs:
        # A source that cannot be searched keeps what it was asked for by id.
        bringing = {place.endpoint for place in places_of([pack])} or set(pack.endpoints)
        for name in bringing:
            found.extend(_endpoint_assets(pack, name, pack.endpoints[name]))
    return found


def _upstream(pack: Pack) -> dg.AssetSpec:
    source = pack.provenance
    return dg.AssetSpec(
        upstream_key(source.code),
        group_name="upstream",
        kinds={"api"},
        tags={"patra/source": source.code},
        description=f"{source.name}: the source itself, outside of our reach.",
        metadata={"base_url": dg.MetadataValue.url(redact_url(source.base_url))},
    )


def _endpoint_assets(pack: Pack, name: str, endpoint: EndpointPart) -> Iterator[dg.AssetSpec]:
    code = pack.provenance.code
    own = Place(code, name)
    of = f"{pack.provenance.name}, endpoint {name}"
    where = f"where `provenance_code = '{code}'` and `endpoint_name = '{name}'`"
    yield _asset(
        own,
        plans_key(code, name),
        upstream_key(code),
        f"What was asked of {of}: one materialization per plan.\n\n"
        f"In the ledger: `ing_plan`, `ing_plan_slice` {where}.",
    )
    yield _asset(
        own,
        records_key(code, name),
        plans_key(code, name),
        f"Records of {of}. A day is there once every part of it was harvested with its proof.\n\n"
        f"Launch `ingest_job` to fill it. In the ledger: `ing_record` {where}.",
        _days(pack, endpoint),
        "table",
    )
    yield _asset(
        own,
        cursors_key(code, name),
        records_key(code, name),
        f"How far we have come with {of}.\n\nIn the ledger: `ing_cursor`,"
        f" `ing_cursor_event` {where}; `patra cursor timeline {code}`.",
    )
    yield _asset(
        own,
        quarantine_key(code, name),
        plans_key(code, name),
        f"Items of {of} that could not be read, each with its reason.\n\n"
        f"In the ledger: `ing_quarantine` {where}.",
        None,
        "table",
    )


def _asset(
    own: Place,
    key: dg.AssetKey,
    above: dg.AssetKey,
    description: str,
    days: dg.DailyPartitionsDefinition | None = None,
    *kinds: str,
) -> dg.AssetSpec:
    """Return one asset of an endpoint.

    In the lineage a node shows the endpoint only: the source is told as one of its kinds. The first
    line of a description is plain, because the catalog shows its Markdown as it is written.
    """
    return dg.AssetSpec(
        key,
        deps=[above],
        group_name=key.path[0],
        kinds={own.provenance, *kinds},
        tags={"patra/source": own.provenance, "patra/endpoint": own.endpoint},
        partitions_def=days,
        description=description,
        metadata={"filled_by": dg.MetadataValue.job("ingest_job", LOCATION)},
    )


def _days(pack: Pack, endpoint: EndpointPart) -> dg.DailyPartitionsDefinition:
    parts = (endpoint.planning, pack.planning)
    said = [part.earliest for part in parts if part is not None and part.earliest is not None]
    first = parse_instant(said[0]).date() if said else FIRST_DAY
    return dg.DailyPartitionsDefinition(datetime.combine(first, time(), UTC), timezone="UTC")
