"""Rates, retries and batches: never more than the source publishes, never without end."""

from collections.abc import Iterator

from patra_ingest.spec.problems import Problem
from patra_ingest.spec.subject import Subject


def rates_stay_within_the_vendors(subject: Subject) -> Iterator[Problem]:
    """What the source publishes is the most we may take."""
    rate = subject.shaped.rate
    vendor = rate.vendor
    if vendor is None:
        return
    for key in ("per_second", "in_flight"):
        ours, theirs = getattr(rate, key), getattr(vendor, key)
        if theirs is not None and ours is not None and ours > theirs:
            yield Problem(
                f"rate.{key}", f"{ours} is above the source's {theirs}", f"use {theirs} or less"
            )
        if theirs is not None and ours is None:
            yield Problem(f"rate.{key}", f"is missing; the source allows {theirs}", "declare it")


def the_interval_and_the_rate_agree(subject: Subject) -> Iterator[Problem]:
    """One request per three seconds is not one per second."""
    rate = subject.shaped.rate
    if rate.min_interval is None:
        return
    seconds = rate.min_interval.total_seconds()
    said = subject.merged.origins.get("rate.per_second") != "platform"
    if said and (rate.per_second or 0) * seconds > 1.000001:
        yield Problem(
            "rate.per_second",
            f"{rate.per_second} is faster than one per {seconds:g} s",
            "remove it, or shorten min_interval",
        )
    if (rate.burst or 1) > 1:
        yield Problem("rate.burst", "a burst has no interval", "use 1 with min_interval")


def retries_make_sense(subject: Subject) -> Iterator[Problem]:
    """Delays grow, and a status is retried or given up, not both."""
    retry = subject.shaped.retry
    if retry.initial_delay and retry.max_delay and retry.initial_delay > retry.max_delay:
        yield Problem("retry.initial_delay", "is longer than max_delay", "make it shorter")
    both = sorted(set(retry.statuses or ()) & set(retry.give_up or ()))
    if both:
        listed = ", ".join(map(str, both))
        yield Problem("retry.give_up", f"{listed} is also retried", "take it out of retry.statuses")


def a_breaker_knows_when_to_open(subject: Subject) -> Iterator[Problem]:
    """It counts failures in a row, or their share."""
    breaker = subject.shaped.retry.breaker
    if breaker and breaker.failures is None and breaker.error_share is None:
        yield Problem("retry.breaker", "never opens", "give failures or error_share")


def shared_budgets_are_others(subject: Subject) -> Iterator[Problem]:
    """A key that stands twice would be charged twice."""
    rate = subject.shaped.rate
    keys = [rate.key, *(shared.key for shared in rate.also or ())]
    for key in sorted({key for key in keys if key and keys.count(key) > 1}):
        yield Problem("rate.also", f"{key} would be charged twice", "list it once")


def quotas_are_told_apart(subject: Subject) -> Iterator[Problem]:
    """Two amounts for one period would be one."""
    quotas = subject.shaped.rate.quotas or ()
    periods = [(quota.per, quota.scope) for quota in quotas]
    if len(set(periods)) < len(periods):
        yield Problem("rate.quotas", "two have the same period", "keep the smaller one")
    cost = subject.shaped.rate.cost or 1
    if any(quota.limit < cost for quota in quotas):
        yield Problem(
            "rate.quotas", f"one request costs {cost:g}, more than is allowed", "raise limit"
        )


CHECKS = (
    rates_stay_within_the_vendors,
    the_interval_and_the_rate_agree,
    retries_make_sense,
    a_breaker_knows_when_to_open,
    quotas_are_told_apart,
    shared_budgets_are_others,
)
