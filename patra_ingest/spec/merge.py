"""Layers of a declaration become one set of values, each labelled with where it came from.

Precedence, low to high: platform, provenance, endpoint, configuration rows, credential, trigger.
The endpoint's own parameter names win over those of its configuration rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from patra_ingest.spec.declaration import GROUPS, Declaration, Layer, Overrides
from patra_ingest.spec.platform import PLATFORM

# Laid over each other name by name; a null takes a name away.
MAPS = frozenset(
    {f"request.{key}" for key in ("query", "first", "next", "headers", "form", "body")}
    | {"http.headers", "http.query"}
)
_NAMES = {
    "size": ("paging", "size_param"),
    "offset": ("paging", "offset_param"),
    "page": ("paging", "page_param"),
    "token": ("paging", "token_param"),
    "ids": ("batching", "ids_param"),
}
TRIGGER = "--set "
_PROVENANCE = {"request.base_url": "provenance.base_url", "window.zone": "provenance.timezone"}


@dataclass(frozen=True)
class Merged:
    """The final values by group and key, the origin of each, and its place in the pack."""

    values: dict[str, dict[str, Any]]
    origins: dict[str, str]
    places: dict[str, str]
    homes: dict[str, str]  # where a group is spoken of: that is where a missing key belongs
    endpoint: str

    def place(self, path: str) -> str:
        """Return where `group.key…` stands in the pack, or where it would have to."""
        group, _, rest = path.partition(".")
        if group not in GROUPS or path.startswith(("auth.credentials", "--set ")):
            return path
        parts = rest.split(".")
        for length in (2, 1):  # one name of a map may come from elsewhere than its neighbours
            said = ".".join(parts[:length])
            if known := self.places.get(f"{group}.{said}"):
                return ".".join([known, *parts[length:]])
        if path in _PROVENANCE:
            return _PROVENANCE[path]
        home = self.homes.get(group, f"endpoints.{self.endpoint}.")
        return _place(home, group, rest)


def merge(declaration: Declaration, overrides: Overrides, unlocked: Iterable[Layer] = ()) -> Merged:
    """Lay the layers over each other; a higher layer's value wins, an absent one inherits."""
    merged = Merged({group: {} for group in GROUPS}, {}, {}, {}, declaration.endpoint)
    platform, trigger = Layer("platform", PLATFORM), Layer("trigger", overrides.values, TRIGGER)
    for layer in (platform, *declaration.layers, *unlocked, trigger):
        for group, keys in layer.values.items():
            for key, value in keys.items():
                if value is not None:
                    _lay(merged, layer, group, key, value)
    _name_params(merged)
    return merged


def _lay(merged: Merged, layer: Layer, group: str, key: str, value: Any) -> None:
    said = _place(layer.where, group, key)
    # The address of a source may be given with its HTTP policy; it is a part of the request.
    home = "request" if key == "base_url" else group
    path = f"{home}.{key}"
    keys = merged.values.setdefault(home, {})
    names = list(value) if path in MAPS and isinstance(value, Mapping) else []
    if names:
        value = {**keys.get(key, {}), **value}
    keys[key] = value
    merged.origins[path] = layer.origin
    if layer.origin == "platform":
        return
    if layer.where == "provenance.":
        said = _PROVENANCE.get(path, said)
    merged.places[path] = said
    merged.places.update({f"{path}.{name}": f"{said}.{name}" for name in names})
    if layer.where not in (TRIGGER, "provenance."):
        merged.homes[group] = layer.where


def _name_params(merged: Merged) -> None:
    for name, (group, key) in _NAMES.items():
        if own := merged.values["names"].get(name):
            merged.values[group][key] = own
            merged.origins[f"{group}.{key}"] = merged.origins[f"names.{name}"]
            merged.places[f"{group}.{key}"] = merged.places[f"names.{name}"]


def _place(prefix: str, group: str, key: str) -> str:
    bare = group == "endpoint" and prefix != TRIGGER
    return prefix + (key if bare else f"{group}.{key}")
