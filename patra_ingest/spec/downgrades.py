"""What a source cannot give, in one sentence each: stored in the snapshot and in the plan.

A downgrade that the pack does not call intended is shown as a warning.
"""

from collections.abc import Callable, Iterator

from patra_ingest.model.codes import Operation
from patra_ingest.model.records import ChangeRule
from patra_ingest.spec.subject import Subject
from patra_ingest.spec.words import Consistency, Downgrade, Meaning, PagingType, StopRule

_Found = Iterator[tuple[Downgrade, str]]
_Look = Callable[[Subject, frozenset[str]], _Found]


def find_downgrades(subject: Subject, available: frozenset[str]) -> list[str]:
    """Return every downgrade as `CODE: sentence`."""
    found = (pair for look in _LOOKS for pair in look(subject, available))
    return [f"{code}: {sentence}" for code, sentence in found]


def is_intended(warning: str, intended: tuple[Downgrade, ...]) -> bool:
    """Return whether a pack says that it means this downgrade."""
    return warning.partition(":")[0] in intended


def _total(subject: Subject, _available: frozenset[str]) -> _Found:
    total = subject.shaped.paging.total
    if subject.by_ids:
        return
    if total is None:
        yield Downgrade.NO_TOTAL, "the certificate rests on the stop rule alone"
    elif total.is_estimate or total.tolerance:
        share = f"{total.tolerance:.0%}" if total.tolerance else "any share"
        yield Downgrade.ESTIMATED_TOTAL, f"{share} of the promised items may be missing"


def _extra_page(subject: Subject, _available: frozenset[str]) -> _Found:
    paging = subject.shaped.paging
    stop = set(paging.stop or ())
    by_number = paging.type in (PagingType.OFFSET, PagingType.PAGE)
    echoes = StopRule.SAME_TOKEN in stop
    ends = {StopRule.SHORT_PAGE, StopRule.TOTAL_REACHED, StopRule.NO_MORE}
    if (by_number or echoes) and not stop & ends:
        yield Downgrade.EXTRA_PAGE, "one more, empty page is asked for at the end of every slice"


def _update_time(subject: Subject, _available: frozenset[str]) -> _Found:
    source = subject.detail or subject
    if source.shaped.endpoint.changed == ChangeRule.HASH:
        yield Downgrade.NO_UPDATE_TIME, "the content hash alone tells an update"


def _update_filter(subject: Subject, _available: frozenset[str]) -> _Found:
    if subject.operation == Operation.HARVEST and subject.shaped.response.client_window:
        yield Downgrade.NO_UPDATE_FILTER, "what lies outside the window is fetched and dropped"


def _new_only(subject: Subject, _available: frozenset[str]) -> _Found:
    created = subject.shaped.window.meaning == Meaning.CREATED
    if subject.operation == Operation.HARVEST and created:
        yield Downgrade.NEW_ONLY, "a change of a known record is not seen: harvest it elsewhere"


def _unstable(subject: Subject, _available: frozenset[str]) -> _Found:
    paging = subject.shaped.paging
    by_number = paging.type in (PagingType.OFFSET, PagingType.PAGE)
    if by_number and paging.consistency == Consistency.UNSTABLE:
        yield (
            Downgrade.UNSTABLE_WALK,
            "a record that comes or goes during the walk may shift another past a page's edge",
        )


def _unrepeatable(subject: Subject, _available: frozenset[str]) -> _Found:
    if subject.uses("now"):
        yield Downgrade.UNREPEATABLE, "the request depends on ${now}: asked again it differs"


def _anonymous(subject: Subject, available: frozenset[str]) -> _Found:
    names = [named.name for named in subject.declaration.credentials]
    if names and not available.intersection(names):
        needed = ", and the source requires one" if subject.shaped.auth.required else ""
        yield Downgrade.ANONYMOUS, f"no secret of {', '.join(names)} is at hand{needed}"


def _second_split(subject: Subject, _available: frozenset[str]) -> _Found:
    cap = subject.shaped.cap
    if cap.max and not cap.then and not subject.by_ids:
        yield (
            Downgrade.NO_SECOND_SPLIT,
            f"a window at its floor with more than {cap.max} results fails, loudly",
        )


_LOOKS: tuple[_Look, ...] = (
    _total,
    _extra_page,
    _update_time,
    _update_filter,
    _new_only,
    _unstable,
    _unrepeatable,
    _anonymous,
    _second_split,
)
