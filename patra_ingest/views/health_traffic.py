"""How asking went of late: failed answers, answers that sent us away, items put aside.

One pass over the batches of the last day, by the index on (source, operation, status, time).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from patra_ingest.ledger.db import instant_text
from patra_ingest.views.health_finding import Finding, Look, Severity

_MINUTES = 15  # characters of an instant up to the tens of minutes: 2025-09-20 12:3
_OPERATIONS = "('HARVEST', 'BACKFILL', 'UPDATE')"


@dataclass(frozen=True)
class Spell:
    """What ten minutes brought: batches, and what happened on the way to them.

    `errors` are answers that failed and are not a 429 (L1), and batches given up (L1, L2).
    """

    begins: str
    batches: int
    errors: int
    throttled: int
    items: int
    quarantined: int


def _sum(name: str) -> str:
    return f"SUM(JSON_EXTRACT(stats, '$.\"{name}\"'))"


_DONE = text(f"""
    SELECT SUBSTR(committed_at, 1, {_MINUTES}) AS spell, COUNT(*), {_sum("retryCount")},
           {_sum("429Count")}, {_sum("itemsCount")}, {_sum("quarantined")}
      FROM ing_task_run_batch
     WHERE provenance_code = :provenance AND operation_code IN {_OPERATIONS}
       AND status_code = 'SUCCEEDED' AND committed_at >= :since AND endpoint_name = :endpoint
     GROUP BY spell ORDER BY spell
""")
_FAILED = text(f"""
    SELECT SUBSTR(updated_at, 1, {_MINUTES}) AS spell, COUNT(*) FROM ing_task_run_batch
     WHERE provenance_code = :provenance AND operation_code IN {_OPERATIONS}
       AND status_code = 'FAILED' AND updated_at >= :since AND endpoint_name = :endpoint
       AND (error LIKE 'L1:%' OR error LIKE 'L2:%')
     GROUP BY spell
""")


def list_spells(look: Look) -> list[Spell]:
    """Return the last day in spells of ten minutes, oldest first; those without batches lack."""
    values = {**look.place, "since": instant_text(look.before(days=1))}
    failed = {str(spell): int(count) for spell, count in look.tx.execute(_FAILED, values)}
    found = {}
    for spell, count, *sums in look.tx.execute(_DONE, values):
        retries, throttled, items, bad = (int(one or 0) for one in sums)
        lost, errors = failed.pop(str(spell), 0), max(0, retries - throttled)
        found[str(spell)] = Spell(
            str(spell), int(count) + lost, errors + lost, throttled, items, bad
        )
    for begins, count in failed.items():
        found[begins] = Spell(begins, count, count, 0, 0, 0)
    return [found[begins] for begins in sorted(found)]


def judge_errors(look: Look, spells: Iterable[Spell]) -> Finding:
    """Say whether too many answers fail; throttling is the other check's."""
    return _judge_share(
        look, spells, "error_rate", "failed answers", lambda one: one.errors, look.lines.error_share
    )


def judge_throttling(look: Look, spells: Iterable[Spell]) -> Finding:
    """Say whether the source turns us away too often."""
    name, line = "throttled_share", look.lines.throttled_share
    return _judge_share(look, spells, name, "answers 429", lambda one: one.throttled, line)


def _judge_share(
    look: Look,
    spells: Iterable[Spell],
    check: str,
    what: str,
    count: Callable[[Spell], int],
    line: float,
) -> Finding:
    """WARN for ten bad minutes within the last hour, ERROR when the hour as a whole is bad."""
    hour = [one for one in spells if one.begins >= _spell(look.before(hours=1))]
    batches, bad = sum(one.batches for one in hour), sum(map(count, hour))
    if not batches:
        return look.fine(check, "No batch in the last hour.", 0.0, line)
    share = bad / batches
    enough = look.lines.fewest_errors
    over = [one for one in hour if count(one) >= enough and count(one) / one.batches > line]
    worst = max(hour, key=lambda one: count(one) / one.batches)
    told = f"{bad} {what} for {batches} batches in the last hour"
    numbers = {"batches": batches, "bad": bad, "worst_ten_minutes": f"{worst.begins}0"}
    if share > line and bad >= enough:
        why = f"{told}: {share:.1%}, more than {line:.0%}."
        return look.bad(check, Severity.ERROR, why, share, line, **numbers)
    if over:
        at = over[-1]
        why = f"{count(at)} {what} for {at.batches} batches in the ten minutes from {at.begins}0."
        return look.bad(check, Severity.WARN, why, count(at) / at.batches, line, **numbers)
    return look.fine(check, f"{told}: {share:.1%}.", share, line)


def judge_quarantine(look: Look, spells: Iterable[Spell]) -> Finding:
    """Say whether too many of the last day's items were put aside."""
    day = list(spells)
    items, bad = sum(one.items for one in day), sum(one.quarantined for one in day)
    check, line, error = "quarantine_share", look.lines.quarantine_share, "quarantine_share_error"
    share = bad / items if items else 0.0
    told = f"{bad} of {items} items of the last day are in quarantine ({share:.2%})"
    if share <= line:
        return look.fine(check, f"{told}.", share, line)
    severity = Severity.ERROR if share > getattr(look.lines, error) else Severity.WARN
    why = f"{told}, more than {line:.0%}: `ing_quarantine.reason` says why."
    return look.bad(check, severity, why, share, line, items=items, quarantined=bad)


def _spell(at: datetime) -> str:
    return instant_text(at)[:_MINUTES]
