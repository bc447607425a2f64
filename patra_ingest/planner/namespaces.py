"""Whose cursor a trigger moves: BACKFILL, UPDATE and campaigns have namespaces of their own."""

from dataclasses import replace

from patra_ingest.errors import PlanError
from patra_ingest.model import keys
from patra_ingest.model.codes import NamespaceScope, Operation
from patra_ingest.model.namespace import Namespace
from patra_ingest.planner.trigger import Part, Trigger
from patra_ingest.spec.compile import Compiled

REFRESHED = "refresh_checked_at"  # what the cursor of an UPDATE measures


def parts_of(trigger: Trigger, compiled: Compiled) -> tuple[Part, ...]:
    """Return what is planned: one part for each partition of the pack, or the whole as one."""
    known = list(compiled.spec.partitions)
    if trigger.partition is not None and trigger.partition not in known:
        listed = ", ".join(known) or "none"
        raise PlanError(
            f"There is no partition {trigger.partition!r}.", f"Declared partitions: {listed}."
        )
    chosen: list[str | None] = [*known] or [None]
    if trigger.partition is not None:
        chosen = [trigger.partition]
    return tuple(Part(name, _namespace(trigger, compiled, name)) for name in chosen)


def _namespace(trigger: Trigger, compiled: Compiled, partition: str | None) -> Namespace:
    spec, operation = compiled.spec, trigger.operation
    cursor_key = REFRESHED if operation is Operation.UPDATE else spec.window.watermark_key
    if operation is Operation.HARVEST and trigger.campaign is None:
        key = keys.namespace_key(NamespaceScope.EXPR, compiled.proto_hash, partition=partition)
        scope = NamespaceScope.EXPR
    else:
        question = f"{operation.value}:{compiled.proto_hash}"
        campaign = question if trigger.campaign is None else f"{question}:{trigger.campaign}"
        key = keys.namespace_key(NamespaceScope.CUSTOM, campaign=campaign, partition=partition)
        scope = NamespaceScope.CUSTOM
    return Namespace(spec.provenance, spec.endpoint, operation, cursor_key, scope, key)


def forward_of(part: Part, compiled: Compiled) -> Namespace:
    """Return the HARVEST namespace of the same question: a BACKFILL ends where it has come to."""
    key = keys.namespace_key(NamespaceScope.EXPR, compiled.proto_hash, partition=part.partition)
    return replace(
        part.namespace,
        operation=Operation.HARVEST,
        cursor_key=compiled.spec.window.watermark_key,
        scope=NamespaceScope.EXPR,
        key=key,
    )
