"""A built-in pack that asks the replayer instead of its source, as fast as it can."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import Pack, parse_pack
from patra_ingest.registry.pack_file import PackText, read_pack_file

# Limits that real sources have, and a server of this machine has not.
_SLOW = ("min_interval", "vendor", "warm_up", "quotas", "also")
_FAST: dict[str, Any] = {"per_second": 500, "burst": 50, "in_flight": 8}


def quick_pack(code: str, at: Callable[[str], str], folder: Path = FOLDER) -> Pack:
    """Return a pack whose addresses `at` has turned, without the limits of its source."""
    text = read_pack_file(folder / f"{code}.yaml")
    tree = {"http": {}, **text.value}
    return parse_pack(PackText(text.where, _turned(tree, at), {}))


def _turned(tree: Any, at: Callable[[str], str]) -> Any:
    if isinstance(tree, list):
        return [_turned(one, at) for one in tree]
    if not isinstance(tree, dict):
        return tree
    return {name: _turned_value(name, value, at) for name, value in tree.items()}


def _turned_value(name: str, value: Any, at: Callable[[str], str]) -> Any:
    if name in ("base_url", "path", "token_url") and str(value).startswith(("http://", "https://")):
        return at(str(value))
    if name == "rate" and isinstance(value, dict):
        kept = {key: one for key, one in value.items() if key not in _SLOW}
        return {**kept, **_FAST}
    if name == "http" and isinstance(value, dict):
        return {**_turned(value, at), "allow_insecure_http": True}
    return _turned(value, at)
