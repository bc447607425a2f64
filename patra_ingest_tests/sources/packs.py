"""The packs of the behaviours: one file each, written in the pack language only."""

from pathlib import Path

from patra_ingest.registry.pack import Pack, parse_pack
from patra_ingest.registry.pack_file import read_pack_text

BEHAVIOURS = sorted((Path(__file__).parent / "behaviours").glob("*.yaml"))
_DEFAULT_URL = "http://127.0.0.1:8765"


def behaviour_pack(number: int, url: str = _DEFAULT_URL) -> Pack:
    """Return the pack of a behaviour, for the sandbox at `url`."""
    (file,) = (file for file in BEHAVIOURS if int(file.stem[:2]) == number)
    return parse_pack(read_pack_text(file.read_text().replace(_DEFAULT_URL, url), file.name))
