"""Two phases: a search that yields ids, and an endpoint that turns them into records."""

from collections.abc import Iterator

from patra_ingest.model.codes import EndpointUsage
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.subject import Subject
from patra_ingest.spec.words import PagingType


def the_detail_endpoint_is_there(subject: Subject) -> Iterator[Problem]:
    """The pair is complete: the second endpoint exists and is a DETAIL."""
    said = subject.merged.values["detail"]
    named = subject.shaped.detail.endpoint
    begun = any(subject.merged.origins.get(f"detail.{key}") != "platform" for key in said)
    if begun and not named and not subject.by_ids:
        yield Problem("detail.endpoint", "is missing", "name the endpoint that takes the ids")
    if named and subject.detail is None and not subject.is_detail:
        yield Problem(
            "detail.endpoint",
            f"there is no endpoint {named}",
            f"endpoints: {', '.join(subject.declaration.endpoints)}",
        )
    usage = subject.detail and subject.detail.shaped.endpoint.usage
    if usage and usage != EndpointUsage.DETAIL:
        yield Problem("detail.endpoint", f"{named} is a {usage} endpoint", "set usage: DETAIL")


def a_detail_is_the_end(subject: Subject) -> Iterator[Problem]:
    """A DETAIL endpoint makes the records itself, in one answer for all its ids."""
    if subject.is_detail and subject.shaped.detail.endpoint:
        yield Problem("detail.endpoint", "a detail has no detail of its own", "remove it")
    paging, batching = subject.shaped.paging, subject.shaped.batching
    fits = (paging.page_size or 0) >= (batching.ids_per_request or 0)
    one_page = paging.type in (None, PagingType.NONE)
    if subject.by_ids and one_page and subject.sends_page_size() and not fits:
        yield Problem(
            "paging.page_size",
            f"{paging.page_size} is less than the {batching.ids_per_request} ids asked for at once",
            f"use {batching.ids_per_request} or more",
        )


def a_detail_batch_fits(subject: Subject) -> Iterator[Problem]:
    """Not more ids at once than the detail endpoint takes."""
    if subject.detail is None:
        return
    most = subject.detail.shaped.batching.ids_per_request or 0
    if (subject.shaped.detail.batch or most) > most:
        yield Problem(
            "detail.batch",
            f"{subject.shaped.detail.batch} is more than the {most} ids that are taken at once",
            f"use {most} or less, or raise batching.ids_per_request of the detail endpoint",
        )


def fields_come_from_the_detail(subject: Subject) -> Iterator[Problem]:
    """With two phases the first one yields ids; its items are no records."""
    if subject.detail is not None and subject.shaped.endpoint.fields:
        yield Problem("endpoint.fields", "the detail endpoint makes the records", "move them there")


def what_is_refreshed_is_there(subject: Subject) -> Iterator[Problem]:
    """A DETAIL may name the searches whose records it refreshes; they must be there."""
    endpoint, known = subject.shaped.endpoint, subject.declaration.endpoints
    if endpoint.refreshes and endpoint.usage != EndpointUsage.DETAIL:
        yield Problem(
            "endpoint.refreshes", f"a {endpoint.usage} endpoint refreshes its own", "remove it"
        )
    for name in endpoint.refreshes or ():
        if name not in known:
            listed = f"endpoints: {', '.join(known)}"
            yield Problem("endpoint.refreshes", f"there is no endpoint {name}", listed)


CHECKS = (
    the_detail_endpoint_is_there,
    a_detail_is_the_end,
    a_detail_batch_fits,
    fields_come_from_the_detail,
    what_is_refreshed_is_there,
)
