"""Everything one batch writes, inside the transaction that its caller has opened and fenced."""

from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from patra_ingest.executor.exchange import Exchanged
from patra_ingest.executor.leased import Place, Work
from patra_ingest.executor.outcome import batch_stats
from patra_ingest.executor.positions import position
from patra_ingest.executor.turning import Turned
from patra_ingest.ledger.batches import BatchEnd, finish_batch
from patra_ingest.ledger.outbox import add_changes
from patra_ingest.ledger.quarantine import quarantine_ids, quarantine_items
from patra_ingest.ledger.records import mark_gone, upsert_newer
from patra_ingest.ledger.runs import save_checkpoint
from patra_ingest.model.lineage import BatchId
from patra_ingest.spec.paging import TokenPaging, UrlPaging
from patra_ingest.spec.snapshot import CallSpec, SpecSnapshot
from patra_ingest.transport.redact import HIDDEN

_UNKNOWN = "the source has no record of it, and neither have we"


def store_batch(
    tx: Connection,
    work: Work,
    batch_id: BatchId,
    turned: Turned,
    exchanges: tuple[Exchanged, ...],
    numbers: dict[str, Any],
) -> dict[str, Any]:
    """Write records, deletes, outbox, quarantine, batch and checkpoint; return the batch's stats.

    The caller owns the transaction and has required the lease in it.
    """
    now = numbers.pop("now")
    written = _write_records(tx, work, batch_id, turned, now)
    stats = batch_stats({**numbers, **written}, len(turned.mapped.bad), turned.mapped.out_of_window)
    following = work.position(turned.following) if turned.following else None
    finish_batch(tx, batch_id, _end(turned, exchanges, following, stats), now)
    checkpoint = {"next": following, "batch": batch_id, **_address(work, turned.following)}
    save_checkpoint(tx, work.run.id, checkpoint, now)
    return stats


def _address(work: Work, following: Place | None) -> dict[str, str | None]:
    """Return the address that the next page needs, if its position hides a part of it."""
    page = following.needed if following else None
    is_whole = page is None or HIDDEN not in position(work.walk, page)
    return {} if page is None or is_whole else {"address": page.token}


def _write_records(
    tx: Connection, work: Work, batch_id: BatchId, turned: Turned, now: datetime
) -> dict[str, Any]:
    plan, mapped, lineage = work.plan, turned.mapped, work.lineage(batch_id)
    owner = replace(plan.namespace, endpoint=work.stored_under)
    stamp = {
        **lineage.columns(),
        "spec_fingerprint": plan.fingerprint,
        "expr_hash": work.expr_hash,
    }
    upserted = upsert_newer(
        tx,
        owner.provenance,
        owner.endpoint,
        mapped.records,
        turned.call.changed,
        stamp,
        now,
        work.bounds.window,
    )
    gone = mark_gone(tx, owner.provenance, owner.endpoint, turned.gone, now, lineage)
    changes = [*upserted.changes, *gone.changes]
    if changes:
        add_changes(tx, changes, lineage, now)
    quarantine_items(tx, owner, lineage, mapped.bad)
    merged = set(turned.numbers.get("merged", ()))
    unknown = {one: _UNKNOWN for one in gone.unknown if one not in merged}
    bad = {one.id: one.reason for one in turned.bad_ids}
    quarantine_ids(tx, owner, lineage, {**unknown, **bad})
    return {
        **asdict(upserted.counts),
        "late": upserted.late,
        "observedMax": mapped.observed_max,
    }


def _end(
    turned: Turned,
    exchanges: tuple[Exchanged, ...],
    following: str | None,
    stats: dict[str, Any],
) -> BatchEnd:
    first, *others = exchanges
    request, response = first.digests()
    if others:
        response["also"] = [
            dict(zip(("request", "response"), o.digests(), strict=True)) for o in others
        ]
    response["itemsPath"] = list(turned.call.response.items)
    response["nextTokenPath"] = _next_place(turned.call)
    return BatchEnd(
        len(turned.mapped.records), following, first.storage_key, stats, request, response
    )


def _next_place(call: CallSpec) -> str | None:
    """Return where the next token or address is looked for, if that is a path."""
    paging = call.paging if isinstance(call, SpecSnapshot) else None
    if isinstance(paging, TokenPaging):
        return paging.next_token.path
    return paging.next_url.path if isinstance(paging, UrlPaging) else None
