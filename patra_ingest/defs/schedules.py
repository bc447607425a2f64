"""The schedules: one per endpoint and operation of the built-in packs, three for all others.

What the built-in packs declare is read from their files when Dagster loads; endpoints that only
the Registry knows are found at the tick. All are off until a person switches them on. A tick only
plans: the sensors start the executors.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache

import dagster as dg
from dagster._utils.schedules import cron_string_iterator  # no public name; Dagster's own cron

from patra_ingest.defs.assets import builtin_sources
from patra_ingest.defs.planning import TriggerConfig, plan_job
from patra_ingest.defs.resources import RegistryResource
from patra_ingest.defs.runs import AUTOMATIC, named
from patra_ingest.model.codes import Operation
from patra_ingest.registry.pack import EndpointPart, Pack, SchedulePart
from patra_ingest.registry.read import EndpointName
from patra_ingest.spec.planning import Courtesy

# For those who say nothing: news often, the past by night, staleness once a day.
USUAL = {
    Operation.HARVEST: "*/15 * * * *",
    Operation.BACKFILL: "0 0-5 * * *",
    Operation.UPDATE: "30 3 * * *",
}
_EVERY = timedelta(minutes=15)

Ticked = dg.RunRequest | dg.SkipReason


@cache
def declared() -> dict[EndpointName, SchedulePart | None]:
    """Return every endpoint and operation of the built-in packs, with the cadence it declares."""
    return {name: part.schedule.get(name.operation) for name, part, _ in _parts()}


def _parts() -> Iterator[tuple[EndpointName, EndpointPart, Pack]]:
    for pack in builtin_sources():
        for endpoint, part in pack.endpoints.items():
            for operation in part.operations:
                if operation in USUAL:
                    yield EndpointName(pack.provenance.code, endpoint, operation), part, pack


def builtin_schedules() -> list[dg.ScheduleDefinition]:
    """Return the schedules of the built-in packs."""
    return [_schedule(name, *_cron(name, part, pack)) for name, part, pack in _parts()]


def registry_schedules() -> list[dg.ScheduleDefinition]:
    """Return one schedule per operation, for endpoints that only the Registry knows."""
    return [_registry_schedule(operation) for operation in USUAL]


def _cron(name: EndpointName, part: EndpointPart, pack: Pack) -> tuple[str, str]:
    """Return when an endpoint is asked, and on whose clock."""
    own = part.schedule.get(name.operation)
    if own is not None:
        return own.cron, "UTC"
    courtesy = _courtesy(name.operation, part, pack)
    if name.operation is not Operation.BACKFILL or courtesy is None:
        return USUAL[name.operation], "UTC"
    first, last = (int(clock.partition(":")[0]) for clock in courtesy.hours.split("-"))
    hours = [hour % 24 for hour in range(first, last if last > first else last + 24)] or [first]
    return f"0 {','.join(map(str, sorted(hours)))} * * *", courtesy.zone


def _courtesy(operation: Operation, part: EndpointPart, pack: Pack) -> Courtesy | None:
    """Return the courtesy hours of an endpoint: what is said nearest to it counts."""
    said = (part.operations.get(operation), part, pack.operations.get(operation), pack)
    plannings = [one.planning for one in said if one is not None and one.planning is not None]
    return next((one.courtesy for one in plannings if one.courtesy is not None), None)


def _schedule(name: EndpointName, cron: str, zone: str) -> dg.ScheduleDefinition:
    def tick(context: dg.ScheduleEvaluationContext, registry: RegistryResource) -> Ticked:
        cadence = registry.cadences(name.operation).get((name.provenance, name.endpoint))
        if cadence != declared()[name]:
            return dg.SkipReason(f"the Registry has another cadence: {_general(name)} keeps it")
        if cadence is not None and not cadence.enabled:
            return dg.SkipReason("the pack says enabled: false")
        if not registry.can_run(name):
            return dg.SkipReason(
                "it is not in the Registry, or cannot be run: `patra registry check`"
            )
        return _request(name, context.scheduled_execution_time)

    words = f"{name.operation.value.lower()}_{name.provenance}_{name.endpoint}"
    schedule = dg.schedule(
        job=plan_job,
        name="".join(char if char.isalnum() else "_" for char in words),
        cron_schedule=cron,
        execution_timezone=zone,
        description=f"Plan a {name.operation.value} of {name.provenance}/{name.endpoint}.",
    )
    return schedule(tick)


def _general(name: EndpointName) -> str:
    return f"{name.operation.value.lower()}_registry"


def _registry_schedule(operation: Operation) -> dg.ScheduleDefinition:
    def tick(
        context: dg.ScheduleEvaluationContext, registry: RegistryResource
    ) -> Iterator[dg.RunRequest]:
        at = context.scheduled_execution_time
        cadences = registry.cadences(operation)
        for name in registry.endpoints(operation):
            cadence = cadences.get((name.provenance, name.endpoint))
            if name in declared() and declared()[name] == cadence:
                continue  # it has a schedule of its own
            if _is_due(cadence or SchedulePart(cron=USUAL[operation]), at):
                yield _request(name, at)

    schedule = dg.schedule(
        job=plan_job,
        name=f"{operation.value.lower()}_registry",
        cron_schedule=USUAL[Operation.HARVEST],
        execution_timezone="UTC",
        description=f"Plan a {operation.value} of endpoints that only the Registry knows, when"
        f" their cadence says so (else: {USUAL[operation]}).",
    )
    return schedule(tick)


def _is_due(cadence: SchedulePart, at: datetime) -> bool:
    """Return whether a cadence ticked since the tick before this one."""
    since = (at - _EVERY).timestamp() + 1
    return cadence.enabled and next(cron_string_iterator(since, cadence.cron, "UTC")) <= at


def _request(name: EndpointName, at: datetime) -> dg.RunRequest:
    config = TriggerConfig(
        provenance=name.provenance, endpoint=name.endpoint, operation=name.operation
    )
    where = {"source": name.provenance, "endpoint": name.endpoint}
    return dg.RunRequest(
        run_key=f"{name.provenance}/{name.endpoint}/{name.operation.value}/{at.isoformat()}",
        run_config=dg.RunConfig(ops={"compile_spec": config}),
        tags={**named(**where, operation=name.operation.value), **AUTOMATIC},
    )
