"""Which secrets a credential refers to, and which credentials are therefore at hand."""

from collections.abc import Callable

from patra_ingest.spec.declaration import Declaration
from patra_ingest.spec.policies import ApiKey, Basic, Bearer, Credential, OAuth2


def secrets_of(credential: Credential) -> tuple[str, ...]:
    """Return the references that must lead somewhere before a credential can be used."""
    match credential:
        case ApiKey(secret=secret) | Bearer(secret=secret):
            return (secret,)
        case Basic(username=username, password=password):
            return (username,) if password is None else (username, password)
        case OAuth2(client_id=client, client_secret=secret, refresh_token=token):
            return (client, secret) if token is None else (client, secret, token)
        case _:
            return () if credential.secret is None else (credential.secret,)


def at_hand(declaration: Declaration, has_secret: Callable[[str], bool]) -> frozenset[str]:
    """Return the names of the credentials whose every secret is there."""
    detail = declaration.detail.credentials if declaration.detail else ()
    named = (*declaration.credentials, *detail)
    return frozenset(
        each.name for each in named if all(map(has_secret, secrets_of(each.credential)))
    )
