"""Secrets do not belong into packs and triggers: both are stored, shown and kept for ever."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from patra_ingest.model.secrets import is_secret_name
from patra_ingest.spec.declaration import Overrides
from patra_ingest.spec.parts import CapPart, RequestPart
from patra_ingest.spec.places import templates_of
from patra_ingest.spec.policies import Credential, HttpPart, OAuth2
from patra_ingest.spec.problems import Problem

_PLACE = re.compile(r"\s*\$\{[^{}]+\}\s*")
_REMEDY = "declare it under auth.credentials and refer to it, as secret: env:NAME"
_IN_TRIGGER = "a credential is never written into a pack or a trigger"


def find_secrets_in_request(request: RequestPart) -> Iterator[Problem]:
    """Yield a problem for every secret that stands in plain in a request."""
    yield from _in_address("request.base_url", request.base_url)
    yield from _in_path(request.path or "")
    for part in ("query", "first", "next", "form"):
        yield from _in_params(f"request.{part}", getattr(request, part), as_parameter=True)
    yield from _in_params("request.headers", request.headers, as_parameter=False)
    yield from _in_body("request.body", request.body)


def find_secrets_in_http(http: HttpPart) -> Iterator[Problem]:
    """Yield a problem for every secret that stands in plain in an HTTP policy."""
    yield from _in_params("http.query", http.query, as_parameter=True)
    yield from _in_params("http.headers", http.headers, as_parameter=False)
    yield from _in_address("http.proxy", http.proxy)


def find_secrets_in_cap(cap: CapPart) -> Iterator[Problem]:
    """Yield a problem for every secret that stands in plain in a probe."""
    if cap.probe:
        yield from _in_params("cap.probe.query", cap.probe.query, as_parameter=True)
        yield from _in_params("cap.probe.form", cap.probe.form, as_parameter=True)
        yield from _in_body("cap.probe.body", cap.probe.body)


def find_secrets_in_credential(where: str, credential: Credential) -> Iterator[Problem]:
    """Yield a problem for every secret that a credential unlocks in plain."""
    yield from _in_body(f"{where}.unlocks", credential.unlocks)
    if isinstance(credential, OAuth2):
        yield from _in_address(f"{where}.token_url", credential.token_url)


def find_secret_params(names: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem for every parameter of a trigger whose name says that it is a secret."""
    for name in sorted(names):
        if is_secret_name(name, as_parameter=True):
            yield Problem(f"--set params.{name}", "would be stored with the trigger", _IN_TRIGGER)


def without_values(overrides: Overrides) -> Overrides:
    """Return what a refused trigger asked for by name only: its values may hold the secret."""
    return Overrides(
        {group: dict.fromkeys(keys, "***") for group, keys in overrides.values.items()},
        dict.fromkeys(overrides.params, "***"),
        None if overrides.query is None else {"query": "***"},
        overrides.lenient,
    )


def _in_address(path: str, url: str | None) -> Iterator[Problem]:
    if url is not None and "@" in _netloc(url):
        yield Problem(path, "holds a user or password", _REMEDY)


def _in_path(path: str) -> Iterator[Problem]:
    if "://" in path:
        yield from _in_address("request.path", path)
    query = path.partition("?")[2]
    for name, value in parse_qsl(query, keep_blank_values=True):
        if is_secret_name(name, as_parameter=True) and _is_plain(value):
            yield Problem("request.path", f"holds the secret {name} in plain", _REMEDY)


def find_secrets_in_partitions(
    partitions: Mapping[str, Mapping[str, str | None]] | None,
) -> Iterator[Problem]:
    """Yield a problem for every secret that stands in plain in a partition."""
    for name, values in (partitions or {}).items():
        yield from _in_params(f"endpoint.partitions.{name}", values, as_parameter=True)


def _in_params(
    path: str, params: Mapping[str, Any] | None, as_parameter: bool
) -> Iterator[Problem]:
    for name, param in (params or {}).items():
        if param is None or not is_secret_name(name, as_parameter):
            continue
        if any(_is_plain(text) for text in templates_of(param)):
            yield Problem(f"{path}.{name}", "holds a secret in plain", _REMEDY)


def _in_body(path: str, body: Any) -> Iterator[Problem]:
    if isinstance(body, Mapping):
        for name, value in body.items():
            as_parameter = path.rpartition(".")[2] in ("query", "first", "next", "form")
            if is_secret_name(name, as_parameter) and any(map(_is_plain, _texts(value))):
                yield Problem(f"{path}.{name}", "holds a secret in plain", _REMEDY)
            yield from _in_body(f"{path}.{name}", value)
    elif isinstance(body, list | tuple):
        for number, value in enumerate(body):
            yield from _in_body(f"{path}[{number}]", value)


def _texts(value: Any) -> list[str]:
    """Return the text of a value, or the templates of a parameter in full."""
    if isinstance(value, Mapping):
        value = value.get("value") or value.get("clauses")
    several = value if isinstance(value, list | tuple) else [value]
    return [text for text in several if isinstance(text, str)]


def _is_plain(text: str) -> bool:
    # A page's token or our own identity may stand there; what a trigger says is stored.
    return not _PLACE.fullmatch(text) or "params." in text


def _netloc(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""
