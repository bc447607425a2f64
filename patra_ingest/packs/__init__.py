"""The built-in packs, one YAML file each."""

from pathlib import Path

FOLDER = Path(__file__).parent
TEMPLATES = ("oaipmh",)  # they leave something open that only who applies them can say


def builtin_packs() -> list[Path]:
    """Return the whole packs that ship with the package, in order of name."""
    return [path for path in sorted(FOLDER.glob("*.yaml")) if path.stem not in TEMPLATES]


def builtin_templates() -> list[Path]:
    """Return the packs that ship with the package and become sources only when applied."""
    return [FOLDER / f"{name}.yaml" for name in TEMPLATES]


def find_pack(named: Path) -> Path:
    """Return the file that is named, or the built-in pack where there is no such file."""
    builtin = FOLDER / f"{named}.yaml"
    is_name = named.name == str(named) and not named.exists()
    return builtin if is_name and builtin.is_file() else named
