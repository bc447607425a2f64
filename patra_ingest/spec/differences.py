"""What differs between two trees of plain values, path by path: packs, specs, snapshots."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_ABSENT = object()


@dataclass(frozen=True)
class Difference:
    """One path whose value differs; None stands for a value that is not there."""

    path: str
    before: Any
    after: Any

    def __str__(self) -> str:
        if self.before is None:
            return f"+ {self.path}: {_shown(self.after)}"
        if self.after is None:
            return f"- {self.path}: {_shown(self.before)}"
        return f"~ {self.path}: {_shown(self.before)} → {_shown(self.after)}"


def find_differences(before: Any, after: Any) -> list[Difference]:
    """Return every path at which two trees differ, in the order of the second one."""
    old, new = dict(_leaves("", before)), dict(_leaves("", after))
    paths = [*new, *(path for path in old if path not in new)]
    return [
        Difference(path, old.get(path), new.get(path))
        for path in paths
        if old.get(path, _ABSENT) != new.get(path, _ABSENT)
    ]


def _leaves(path: str, tree: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, Mapping) and tree:
        for name, value in tree.items():
            yield from _leaves(f"{path}.{name}" if path else str(name), value)
    elif isinstance(tree, list | tuple) and any(isinstance(one, Mapping | list) for one in tree):
        for number, value in enumerate(tree):
            yield from _leaves(f"{path}[{number}]", value)
    elif tree is not None and path:
        yield path, list(tree) if isinstance(tree, tuple) else tree


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 120 else text[:117] + "…"
