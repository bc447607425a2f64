"""Secrets do not belong into packs and triggers: both are stored, shown and kept for ever."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from patra_ingest.model.secrets import is_secret_name
from patra_ingest.spec.problems import Problem

_REMEDY = "a credential is never written into a pack or a trigger"


def find_written_secrets(request: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for every secret that stands in plain in a request's declaration."""
    if "@" in _netloc(request.get("base_url")):
        yield Problem("request.base_url", "holds a user or password", _REMEDY)
    for part, as_parameter in (("query", True), ("headers", False)):
        for name, value in (request.get(part) or {}).items():
            if is_secret_name(name, as_parameter) and "${" not in str(value):
                yield Problem(f"request.{part}.{name}", "holds a secret in plain", _REMEDY)


def without_secrets(values: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a trigger's values as they may be stored: a request with a secret leaves no value."""
    request = values.get("request", {})
    if not any(find_written_secrets(request)):
        return {group: dict(keys) for group, keys in values.items()}
    hidden = dict.fromkeys(request, "***")
    return {**{group: dict(keys) for group, keys in values.items()}, "request": hidden}


def _netloc(url: object) -> str:
    try:
        return urlsplit(url).netloc if isinstance(url, str) else ""
    except ValueError:
        return ""
