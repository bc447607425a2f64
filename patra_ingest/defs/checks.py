"""The health of every endpoint as asset checks; what they judge is in `views.health`.

One step answers for all of them that are selected. An endpoint that nobody ever planned is left
out when all are asked for: a check that was never evaluated says the same and costs nothing.
"""

from collections.abc import Iterator, Mapping

import dagster as dg

from patra_ingest.defs.assets import (
    Place,
    cursors_key,
    plans_key,
    quarantine_key,
    records_key,
)
from patra_ingest.defs.resources import LedgerResource
from patra_ingest.defs.runs import AUTOMATIC
from patra_ingest.views.health import CHECKS, Finding, Thresholds, judge_health, was_planned

_ASSETS = {
    "no_hold": plans_key,
    "cursor_lag": cursors_key,
    "cursor_fold": cursors_key,
    "quarantine_share": quarantine_key,
}
_QUESTIONS = {
    "completeness": "Does every slice that succeeded carry its certificate?",
    "coverage": "Was everything asked for, up to what is settled, without a hole?",
    "cursor_lag": "Is the cursor where safety lag and schedule let us expect it?",
    "cursor_fold": "Do the events of the cursors lead where these stand, without a gap?",
    "error_rate": "Do few enough answers fail (L1, L2), in every ten minutes of the last hour?",
    "throttled_share": "Does the source turn us away (429) seldom enough, in the last hour?",
    "quarantine_share": "Could nearly all items of the last day be read?",
    "freshness": "Has a plan succeeded within two rounds of the schedule?",
    "outbox_backlog": "Are others told of changes within the hour, and no message given up?",
    "no_hold": "Is the endpoint free to be asked, held by neither an error nor a person?",
}
_UNITS = {  # of value and threshold
    **dict.fromkeys(("coverage", "cursor_lag", "freshness", "outbox_backlog"), "seconds"),
    **dict.fromkeys(("error_rate", "throttled_share", "quarantine_share"), "share, 0 to 1"),
    **dict.fromkeys(("completeness", "cursor_fold", "no_hold"), "how many"),
}


def check_key(check: str, place: Place) -> dg.AssetCheckKey:
    """Return where a check of an endpoint is shown."""
    asset = _ASSETS.get(check, records_key)(place.provenance, place.endpoint)
    return dg.AssetCheckKey(asset, check)


def checks_of(places: list[Place]) -> dg.AssetChecksDefinition:
    """Return every check of these endpoints."""
    keys = {check_key(check, place): place for place in places for check in CHECKS}
    specs = [
        dg.AssetCheckSpec(key.name, asset=key.asset_key, description=_QUESTIONS[key.name])
        for key in keys
    ]

    @dg.multi_asset_check(name="health", specs=specs, can_subset=True)
    def health(
        context: dg.AssetCheckExecutionContext, ledger: LedgerResource
    ) -> Iterator[dg.AssetCheckResult]:
        """Judge the selected endpoints by what the ledger says now."""
        selected = context.selected_asset_check_keys
        yield from _judge(ledger, _by_place(keys, selected), len(selected) == len(specs))

    return health


def _by_place(
    keys: Mapping[dg.AssetCheckKey, Place], selected: set[dg.AssetCheckKey]
) -> dict[Place, dict[str, dg.AssetCheckKey]]:
    found: dict[Place, dict[str, dg.AssetCheckKey]] = {}
    for key, place in keys.items():
        if key in selected:
            found.setdefault(place, {})[key.name] = key
    return found


def _judge(
    ledger: LedgerResource, wanted: dict[Place, dict[str, dg.AssetCheckKey]], are_all: bool
) -> Iterator[dg.AssetCheckResult]:
    with ledger.open() as live:
        lines = Thresholds.read(live.settings.check_thresholds)
        for place, keys in wanted.items():
            with live.db.read() as tx:  # of its own: events are written in between
                if are_all and not was_planned(tx, place.provenance, place.endpoint):
                    continue
                now, own = live.db.now(tx), (place.provenance, place.endpoint)
                findings = judge_health(tx, now, lines, *own, wanted=keys)
            for finding in findings:
                yield _result(finding, keys[finding.check])


def _result(finding: Finding, key: dg.AssetCheckKey) -> dg.AssetCheckResult:
    numbers = {"value": finding.value, "threshold": finding.threshold}
    told = {name: float(value) for name, value in numbers.items() if value is not None}
    unit = {"unit": _UNITS[finding.check]} if told else {}
    return dg.AssetCheckResult(
        passed=finding.passed,
        asset_key=key.asset_key,
        check_name=key.name,
        severity=dg.AssetCheckSeverity[finding.severity.value],
        description=finding.why[:1].upper() + finding.why[1:],
        metadata={**told, **unit, **finding.metadata},
    )


check_job = dg.define_asset_job(
    "check_job",
    selection=dg.AssetSelection.all_asset_checks(),
    executor_def=dg.in_process_executor,
    description="Judge the health of every endpoint that was ever planned; writes no record.",
)


def schedule_of(places: list[Place]) -> dg.ScheduleDefinition:
    """Return the schedule that judges, twice an hour, those of these endpoints that were planned.

    Dagster notes every check that a run is asked for, also one that it leaves out: the run is asked
    for no more than there is to judge.
    """

    @dg.schedule(
        name="check_schedule",
        job=check_job,
        cron_schedule="*/30 * * * *",
        execution_timezone="UTC",
        description="Judge the health of every endpoint that was ever planned, twice an hour.",
    )
    def check_schedule(ledger: LedgerResource) -> dg.RunRequest | dg.SkipReason:
        with ledger.open() as live, live.db.read() as tx:
            known = [one for one in places if was_planned(tx, one.provenance, one.endpoint)]
        if not known:
            return dg.SkipReason("Nothing was planned yet.")
        keys = [check_key(check, place) for place in known for check in CHECKS]
        return dg.RunRequest(asset_check_keys=keys, tags=AUTOMATIC)

    return check_schedule
