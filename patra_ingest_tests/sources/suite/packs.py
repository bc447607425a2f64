"""A built-in pack that asks the replayer instead of its source, as fast as it can."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import Pack, parse_pack
from patra_ingest.registry.pack_file import PackText, read_pack_file

# Limits that real sources have, and a server of this machine has not.
_SLOW = ("min_interval", "vendor", "warm_up", "quotas", "also")
_FAST: dict[str, Any] = {"per_second": 500, "burst": 50, "in_flight": 8}


def quick_pack(
    code: str,
    at: Callable[[str], str],
    folder: Path = FOLDER,
    given: Mapping[str, str] | None = None,
) -> Pack:
    """Return a pack whose addresses `at` has turned, without the limits of its source.

    `given` are the values that a template leaves open.
    """
    return turned_pack(read_pack_file(folder / f"{code}.yaml").value, at, given)


def turned_pack(
    text: dict[str, Any], at: Callable[[str], str], given: Mapping[str, str] | None = None
) -> Pack:
    """Return the pack that a text describes, turned in the same way."""
    tree = {"http": {}, **text}
    turned = PackText("the suite's pack", _turned(tree, at), {})
    return parse_pack(turned, None, _turned(dict(given or {}), at))


def _turned(tree: Any, at: Callable[[str], str]) -> Any:
    if isinstance(tree, list):
        return [_turned(one, at) for one in tree]
    if not isinstance(tree, dict):
        return tree
    return {name: _turned_value(name, value, at) for name, value in tree.items()}


def _turned_value(name: str, value: Any, at: Callable[[str], str]) -> Any:
    # A token is fetched over HTTPS only, and by nobody without a secret: its address stays.
    if name in ("base_url", "path"):
        return _address(value, at)
    if name == "partitions" and isinstance(value, dict):  # each may have a server of its own
        return {
            one: {key: _address(text, at) for key, text in own.items()}
            for one, own in value.items()
        }
    if name == "rate" and isinstance(value, dict):
        kept = {key: one for key, one in value.items() if key not in _SLOW}
        return {**kept, **_FAST}
    if name == "http" and isinstance(value, dict):
        return {**_turned(value, at), "allow_insecure_http": True}
    return _turned(value, at)


def _address(value: Any, at: Callable[[str], str]) -> Any:
    return at(value) if str(value).startswith(("http://", "https://")) else value
