"""Whether an endpoint is healthy, as data: ten checks, each answered by bounded queries.

What they ask and why is in `docs/auditing.md`; Dagster shows them as asset checks.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import cached_property
from types import MappingProxyType

from sqlalchemy import Connection, text

from patra_ingest.views.health_cadence import read_cadence
from patra_ingest.views.health_finding import Finding as Finding
from patra_ingest.views.health_finding import Look
from patra_ingest.views.health_finding import Severity as Severity
from patra_ingest.views.health_finding import Thresholds as Thresholds
from patra_ingest.views.health_harvest import (
    Harvest,
    judge_coverage,
    judge_freshness,
    judge_lag,
    list_harvests,
)
from patra_ingest.views.health_state import (
    judge_completeness,
    judge_fold,
    judge_hold,
    judge_outbox,
)
from patra_ingest.views.health_traffic import (
    Spell,
    judge_errors,
    judge_quarantine,
    judge_throttling,
    list_spells,
)


class _Seen:
    """What several checks ask for; asked once, and only if one of them is wanted."""

    def __init__(self, look: Look) -> None:
        self.look = look

    @cached_property
    def harvests(self) -> list[Harvest]:
        return list_harvests(self.look)

    @cached_property
    def spells(self) -> list[Spell]:
        return list_spells(self.look)


_JUDGES: Mapping[str, Callable[[_Seen], Finding]] = MappingProxyType(
    {
        "completeness": lambda seen: judge_completeness(seen.look),
        "coverage": lambda seen: judge_coverage(seen.look, seen.harvests),
        "cursor_lag": lambda seen: judge_lag(seen.look, seen.harvests),
        "cursor_fold": lambda seen: judge_fold(seen.look, [h.namespace for h in seen.harvests]),
        "error_rate": lambda seen: judge_errors(seen.look, seen.spells),
        "throttled_share": lambda seen: judge_throttling(seen.look, seen.spells),
        "quarantine_share": lambda seen: judge_quarantine(seen.look, seen.spells),
        "freshness": lambda seen: judge_freshness(seen.look, seen.harvests),
        "outbox_backlog": lambda seen: judge_outbox(seen.look),
        "no_hold": lambda seen: judge_hold(seen.look),
    }
)
CHECKS = tuple(_JUDGES)

_PLANNED = text("""
    SELECT 1 FROM ing_plan WHERE provenance_code = :provenance AND endpoint_name = :endpoint LIMIT 1
""")


def was_planned(tx: Connection, provenance: str, endpoint: str) -> bool:
    """Say whether anything of an endpoint was ever planned."""
    values = {"provenance": provenance, "endpoint": endpoint}
    return tx.execute(_PLANNED, values).first() is not None


def judge_health(
    tx: Connection,
    now: datetime,
    thresholds: Thresholds,
    provenance: str,
    endpoint: str,
    wanted: Collection[str] = CHECKS,
) -> list[Finding]:
    """Return what the wanted checks say of one endpoint, in the order of `CHECKS`."""
    cadence = read_cadence(tx, provenance, endpoint, now)
    seen = _Seen(Look(tx, now, thresholds, provenance, endpoint, cadence))
    return [judge(seen) for name, judge in _JUDGES.items() if name in wanted]
