"""What a person types after `--set`, as overrides of one trigger."""

from collections.abc import Iterable
from typing import Any

import yaml

from patra_ingest.errors import PlanError
from patra_ingest.spec.declaration import GROUPS, Overrides
from patra_ingest.spec.merge import MAPS

_REMEDY = "Write --set group.key=value, for example --set paging.page_size=50."


def parse_overrides(texts: Iterable[str]) -> Overrides:
    """Return the overrides of `group.key=value` texts; `params.name=value` adds a parameter."""
    values: dict[str, dict[str, Any]] = {}
    params: dict[str, str] = {}
    for text in texts:
        path, equals, value = text.partition("=")
        group, dot, key = path.strip().partition(".")
        if not (equals and dot and key):
            raise PlanError(f"{text!r} is not an override.", _REMEDY)
        if group == "params":
            params[key] = value
        elif group in GROUPS:
            _put(values.setdefault(group, {}), group, key, _value(value))
        else:
            raise PlanError(
                f"{text!r}: there is no group {group!r}.",
                f"Groups: {', '.join((*GROUPS, 'params'))}.",
            )
    return Overrides(values, params)


def _put(keys: dict[str, Any], group: str, key: str, value: Any) -> None:
    """Set a key; `request.query.rows` is one name of the map `request.query`."""
    map_key, dot, name = key.partition(".")
    if dot and f"{group}.{map_key}" in MAPS:
        keys.setdefault(map_key, {})[name] = value
    else:
        keys[key] = value


def _value(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text
