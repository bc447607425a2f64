"""The built-in packs, one YAML file each."""

from pathlib import Path

FOLDER = Path(__file__).parent


def builtin_packs() -> list[Path]:
    """Return the pack files that ship with the package, in order of name."""
    return sorted(FOLDER.glob("*.yaml"))
