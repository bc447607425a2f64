"""A declaration becomes a spec snapshot, or a list of reasons why it cannot."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from patra_ingest.errors import CompileError
from patra_ingest.model import keys
from patra_ingest.spec.ask import asked_query
from patra_ingest.spec.checks import find_problems
from patra_ingest.spec.declaration import Declaration, Layer, NamedCredential, Overrides, said
from patra_ingest.spec.downgrades import find_downgrades
from patra_ingest.spec.freeze import frozen_call, frozen_paging, frozen_window
from patra_ingest.spec.merge import TRIGGER, merge
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.shapes import shape
from patra_ingest.spec.snapshot import QuerySpec, SpecSnapshot
from patra_ingest.spec.subject import Subject

NO_CREDENTIAL: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Compiled:
    """A spec with its identity: what it asks (`proto`) and what it is (`fingerprint`)."""

    spec: SpecSnapshot
    proto: dict[str, Any]
    proto_hash: str
    fingerprint: str
    config: dict[str, Any]
    config_hash: str
    origins: dict[str, str]
    declared: dict[str, Any]  # the merged values, by the same paths as their origins


def compile_spec(
    declaration: Declaration, overrides: Overrides, available: frozenset[str] = NO_CREDENTIAL
) -> Compiled:
    """Merge, check and freeze; raise CompileError with every problem found.

    `available` names the credentials whose secrets are at hand: what they unlock is used.
    """
    where = f"{declaration.provenance}/{declaration.endpoint} for {declaration.operation}"
    if use := overrides.values.get("auth", {}).get("use"):
        asked = Layer("trigger", {"auth": {"use": use}}, TRIGGER)
        declaration = replace(declaration, layers=(*declaration.layers, asked))
    subject, problems = _subject(declaration, overrides, available)
    if subject is None:
        raise CompileError(where, [str(problem) for problem in problems])
    query, more = asked_query(subject, overrides)
    problems.extend(more)
    problems.extend(find_problems(subject))
    if problems:
        raise CompileError(where, [str(problem) for problem in dict.fromkeys(problems)])
    try:
        spec = _freeze(subject, overrides, available, query)
    except (ValidationError, ValueError) as error:
        raise CompileError(where, [_plain(error)]) from error
    config = _config(declaration)
    proto = expr_proto(spec)
    return Compiled(
        spec,
        proto,
        keys.expr_proto_hash(proto),
        keys.spec_fingerprint(spec.model_dump(mode="json")),
        config,
        keys.digest(config["layers"]),
        subject.merged.origins,
        {path: _value(subject, path) for path in subject.merged.origins},
    )


def expr_proto(spec: SpecSnapshot) -> dict[str, Any]:
    """Return the question this spec asks, without window, page or address.

    It names the cursor's namespace: a change of mapping, speed or host goes on where the cursor
    is, a change of the question itself starts a namespace of its own.
    """
    request = spec.request.model_dump(mode="json", exclude_defaults=True)
    asked = ("method", "path", "query", "first", "next", "form", "body")
    return {
        "provenance": spec.provenance,
        "endpoint": spec.endpoint,
        **{key: request[key] for key in asked if key in request},
        "params": dict(spec.params),
        "asked": spec.query.asked if spec.query else None,
    }


def _subject(
    declaration: Declaration, overrides: Overrides, available: frozenset[str]
) -> tuple[Subject | None, list[Problem]]:
    problems = list(declaration.problems)
    detail = None
    if declaration.detail is not None:
        detail, more = _one(declaration.detail, Overrides(), available, None, is_detail=True)
        problems.extend(more)
    subject, more = _one(declaration, overrides, available, detail, is_detail=False)
    if subject is not None and subject.detail is not None:
        own = replace(subject.detail, partition_names=subject.partition_names)
        subject = replace(subject, detail=own)
    return subject, [*problems, *more]


def _one(
    declaration: Declaration,
    overrides: Overrides,
    available: frozenset[str],
    detail: Subject | None,
    is_detail: bool,
) -> tuple[Subject | None, list[Problem]]:
    merged = merge(declaration, overrides, _unlocked(declaration, available))
    shaped = shape(merged)
    if isinstance(shaped, list):
        moved = [Problem(merged.place(p.path), p.reason, p.remedy) for p in shaped]
        return None, moved
    params = frozenset(overrides.params)
    usable = _usable(declaration)
    partitions = (shaped.endpoint.partitions or {}).values()
    names = frozenset(name for values in partitions for name in values)
    subject = Subject(declaration, merged, shaped, params, detail, is_detail, usable, names)
    return subject, []


def _unlocked(declaration: Declaration, available: frozenset[str]) -> Iterable[Layer]:
    chosen = _chosen(declaration, available)
    for named in _usable(declaration):
        if named.name == chosen:
            where = f"{named.place}.unlocks."
            yield Layer(f"credential {named.name}", named.credential.unlocks or {}, where)


def _chosen(declaration: Declaration, available: frozenset[str]) -> str | None:
    """Return the first credential whose secret is at hand."""
    names = (named.name for named in _usable(declaration))
    return next((name for name in names if name in available), None)


def _freeze(
    subject: Subject,
    overrides: Overrides,
    available: frozenset[str],
    query: QuerySpec | None,
) -> SpecSnapshot:
    shaped, declaration = subject.shaped, subject.declaration
    call = frozen_call(shaped, _in_order(declaration, available), _chosen(declaration, available))
    values = {
        "provenance": declaration.provenance,
        "endpoint": declaration.endpoint,
        "operation": declaration.operation,
        "usage": shaped.endpoint.usage,
        **call,
        "paging": frozen_paging(shaped.paging),
        "window": frozen_window(shaped.window),
        "cap": said(shaped.cap),
        "planning": said(shaped.planning),
        "partitions": shaped.endpoint.partitions or {},
        "detail": _frozen_detail(subject, available),
        "reconcile": _reconciled(subject) if subject.by_ids else None,
        "query": query,
        "params": dict(overrides.params),
        "warnings": (*find_downgrades(subject, available), *(query.warnings if query else ())),
    }
    return SpecSnapshot.model_validate(values)


def _frozen_detail(subject: Subject, available: frozenset[str]) -> dict[str, Any] | None:
    detail = subject.detail
    if detail is None:
        return None
    own = subject.shaped.detail
    batch = own.batch or detail.shaped.batching.ids_per_request
    other = detail.declaration
    call = frozen_call(detail.shaped, _in_order(other, available), _chosen(other, available))
    named = {"endpoint": own.endpoint, "batch": batch, "reconcile": _reconciled(subject)}
    return {**named, **call}


def _reconciled(subject: Subject) -> dict[str, Any]:
    own = said(subject.shaped.detail)
    return {key: own[key] for key in ("missing", "positional", "aliases", "isolate")}


def _in_order(declaration: Declaration, available: frozenset[str]) -> tuple[NamedCredential, ...]:
    """Return the credentials with those at hand first; else in the Registry's own order."""
    return tuple(sorted(_usable(declaration), key=lambda named: named.name not in available))


def _usable(declaration: Declaration) -> tuple[NamedCredential, ...]:
    """Return the credentials an endpoint may use: all of them, or the one it asks for."""
    asked = [
        layer.values["auth"]["use"]
        for layer in declaration.layers
        if layer.values.get("auth", {}).get("use")
    ]
    return tuple(named for named in declaration.credentials if not asked or named.name == asked[-1])


def _value(subject: Subject, path: str) -> Any:
    group, _, key = path.partition(".")
    part = getattr(subject.shaped, group).model_dump(mode="json", include={key}, exclude_none=True)
    return part.get(key)


def _config(declaration: Declaration) -> dict[str, Any]:
    """Return what the Registry said, and the rows it said it in.

    The hash is of what was said: the same words in another row are the same configuration.
    """
    said_in = [layer.origin.partition(" #") for layer in declaration.layers]
    layers = [
        {"origin": origin, "values": to_jsonable_python(layer.values)}
        for (origin, _, _), layer in zip(said_in, declaration.layers, strict=True)
    ]
    return {"layers": layers, "rows": {origin: int(row) for origin, _, row in said_in if row}}


def _plain(error: ValidationError | ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    details = (f"{'.'.join(map(str, d['loc']))}: {d['msg']}" for d in error.errors())
    return "; ".join(details)
