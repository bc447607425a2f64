"""Open the plan of an UPDATE that asks by ids: candidates now, slices at once.

What is due was decided from the records of this moment, so plan, slices and the signals they settle
commit together; a plan holds at most 500 slices, and the next trigger takes the rest.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import Connection

from patra_ingest.ledger.candidates import (
    Found,
    count_records,
    find_spec,
    list_fingerprints,
    list_live_ids,
    list_made_by,
    list_quarantined,
    list_signals,
    list_stale,
    mark_retried,
)
from patra_ingest.ledger.plans import ensure_plan, mark_plan
from patra_ingest.ledger.signals import consume_signals
from patra_ingest.ledger.slices import ensure_slices
from patra_ingest.model import keys
from patra_ingest.model.bounds import Bounds
from patra_ingest.model.codes import PlanStatus, SliceStrategy
from patra_ingest.model.lineage import PlanId
from patra_ingest.model.window import Window
from patra_ingest.planner.candidates import (
    Candidate,
    Chosen,
    RecordKey,
    Why,
    choose,
    cut_ids,
    stale_share,
)
from patra_ingest.planner.derivation import Derivation
from patra_ingest.planner.plan_row import plan_row
from patra_ingest.planner.slicing import Cut, expect
from patra_ingest.planner.trigger import Opened, Part, Progress, Rooted
from patra_ingest.planner.windowing import Decision
from patra_ingest.registry.served import list_record_endpoints
from patra_ingest.spec.record_shape import record_shape

_MOST_SLICES = 500


def open_update(
    tx: Connection, rooted: Rooted, part: Part, decision: Decision, now: datetime
) -> Opened:
    """Return the plan for the records that are due; none when none is."""
    spec, window = rooted.compiled.spec, decision.window
    if window is None:
        return Opened(rooted, None, None, decision.reason, part.partition)
    names = list_record_endpoints(tx, spec.provenance, spec.endpoint, now)
    limit = _MOST_SLICES * spec.planning.ids_per_slice
    live = list_live_ids(tx, part.namespace)
    found = _candidates(tx, rooted, names, window, limit)
    chosen = choose([*found, *_stale(tx, rooted, names, window, live)], live, limit)
    if not chosen:
        asked = rooted.trigger.asked
        due = f"due (each is once in {spec.planning.refresh_days} days)"
        if asked.start or asked.end:
            due = f"last checked in {window}"
        reason = _nothing(names, due)
        return Opened(rooted, None, window, reason, part.partition)
    plan_id, written = _write(tx, rooted, part, decision, chosen)
    consume_signals(tx, [row for one in chosen for row in one.signals], plan_id, now)
    mark_retried(tx, [row for one in chosen for row in one.quarantined], now)
    before = Progress(PlanStatus.SLICING.value, new_slices=written)
    return Opened(rooted, plan_id, window, None, part.partition, before)


def _nothing(names: Sequence[str], due: str) -> str:
    if not names:
        return "no endpoint of the source stores records that this one could refresh"
    return (
        "there is no candidate: no signal, nothing in quarantine that could be mapped again,"
        f" no record made by another spec, and none that is {due}"
    )


def _candidates(
    tx: Connection, rooted: Rooted, names: Sequence[str], window: Window, limit: int
) -> Iterator[Candidate]:
    spec = rooted.compiled.spec
    source = spec.provenance
    yield from _named(list_signals(tx, source, names, limit), Why.SIGNAL)
    yield from _named(list_quarantined(tx, source, names, limit), Why.QUARANTINE)
    old = _outdated(tx, rooted, names)
    if old:
        yield from _named(list_made_by(tx, source, names, old, limit), Why.SHAPE)


def _stale(
    tx: Connection, rooted: Rooted, names: Sequence[str], window: Window, live: set[RecordKey]
) -> list[Candidate]:
    """Return the share of the records that is due, oldest check first; none that is in work."""
    spec, asked = rooted.compiled.spec, rooted.trigger.asked
    most = _MOST_SLICES * spec.planning.ids_per_slice
    if asked.start or asked.end:
        # A person names the window: what was last checked in it.
        found = list_stale(tx, spec.provenance, names, window.end, most, window.start)
        return list(_named(found, Why.STALE))
    total = count_records(tx, spec.provenance, names)
    due = min(stale_share(total, window, spec.planning.refresh_days), most)
    oldest = list_stale(tx, spec.provenance, names, window.start, due + len(live))
    free = [one for one in oldest if (one.endpoint, one.provider_id) not in live]
    return list(_named(free[:due], Why.STALE))


def _named(found: Sequence[Found], why: Why) -> Iterator[Candidate]:
    for one in found:
        yield Candidate(one.endpoint, one.provider_id, why, one.row_id)


def _outdated(tx: Connection, rooted: Rooted, names: Sequence[str]) -> list[str]:
    """Return the specs that read records in another way than this one does."""
    shape = record_shape(rooted.compiled.spec)
    found = {
        made_by: find_spec(tx, made_by)
        for made_by in list_fingerprints(tx, rooted.compiled.spec.provenance, names)
    }
    return [name for name, spec in found.items() if spec is None or record_shape(spec) != shape]


def _write(
    tx: Connection, rooted: Rooted, part: Part, decision: Decision, chosen: Sequence[Chosen]
) -> tuple[PlanId, int]:
    spec = rooted.compiled.spec
    sets = cut_ids(chosen, spec.planning.ids_per_slice, spec.planning.buckets)
    how = Cut(SliceStrategy.ID_RANGE, (), partition=part.partition, slices=len(sets))
    counts = dict(Counter(one.why.value for one in chosen))
    decision.facts["candidates"] = counts
    named = keys.digest([[one.endpoint, list(one.ids)] for one in sets])[:12]
    params = {**how.as_json(), "refill": None, "candidates": counts}
    plan_id, _ = ensure_plan(tx, plan_row(rooted, part, decision, params, f"ids-{named}"))
    derivation = Derivation(spec)
    bounds = (Bounds(ids=ids, partition=part.partition) for ids in sets)
    slices = [derivation.slice(no, one, expect(how, spec, one)) for no, one in enumerate(bounds)]
    ensure_slices(tx, plan_id, part.namespace, slices)
    mark_plan(tx, plan_id, PlanStatus.DRAFT, PlanStatus.SLICING, decision.facts["now"])
    return plan_id, len(slices)
