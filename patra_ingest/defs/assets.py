"""The records of each endpoint as assets: observations of what the ledger did, for the audit."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import dagster as dg

from patra_ingest.model.codes import Operation
from patra_ingest.packs import builtin_packs
from patra_ingest.registry.pack import Pack, read_pack
from patra_ingest.transport.redact import redact_url
from patra_ingest.views.plan_summary import FATES, PlanSummary


def records_key(provenance: str, endpoint: str) -> dg.AssetKey:
    """Return the asset of an endpoint's records."""
    return dg.AssetKey(["records", provenance, endpoint])


def upstream_key(provenance: str) -> dg.AssetKey:
    """Return the asset that stands for the source itself."""
    return dg.AssetKey(["upstream", provenance])


def builtin_assets() -> list[dg.AssetSpec]:
    """Return the assets of the built-in packs; others appear with their first materialization."""
    return [spec for path in builtin_packs() for spec in _pack_assets(read_pack(path))]


def _pack_assets(pack: Pack) -> Iterator[dg.AssetSpec]:
    source = pack.provenance
    tags = {"patra/source": source.code}
    yield dg.AssetSpec(
        upstream_key(source.code),
        group_name="upstream",
        kinds={"api"},
        tags=tags,
        description=f"{source.name}: the source itself, outside of our reach.",
        metadata={"base_url": dg.MetadataValue.url(redact_url(source.base_url))},
    )
    for name, endpoint in pack.endpoints.items():
        if not endpoint.operations.keys() & {Operation.HARVEST, Operation.BACKFILL}:
            continue  # it serves others: its records are theirs
        yield dg.AssetSpec(
            records_key(source.code, name),
            deps=[upstream_key(source.code)],
            group_name="records",
            kinds={"table"},
            tags=tags,
            description=(
                f"Records of **{source.name}**, endpoint `{name}`; `ingest_job` fills it.\n\n"
                f"In the ledger: table `ing_record` where `provenance_code = '{source.code}'`"
                f" and `endpoint_name = '{name}'`."
            ),
        )


def materialization(summary: PlanSummary, records: int) -> dg.AssetMaterialization:
    """Return what one plan did to its endpoint's records, as numbers that Dagster can plot."""
    counts = summary.counts
    metadata: dict[str, Any] = {
        "dagster/row_count": records,
        "certificate": _certificate(summary),
        "plan": f"{summary.plan_id} ({summary.operation}, {summary.status})",
        "window": str(summary.window),
        **_instants(cursor_before=summary.cursor_before, cursor_after=summary.cursor_after),
        "slices": sum(summary.slices.values()),
        "slices_failed": summary.slices.get("FAILED", 0),
        "requests": counts["reqCount"],
        "records_seen": counts["itemsCount"],
        **{f"records_{_snake(fate)}": counts[fate] for fate in FATES},
        "retries": counts["retryCount"],
        "throttled": counts["429Count"],
        "bytes_received": summary.bytes,
        "spec_fingerprint": summary.fingerprint,
    }
    if summary.seconds:
        metadata["seconds"] = round(summary.seconds, 3)
        metadata["records_per_second"] = round(counts["itemsCount"] / summary.seconds, 1)
    key = records_key(summary.provenance, summary.endpoint)
    return dg.AssetMaterialization(key, description=_certificate(summary), metadata=metadata)


def _certificate(summary: PlanSummary) -> str:
    verdicts = ", ".join(f"{n} {verdict}" for verdict, n in summary.certificates.items())
    promised = "no total" if summary.promised is None else f"{summary.promised} promised"
    return (
        f"{verdicts or 'none'} of {sum(summary.slices.values())} slices;"
        f" {promised}, {summary.landed} landed"
    )


def _instants(**instants: datetime | None) -> dict[str, dg.MetadataValue]:
    return {
        name: dg.MetadataValue.timestamp(instant)
        for name, instant in instants.items()
        if instant is not None
    }


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
