"""Credentials: there where one is required, placed where it can travel, by reference only."""

import re
from collections.abc import Iterator

from pydantic import ValidationError

from patra_ingest.model.codes import HttpMethod, InboundLocation, OauthGrantType
from patra_ingest.spec.declaration import PARTS
from patra_ingest.spec.policies import ApiKey, OAuth2
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.shapes import problem_of
from patra_ingest.spec.subject import Subject

_TOKEN_URL = re.compile(r"https://[A-Za-z0-9.-]+(?::\d+)?(?:/[^\s@]*)?", re.ASCII)


def a_required_credential_is_declared(subject: Subject) -> Iterator[Problem]:
    """A closed endpoint is never asked anonymously."""
    auth = subject.shaped.auth
    names = [named.name for named in subject.declaration.credentials]
    if auth.required and not names:
        yield Problem("auth.required", "there is no credential", "declare auth.credentials")
    if auth.use and auth.use not in names:
        listed = ", ".join(names) or "none"
        yield Problem("auth.use", f"there is no credential {auth.use}", f"credentials: {listed}")


def a_key_travels_where_it_can(subject: Subject) -> Iterator[Problem]:
    """A GET has no body that could carry a key."""
    is_get = subject.shaped.request.method == HttpMethod.GET
    for named in subject.credentials:
        key = named.credential
        if isinstance(key, ApiKey) and key.location == InboundLocation.BODY and is_get:
            yield Problem(f"{named.place}.location", "GET carries no body", "use HEADER")


def tokens_are_fetched_safely(subject: Subject) -> Iterator[Problem]:
    """A client secret is sent over HTTPS only, and a refresh needs its token."""
    for named in subject.credentials:
        oauth = named.credential
        if not isinstance(oauth, OAuth2):
            continue
        where = named.place
        if not _TOKEN_URL.fullmatch(oauth.token_url):
            yield Problem(f"{where}.token_url", "is no HTTPS address", "use https://host/path")
        if oauth.grant == OauthGrantType.REFRESH_TOKEN and not oauth.refresh_token:
            yield Problem(f"{where}.refresh_token", "is missing", "refer to it, as env:NAME")
        if oauth.grant not in (OauthGrantType.CLIENT_CREDENTIALS, OauthGrantType.REFRESH_TOKEN):
            yield Problem(
                f"{where}.grant",
                f"{oauth.grant} is not supported",
                "use CLIENT_CREDENTIALS or REFRESH_TOKEN",
            )


def what_a_credential_unlocks_is_known(subject: Subject) -> Iterator[Problem]:
    """What it unlocks is said in the words of the language."""
    for named in subject.credentials:
        for group, values in (named.credential.unlocks or {}).items():
            where = f"{named.place}.unlocks.{group}"
            part = PARTS.get(group)
            if part is None:
                yield Problem(where, "is not a known group", f"groups: {', '.join(PARTS)}")
                continue
            try:
                part.model_validate(values)
            except ValidationError as error:
                for detail in error.errors(include_url=False):
                    yield problem_of(detail, where, part)


CHECKS = (
    a_required_credential_is_declared,
    a_key_travels_where_it_can,
    tokens_are_fetched_safely,
    what_a_credential_unlocks_is_known,
)
