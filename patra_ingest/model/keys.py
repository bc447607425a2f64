"""Every hash of the package: same meaning, same key.

A key is the SHA-256 of canonical JSON that names its fields and its `kind`, so neither two fields
run together nor two kinds of key can ever collide. Canonical JSON is: keys sorted, keys without a
value left out at every depth, array order kept, times in UTC with microseconds, no type guessing.

Numbers are JSON numbers: `1`, `1.0` and `Decimal("1.00")` are one value and have one text, exact
and without exponent, whichever database driver or YAML file they came from. `"1"` and `true` are
other types, hence other values. Text is taken as it is: no trimming, no case, no Unicode folding.

The JSON that was hashed can be stored and hashed again: reading it back gives the same key, as
long as its numbers fit what a JSON reader keeps (64-bit integers, double precision).
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from hashlib import sha256
from json.encoder import encode_basestring
from typing import Any

import orjson

from patra_ingest.model.codes import NamespaceScope, Operation
from patra_ingest.model.lineage import RunId
from patra_ingest.model.window import Window, duration_iso, instant_iso

GLOBAL_NAMESPACE = "0" * 64
# What a slice may spend, what was estimated and how far it looks back do not change which it is.
_NOT_IN_SIGNATURE = frozenset({"telemetry", "budget", "widened"})
_PLAN_KEY_CHARS = 256
_MAX_EXPONENT = 400  # beyond every float; keeps a typo like 1e999999999 from filling the memory


def canonical_json(value: object) -> bytes:
    """Return the one JSON text of `value`; raise ValueError for what JSON cannot say."""
    return _canonical(value).encode()


def _canonical(value: object) -> str:
    match value:
        case Enum():
            return _canonical(value.value)
        case str():
            return encode_basestring(value)
        case Mapping():
            names = sorted(_name(key) for key in value)
            members = ((name, value[name]) for name in names)
            listed = (
                f"{encode_basestring(n)}:{_canonical(v)}" for n, v in members if v is not None
            )
            return "{" + ",".join(listed) + "}"
        case list() | tuple():
            return "[" + ",".join(_canonical(item) for item in value) + "]"
        case _:
            return _scalar(value)


def _name(key: object) -> str:
    if not isinstance(key, str):
        raise ValueError(f"{key!r} is not text: a JSON name is, and 1 would collide with '1'")
    return key


def _scalar(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float() | Decimal():
            return _number(value)
        case datetime():
            return encode_basestring(instant_iso(value))
        case date():
            return encode_basestring(value.isoformat())
        case timedelta():
            return encode_basestring(duration_iso(value))
        case _:
            raise ValueError(f"a {type(value).__name__} has no canonical JSON: {value!r:.80}")


def _number(value: int | float | Decimal) -> str:
    if isinstance(value, int):
        return int.__repr__(value)
    exact = Decimal(repr(value)) if isinstance(value, float) else value
    if not exact.is_finite():
        raise ValueError(f"{value} is not a JSON number")
    if abs(exact.adjusted()) > _MAX_EXPONENT:
        raise ValueError(f"{value} is outside the range of a JSON number")
    text = format(exact, "f")
    if "." in text:
        text = text.rstrip("0").removesuffix(".")
    return "0" if text == "-0" else text


def digest(value: object) -> str:
    """Return the SHA-256 of the canonical JSON, as 64 hex digits."""
    return sha256(canonical_json(value)).hexdigest()


def _key(kind: str, **fields: object) -> str:
    return digest({"kind": kind, **fields})


def expr_proto_hash(proto: Mapping[str, Any]) -> str:
    """Return the identity of the question a spec asks, without any window."""
    return _key("expr-proto", expr=proto)


def expr_hash(localized: Mapping[str, Any]) -> str:
    """Return the identity of one slice's question, bounds included."""
    return _key("expr", expr=localized)


def spec_fingerprint(spec: Mapping[str, Any]) -> str:
    """Return the identity of a whole spec snapshot, warnings included."""
    return _key("spec", spec=spec)


def slice_signature(
    *,
    provenance: str,
    endpoint: str,
    operation: Operation,
    expr_hash: str,
    slice_spec: Mapping[str, Any],
) -> str:
    """Return what makes a slice itself: equal signature, equal slice, whichever plan it is in."""
    bounds = {name: part for name, part in slice_spec.items() if name not in _NOT_IN_SIGNATURE}
    return _key(
        "slice",
        provenance=provenance.lower(),
        endpoint=endpoint,
        operation=operation,
        expr_hash=expr_hash,
        slice_spec=bounds,
    )


def task_key(
    *,
    slice_signature: str,
    expr_hash: str,
    operation: Operation,
    trigger_type: str,
    scheduler: str,
    params: Mapping[str, Any],
) -> str:
    """Return what makes a task itself: the same trigger asked twice finds its first task.

    The schedule instance never takes part. Who means a second run says so in `params`,
    with a campaign or a replay token.
    """
    return _key(
        "task",
        slice_signature=slice_signature,
        expr_hash=expr_hash,
        operation=operation,
        trigger_type=trigger_type,
        scheduler=scheduler,
        params=params,
    )


def batch_key(run_id: RunId, position: object) -> str:
    """Return what makes a batch itself: where it starts in its run, not which number it got."""
    return _key("batch", run_id=run_id, position=position)


def position_hash(position: str) -> str:
    """Return a fixed-length stand-in for a page token or URL too long for a unique index."""
    return _key("position", position=position)


def cursor_event_key(
    namespace: Mapping[str, str],
    reason: str,
    prev: str | None,
    new: str,
    window: Window | None,
    of: object = None,
) -> str:
    """Return what makes a cursor event itself: one step of one namespace, whoever takes it.

    `namespace` is the namespace's columns by name; values are canonical text. `of` tells apart
    steps that may be meant twice: those of a token, and those that a person orders.
    """
    covered = {"from": window.start, "to": window.end} if window else None
    return _key(
        "cursor-event",
        namespace=namespace,
        reason=reason,
        prev=prev,
        new=new,
        window=covered,
        of=of,
    )


def plan_key(
    *,
    provenance: str,
    operation: Operation,
    endpoint: str,
    window: Window | None,
    expr_proto_hash: str,
    campaign: str | None = None,
) -> str:
    """Return a plan's key, for people to read: the same trigger finds the same plan again."""
    span = f"{_compact(window.start)}-{_compact(window.end)}" if window else "-"
    parts = [provenance.lower(), operation.value, endpoint, span, expr_proto_hash[:16]]
    if campaign is not None:
        parts.append(campaign)
    key = ":".join(part.replace("%", "%25").replace(":", "%3A") for part in parts)
    if len(key) > _PLAN_KEY_CHARS:
        key = f"{key[: _PLAN_KEY_CHARS - 17]}~{digest(key)[:16]}"
    return key


def _compact(instant: datetime) -> str:
    digits = "%Y%m%dT%H%M%S.%f" if instant.microsecond else "%Y%m%dT%H%M%S"
    return instant.astimezone(UTC).strftime(digits) + "Z"


def namespace_key(
    scope: NamespaceScope,
    expr_proto_hash: str | None = None,
    campaign: str | None = None,
    partition: str | None = None,
) -> str:
    """Return the namespace of a cursor: everyone's, one question's, or one campaign's.

    Every partition of a source has a namespace of its own.
    """
    match scope:
        case NamespaceScope.GLOBAL:
            return GLOBAL_NAMESPACE
        case NamespaceScope.EXPR if expr_proto_hash:
            if partition is None:
                return expr_proto_hash
            return _key("partition", expr=expr_proto_hash, partition=partition)
        case NamespaceScope.CUSTOM if campaign:
            return _key("campaign", campaign=campaign, partition=partition)
    missing = "expr_proto_hash" if scope == NamespaceScope.EXPR else "campaign"
    raise ValueError(f"a namespace of scope {scope} needs its {missing}")


def content_hash(item: object) -> str:
    """Return the identity of an item as received: nulls count, the order of its names does not.

    Runs once per record, hence orjson; the other keys are few and may take their time.
    """
    return sha256(orjson.dumps(item, option=orjson.OPT_SORT_KEYS)).hexdigest()


def text_hash(written: bytes) -> str:
    """Return the identity of an item that is a text, by the JSON that it is kept as."""
    return sha256(written).hexdigest()


def body_hash(body: bytes) -> str:
    """Return the address of a response body in the raw store."""
    return sha256(body).hexdigest()


def item_key(provider_id: str) -> bytes:
    """Return eight bytes that stand for a provider id in large sets of ids."""
    return sha256(provider_id.encode()).digest()[:8]


def outbox_key(  # noqa: PLR0913 - the record, and what makes this version of it itself
    provenance: str,
    endpoint: str,
    provider_id: str,
    kind: str,
    source_updated_at: str | None,
    content_hash: str,
    revision: int,
) -> str:
    """Return what makes a message itself: one version of one record; times are canonical text.

    `revision` counts our own writes of the record: a source that returns to an earlier version
    says something new. Runs once per record, hence orjson; the text is the canonical one.
    The time comes first: the keys of a batch are then neighbours in their index.
    """
    said: dict[str, str | int] = {
        "change": kind,
        "contentHash": content_hash,
        "endpoint": endpoint,
        "id": provider_id,
        "kind": "outbox",
        "provenance": provenance,
        "revision": revision,
    }
    if source_updated_at is not None:
        said["sourceUpdatedAt"] = source_updated_at
    first = f"{source_updated_at}/" if source_updated_at else ""
    return first + sha256(orjson.dumps(said)).hexdigest()
