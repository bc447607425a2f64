"""Layers of a declaration become one set of values, each labelled with where it came from.

Precedence, low to high: platform, provenance, endpoint, configuration rows, trigger.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from patra_ingest.model.codes import UpperBound, WatermarkSource
from patra_ingest.model.records import ChangeRule
from patra_ingest.spec.declaration import GROUPS, Declaration, Layer, Overrides
from patra_ingest.spec.snapshot import StopRule

# Every default of the platform, in one table.
PLATFORM = Layer(
    "platform",
    {
        "request": {"method": "GET", "query": {}, "headers": {}},
        "http": {
            "connect_timeout_ms": 10_000,
            "read_timeout_ms": 30_000,
            "total_timeout_ms": 60_000,
            "follow_redirects": False,
            "allow_insecure_http": False,
        },
        "paging": {
            "page_size": 100,
            "stop": [StopRule.NO_TOKEN, StopRule.EMPTY_PAGE],
        },
        "window": {
            "watermark_key": "updated_at",
            "watermark_source": WatermarkSource.WINDOW_END,
            "safety_lag": 600,
            "overlap": 0,
            "max_span": 86_400,
            "granularity": "SECOND",
            "upper_bound": UpperBound.INCLUSIVE,
        },
        "response": {"client_window": False},
        "mapping": {"fields": [], "changed": ChangeRule.NEWER},
        "retry": {
            "max_attempts": 5,
            "initial_delay_ms": 100,
            "max_delay_ms": 30_000,
            "multiplier": 2.0,
            "jitter": 0.2,
            "retry_statuses": [408, 425, 429, 500, 502, 503, 504],
        },
        "rate": {"per_second": 1.0, "burst": 1.0, "cost": 1.0},
    },
)


@dataclass(frozen=True)
class Merged:
    """The final values of every group, and the origin of each (`rate.burst` → `platform`)."""

    values: dict[str, dict[str, Any]]
    origins: dict[str, str]

    def find(self, path: str) -> Any:
        """Return the value at `group.key`, or None."""
        group, _, key = path.partition(".")
        return self.values.get(group, {}).get(key)


def merge(declaration: Declaration, overrides: Overrides) -> Merged:
    """Lay the layers over each other; a higher layer's value wins, an absent one inherits."""
    trigger = Layer("trigger", overrides.values)
    values: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
    origins: dict[str, str] = {}
    for layer in (PLATFORM, *declaration.layers, trigger):
        for group, key, value in _flat(layer):
            values[group][key] = value
            origins[f"{group}.{key}"] = layer.origin
    return Merged(values, origins)


def _flat(layer: Layer) -> Iterable[tuple[str, str, Any]]:
    for group, keys in layer.values.items():
        for key, value in keys.items():
            if value is not None:
                yield group, key, value
