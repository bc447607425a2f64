"""Which quotas a request of an endpoint spends from, all counted in fixed windows."""

from collections.abc import Iterable
from decimal import Decimal

from patra_ingest.errors import PlanError
from patra_ingest.model.quotas import QuotaRule, floor_amount
from patra_ingest.spec.policies import Quota
from patra_ingest.spec.snapshot import AuthSpec, RateSpec
from patra_ingest.spec.words import QuotaKind, RateScope, duration_text

# Finer parts lose less of a sliding quota: twelve of them leave 12/13 of it to a steady harvest.
_PARTS = 12
# More than anybody spends, and less than the ledger's columns hold.
_MOST = Decimal(10**15)


def rules_of(
    rate: RateSpec, auth: AuthSpec | None = None, used: str | None = None
) -> tuple[QuotaRule, ...]:
    """Return the quotas of the rate key and of every other budget the same request spends from.

    What the source counts by credential is counted for the one that is `used`, and for all of them
    together: that is what a plan may speak for. Where a key has two limits for the same windows
    the smaller one counts. Raises PlanError for a sliding quota that no fixed window can keep.
    """
    cost = Decimal(str(rate.cost))
    signed = auth is not None and (auth.required or auth.chosen is not None)
    many = len(auth.credentials) if auth and signed else 1
    rules = [_rule(shared.key, quota, cost) for shared in rate.also for quota in shared.quotas]
    for quota in rate.quotas:
        if quota.scope is not RateScope.CREDENTIAL or many <= 1:
            rules.append(_rule(rate.key, quota, cost))
            continue
        together = quota.model_copy(update={"limit": quota.limit * many})
        rules.append(_rule(rate.key, together, cost))
        if used is not None:
            rules.append(_rule(key_of(rate, used), quota, cost))
    return _smallest(rules)


def key_of(rate: RateSpec, used: str | None) -> str:
    """Return the key under which the requests with one credential are counted."""
    return f"{rate.key}@{used}"


def _smallest(rules: Iterable[QuotaRule]) -> tuple[QuotaRule, ...]:
    # The smallest comes first under its key, period and zone, and the first one stays.
    kept: dict[object, QuotaRule] = {}
    for rule in sorted(rules):
        kept.setdefault((rule.key, rule.period, rule.zone), rule)
    return tuple(sorted(kept.values()))


def _rule(key: str, quota: Quota, cost: Decimal) -> QuotaRule:
    limit = min(Decimal(str(quota.limit)), _MOST)
    if quota.kind is QuotaKind.FIXED:
        return QuotaRule(key, floor_amount(limit), quota.per, quota.zone)
    return _sliding(key, quota, limit, cost)


def _sliding(key: str, quota: Quota, limit: Decimal, cost: Decimal) -> QuotaRule:
    """Cut the period into n parts with a (n + 1)th of the limit each.

    Any span as long as the period touches at most n + 1 parts, so it never takes more than the
    limit. The parts are as many as leave room for one request in each.
    """
    if limit < 2 * cost:
        raise PlanError(
            f"The sliding quota {quota.limit:g} per {duration_text(quota.per)} of {key} holds"
            f" fewer than two requests of {cost:f}, so it cannot be counted in fixed windows.",
            "Declare it as rate.min_interval instead.",
        )
    parts = min(_PARTS, int(limit / cost) - 1)
    period = -(-quota.per // parts)  # rounded up: the parts are never shorter than the period
    # A sliding span has no calendar: no zone may shorten a part at its midnight.
    return QuotaRule(key, floor_amount(limit / (parts + 1)), period, "UTC")
