"""Signing functions by name: packages offer them as entry points of `patra_ingest.signers`.

A signer sees the request as it would be sent and answers with what to add. What it adds is treated
as a secret; what it raises is never shown, because it may quote the key.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import entry_points
from typing import Protocol

from patra_ingest.errors import EndpointHalted
from patra_ingest.transport.messages import Request
from patra_ingest.transport.signing import with_param

GROUP = "patra_ingest.signers"
# Shorter values are dates, versions and flags; a signature is longer.
_SHORTEST_SECRET = 8


@dataclass(frozen=True)
class SigningRequest:
    """What a signer is told: the request, complete but for its signature, and the time."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)
    now: datetime


@dataclass(frozen=True)
class Signature:
    """What a signer adds."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    params: Mapping[str, str] = field(default_factory=dict, repr=False)


class Signer(Protocol):
    """A signing function."""

    def __call__(self, request: SigningRequest, secret: str | None, /) -> Signature:
        """Return what makes the source believe that the request is ours."""


class Signers:
    """The signers that are installed, each loaded when it is first asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, Signer] = {}

    def sign(self, request: Request, hook: str, secret: str | None, now: datetime) -> Request:
        """Return the request signed by `hook`; EndpointHalted if there is none, or it fails."""
        signer = self._loaded.get(hook) or self._load(hook)
        parts = SigningRequest(
            request.method, request.full_url, dict(request.headers), request.body, now
        )
        try:
            signature = signer(parts, secret)
        except Exception as error:  # noqa: BLE001 - a stranger's code: anything, and its text may hold the key
            raise EndpointHalted(
                f"the signing hook {hook} failed with {type(error).__name__}: correct it, or the"
                " secret it is given, then resume"
            ) from None
        _require_signature(hook, signature)
        return _added(request, signature, secret)

    def _load(self, hook: str) -> Signer:
        found = {point.name: point for point in entry_points(group=GROUP)}
        if hook not in found:
            listed = ", ".join(sorted(found)) or "none"
            raise EndpointHalted(
                f"there is no signing hook {hook} (installed: {listed}): install the package that"
                f" offers it as an entry point of {GROUP}, then resume"
            )
        try:
            self._loaded[hook] = found[hook].load()
        except (ImportError, AttributeError) as error:
            raise EndpointHalted(
                f"the signing hook {hook} cannot be loaded from {found[hook].value}: "
                f"{type(error).__name__}"
            ) from None
        return self._loaded[hook]


def _require_signature(hook: str, signature: object) -> None:
    if isinstance(signature, Signature):
        pairs = (*signature.headers.items(), *signature.params.items())
        if all(isinstance(text, str) for pair in pairs for text in pair):
            return
    raise EndpointHalted(
        f"the signing hook {hook} returned no Signature of texts but {type(signature).__name__}"
    )


def _added(request: Request, signature: Signature, secret: str | None) -> Request:
    for name, value in signature.params.items():
        request = with_param(request, name, value)
    values = (*signature.headers.values(), *signature.params.values())
    signed = request.with_headers(signature.headers).hiding(secret or "")
    return signed.hiding(*(value for value in values if len(value) >= _SHORTEST_SECRET))
