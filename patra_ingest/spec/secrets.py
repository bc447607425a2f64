"""Secrets do not belong into packs and triggers: both are stored, shown and kept for ever."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from patra_ingest.model.secrets import is_secret_name
from patra_ingest.spec.declaration import Overrides
from patra_ingest.spec.problems import Problem

_REMEDY = "a credential is never written into a pack or a trigger"


def find_written_secrets(request: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for every secret that stands in plain in a request's declaration."""
    if "@" in _netloc(request.get("base_url")):
        yield Problem("request.base_url", "holds a user or password", _REMEDY)
    for part, as_parameter in (("query", True), ("headers", False)):
        for name, value in (request.get(part) or {}).items():
            # A page's token or our own identity may stand there; what a trigger says is stored.
            plain = "${" not in str(value) or "${params." in str(value)
            if plain and is_secret_name(name, as_parameter):
                yield Problem(f"request.{part}.{name}", "holds a secret in plain", _REMEDY)


def find_secret_params(names: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem for every parameter of a trigger whose name says that it is a secret."""
    for name in sorted(names):
        if is_secret_name(name, as_parameter=True):
            yield Problem(f"params.{name}", "would be stored with the trigger", _REMEDY)


def without_values(overrides: Overrides) -> Overrides:
    """Return what a refused trigger asked for by name only: its values may hold the secret."""
    return Overrides(
        {group: dict.fromkeys(keys, "***") for group, keys in overrides.values.items()},
        dict.fromkeys(overrides.params, "***"),
    )


def _netloc(url: object) -> str:
    try:
        return urlsplit(url).netloc if isinstance(url, str) else ""
    except ValueError:
        return ""
