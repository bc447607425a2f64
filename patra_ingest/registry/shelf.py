"""The packs that ship with the package: which there are, and what a template leaves open."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from patra_ingest.packs import builtin_packs, builtin_templates
from patra_ingest.registry.pack_file import read_pack_file
from patra_ingest.registry.parameters import Scalar, read_filling


@dataclass(frozen=True)
class OpenValue:
    """A value that a pack leaves open; without a default it must be given."""

    name: str
    description: str
    default: Scalar | None
    one_of: tuple[str, ...]


@dataclass(frozen=True)
class OnShelf:
    """A built-in pack; a template becomes a source when it is applied."""

    pack: str
    name: str
    is_template: bool
    parameters: tuple[OpenValue, ...]


def list_shelf() -> Iterator[OnShelf]:
    """Yield every built-in pack, the templates last."""
    for path in (*builtin_packs(), *builtin_templates()):
        yield _on_shelf(path)


def _on_shelf(path: Path) -> OnShelf:
    text = read_pack_file(path)
    filling = read_filling(text, {})
    return OnShelf(
        path.stem,
        filling.fill(text.value["provenance"]["name"]),
        bool(filling.missing),
        tuple(
            OpenValue(name, part.description, part.default, tuple(part.one_of))
            for name, part in filling.declared.items()
        ),
    )
