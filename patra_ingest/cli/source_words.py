"""The words of a pack as a librarian would say them. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from patra_ingest.model.records import ChangeRule
from patra_ingest.registry.provenance import EvidenceGrade, EvidencePart
from patra_ingest.spec.parts import PagingPart
from patra_ingest.spec.places import When
from patra_ingest.spec.planning import Courtesy
from patra_ingest.spec.policies import Credential, Quota, RatePart
from patra_ingest.spec.references import secrets_of
from patra_ingest.spec.snapshot import CapSpec, RateSpec, SpecSnapshot, WindowSpec
from patra_ingest.spec.words import Action, Meaning, MissingIds, StopRule, duration_text

MEANINGS: Mapping[Meaning, str] = {
    Meaning.UPDATED: "when a record was last changed",
    Meaning.INDEXED: "when a record was last indexed",
    Meaning.CREATED: "when a record was added",
    Meaning.PUBLISHED: "when a work was published",
    Meaning.NONE: "no date at all",
}
PAGES: Mapping[str, str] = {
    "NONE": "one answer, no pages",
    "OFFSET": "by offset",
    "PAGE": "by page number",
    "TOKEN": "by the token that each answer hands out",
    "URL": "by the address that each answer hands out",
    "TIME": "by the update time of the last item",
}
STOPS: Mapping[StopRule, str] = {
    StopRule.NO_TOKEN: "no next token comes",
    StopRule.SAME_TOKEN: "the token that was sent comes back",
    StopRule.EMPTY_PAGE: "a page is empty",
    StopRule.SHORT_PAGE: "a page is not full",
    StopRule.TOTAL_REACHED: "the promised total is reached",
    StopRule.NO_MORE: "the source says that there is no more",
    StopRule.ONE_PAGE: "there is only one",
}
ACTIONS: Mapping[Action, str] = {
    Action.RETRY: "ask again after a pause",
    Action.THROTTLE: "everybody waits, then asks more slowly",
    Action.EMPTY: "there is nothing, which is fine",
    Action.RESTART_SLICE: "the slice begins again at its first page",
    Action.RESLICE: "the slice is cut finer",
    Action.SHRINK_PAGE: "ask for half a page",
    Action.GONE: "the record does not exist any more",
    Action.RENEW_TOKEN: "fetch a new token and ask again",
    Action.REJECT: "this request has failed; asking again cannot help",
    Action.FATAL: "the endpoint is held until a person has looked",
}
GRADES: Mapping[EvidenceGrade, str] = {
    EvidenceGrade.LIVE: "the source itself was read with this pack",
    EvidenceGrade.RECORDED: "answers that the source once gave were read with this pack",
    EvidenceGrade.DOCUMENTED: "by the source's own documentation or code",
    EvidenceGrade.REPORTED: "by what others say who use the source",
    EvidenceGrade.ASSUMED: "nobody has looked",
}
CHANGES: Mapping[ChangeRule, str] = {
    ChangeRule.NEWER: "a later update time",
    ChangeRule.NEWER_OR_HASH: "a later update time, or another content at the same time",
    ChangeRule.HASH: "another content",
}
MISSING: Mapping[MissingIds, str] = {
    MissingIds.GONE: "an id that lacks is gone",
    MissingIds.RETRY_THEN_GONE: "an id that lacks is asked for again, then gone",
    MissingIds.FAIL: "an id that lacks is an error",
}
_CLOCK = (
    (timedelta(hours=1), "hour"),
    (timedelta(minutes=1), "minute"),
    (timedelta(seconds=1), "second"),
)
_GRAINS = {
    timedelta(seconds=1): "second",
    timedelta(minutes=1): "minute",
    timedelta(hours=1): "hour",
    timedelta(days=1): "day",
}


def span(length: timedelta) -> str:
    """Write a length of time in full: `1 day`, `90 minutes`."""
    for unit, name in ((timedelta(days=1), "day"), *_CLOCK):
        count, rest = divmod(length, unit)
        if count and not rest:
            return f"{count} {name}" if count == 1 else f"{count} {name}s"
    return duration_text(length)


def evidence_words(evidence: EvidencePart | None) -> str:
    """Say when a source was last looked at, and how closely."""
    if evidence is None:
        return "not said"
    grade = f", {evidence.grade}: {GRADES[evidence.grade]}" if evidence.grade else ""
    return f"{evidence.date}{grade}" + (f" ({evidence.note})" if evidence.note else "")


def fresh_words(window: WindowSpec, delay: timedelta | None) -> str:
    """Say how late a record is seen at the earliest, and how far each question reaches back."""
    late = f"; records appear after about {span(delay)}" if delay else ""
    again = window.overlap + window.lookback
    back = f"; each question reaches {span(again)} further back" if again else ""
    return f"{span(window.safety_lag)} after the event{late}{back}"


def window_words(window: WindowSpec) -> str:
    """Say what is filtered by, how finely, and by whose clock."""
    if window.meaning is Meaning.NONE:
        return "the source filters by no date"
    grain = _GRAINS.get(window.granularity) or duration_text(window.granularity)
    return f"`{window.watermark_key}`: {MEANINGS[window.meaning]}; to the {grain}, {window.zone}"


def paging_words(spec: SpecSnapshot, said: PagingPart | None) -> str:
    """Say how the pages go, how long they are, and what ends them."""
    paging = spec.paging
    most = said.max_page_size if said else None
    length = f"{paging.page_size:,} items" + (
        f" (the source gives {most:,} at most)" if most else ""
    )
    if paging.type == "NONE":
        return f"{PAGES['NONE']}; {length}"
    ends = " or ".join(STOPS[rule] for rule in paging.stop)
    return f"{PAGES[paging.type]}, {length}; the last is the one where {ends}"


def total_words(spec: SpecSnapshot) -> str:
    """Say what a slice is held against."""
    total = spec.paging.total
    if total is None:
        return "the source promises none; what ends the pages is all the proof"
    where = code(total.path) if total.path else f"header `{total.header}`"
    if total.is_estimate:
        return f"{where}, an estimate"
    off = f", {total.tolerance:.0%} may be missing" if total.tolerance else ""
    return f"{where}{off}"


def cap_words(cap: CapSpec) -> str | None:
    """Say what is done with more results than one question gives."""
    if cap.max is None:
        return None
    by = [split.by.lower() for split in cap.then]
    then = f", then by {' and '.join(by)}" if by else "; a window at its floor with more fails"
    return f"{cap.max:,} for one question; more are cut finer by time{then}"


def rate_words(rate: RateSpec) -> str:
    """Say how fast we go."""
    speed = f"{rate.per_second:g} a second"
    if rate.min_interval is not None:
        speed = f"one in {span(rate.min_interval)}"
    parts = [speed]
    if rate.in_flight is not None:
        parts.append(f"{rate.in_flight} at a time")
    parts += [quota_words(quota) for quota in rate.quotas]
    return ", ".join(parts)


def quota_words(quota: Quota) -> str:
    """Say how much there is of a quota."""
    return f"{quota.limit:,.10g} in {span(quota.per)}"


def vendor_words(rate: RatePart | None) -> str | None:
    """Say what the source publishes as its limit."""
    vendor = rate.vendor if rate else None
    if vendor is None:
        return None
    speed = [f"{vendor.per_second:g} a second"] if vendor.per_second else []
    flight = [f"{vendor.in_flight} at a time"] if vendor.in_flight else []
    return ", ".join([*speed, *flight]) or None


def courtesy_words(courtesy: Courtesy | None) -> str | None:
    """Say when large jobs run."""
    if courtesy is None:
        return None
    weekends = ", and on weekends" if courtesy.weekends else ""
    return (
        f"{courtesy.hours} in {courtesy.zone}{weekends},"
        f" for a BACKFILL of {courtesy.from_requests} requests or more"
    )


def secret_words(credential: Credential) -> str:
    """Say where the secrets of a credential are looked for."""
    places = [_place(reference) for reference in secrets_of(credential)]
    return " and ".join(places) or "no secret"


def _place(reference: str) -> str:
    kind, _, name = reference.partition(":")
    return f"`{name}`" if kind == "env" else f"the file `{name}`"


def unlock_words(credential: Credential) -> str:
    """Say what the source allows with a credential."""
    parts = []
    for group, values in (credential.unlocks or {}).items():
        for key, value in values.items():
            if (group, key) == ("rate", "per_second"):
                parts.append(f"{value:g} a second")
            elif (group, key) == ("rate", "in_flight"):
                parts.append(f"{value} at a time")
            elif (group, key) == ("rate", "quotas"):
                parts += [quota_words(Quota.model_validate(each)) for each in value]
            elif (group, key) not in (("rate", "vendor"), ("rate", "key"), ("rate", "burst")):
                parts.append(code(f"{group}.{key}: {value}"))
    return ", ".join(parts) or "—"


def when_words(when: When) -> str:
    """Say which answers a rule is for."""
    return " and ".join(_conditions(when))


def _conditions(when: When) -> Iterator[str]:
    if when.status is not None:
        statuses = when.status if isinstance(when.status, tuple) else (when.status,)
        yield f"status {' or '.join(map(str, statuses))}"
    if when.text is not None:
        yield f"the text {code(when.text)}"
    subject = code(when.path) if when.path else f"header `{when.header}`" if when.header else ""
    tests: Iterable[tuple[str, Any]] = (
        ("is there" if when.exists else "is not there", when.exists),
        ("is empty" if when.empty else "is not empty", when.empty),
        (f"is {code(str(when.equals))}", when.equals),
        (f"is one of {', '.join(map(str, when.one_of or ()))}", when.one_of),
        (f"matches {code(str(when.matches))}", when.matches),
    )
    yield from (f"{subject} {words}" for words, said in tests if said is not None)


def code(text: str) -> str:
    """Write a word of a pack or a source as it stands, also in a cell of a table."""
    safe = text.replace("|", "\\|")
    return f"`` {safe} ``" if "`" in safe else f"`{safe}`"
