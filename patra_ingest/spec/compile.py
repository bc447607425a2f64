"""A declaration becomes a spec snapshot, or a list of reasons why it cannot."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import TypeAdapter, ValidationError

from patra_ingest.errors import CompileError
from patra_ingest.model import keys
from patra_ingest.spec.checks import find_problems
from patra_ingest.spec.declaration import Declaration, Overrides
from patra_ingest.spec.merge import Merged, merge
from patra_ingest.spec.shapes import shape
from patra_ingest.spec.snapshot import Paging, SpecSnapshot, StopRule

_GRANULARITY = {
    "SECOND": timedelta(seconds=1),
    "MINUTE": timedelta(minutes=1),
    "HOUR": timedelta(hours=1),
    "DAY": timedelta(days=1),
}
_PAGING: TypeAdapter[Paging] = TypeAdapter(Paging)


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


def compile_spec(declaration: Declaration, overrides: Overrides) -> Compiled:
    """Merge, check and freeze; raise CompileError with every problem found."""
    where = f"{declaration.provenance}/{declaration.endpoint} for {declaration.operation}"
    merged, problems = shape(merge(declaration, overrides))
    problems = problems or find_problems(merged, frozenset(overrides.params))
    if problems:
        raise CompileError(where, [str(problem) for problem in problems])
    try:
        spec = _freeze(declaration, overrides, merged)
    except ValidationError as error:
        raise CompileError(where, [_plain(detail) for detail in error.errors()]) from error
    config = {
        "layers": [{"origin": layer.origin, "values": layer.values} for layer in declaration.layers]
    }
    proto = expr_proto(spec)
    return Compiled(
        spec,
        proto,
        keys.expr_proto_hash(proto),
        keys.spec_fingerprint(spec.model_dump(mode="json")),
        config,
        keys.digest(config),
        merged.origins,
    )


def expr_proto(spec: SpecSnapshot) -> dict[str, Any]:
    """Return the question this spec asks, without window, page or address.

    It names the cursor's namespace: a change of mapping, speed or host goes on where the cursor
    is, a change of the question itself starts a namespace of its own.
    """
    return {
        "provenance": spec.provenance,
        "endpoint": spec.endpoint,
        "method": spec.request.method,
        "path": spec.request.path,
        "query": dict(spec.request.query),
        "params": dict(spec.params),
    }


def _freeze(declaration: Declaration, overrides: Overrides, merged: Merged) -> SpecSnapshot:
    values = merged.values
    paging = {key: value for key, value in values["paging"].items() if value is not None}
    if paging["type"] == "OFFSET":
        paging = {k: v for k, v in paging.items() if k not in ("initial_token", "next_token_path")}
    return SpecSnapshot(
        provenance=declaration.provenance,
        endpoint=declaration.endpoint,
        operation=declaration.operation,
        request=values["request"],
        http=values["http"],
        paging=_PAGING.validate_python(paging),
        window=_window(values["window"]),
        response=values["response"],
        fields=tuple(values["mapping"]["fields"]),
        changed=values["mapping"]["changed"],
        retry=values["retry"],
        rate=values["rate"],
        params=dict(overrides.params),
        warnings=tuple(_warnings(merged)),
    )


def _window(values: dict[str, Any]) -> dict[str, Any]:
    seconds = {key: timedelta(seconds=values[key]) for key in ("safety_lag", "overlap", "max_span")}
    initial = values.get("initial_from")
    return {
        **values,
        **seconds,
        "granularity": _GRANULARITY[values["granularity"]],
        "initial_from": datetime.fromisoformat(initial) if isinstance(initial, str) else initial,
    }


def _warnings(merged: Merged) -> list[str]:
    """Say what this source cannot give us, and what we do instead."""
    warnings = []
    if not merged.find("paging.total_path"):
        warnings.append("no total is declared: the certificate rests on the stop rule alone")
    if StopRule.SHORT_PAGE not in merged.find("paging.stop"):
        warnings.append("one more, empty page is asked for at the end of every slice")
    return warnings


def _plain(detail: Any) -> str:
    return f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}"
