"""What the author of a pack wrote beside its lines, each at the place it speaks of. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from patra_ingest.registry.pack_file import PackText

Place = tuple[str | int, ...]

_TOOL = re.compile(r"yaml-language-server:")
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"\\]|\\.)*\"""")
_LINK = re.compile(r"\s*https?://\S+$")
_COMMENT = re.compile(r"(?:^|\s)#\s?(.*)$")


@dataclass(frozen=True)
class Comments:
    """The lines above everything, and what stands at a place, in the order of the file."""

    intro: str
    notes: dict[Place, str]

    def at(self, *place: str | int) -> str:
        """Return what is said of exactly this place; nothing where nothing is."""
        return self.notes.get(place, "")

    def below(self, *place: str | int) -> Iterator[tuple[str, str]]:
        """Yield what is said of the places inside this one, under their shorter names."""
        for path, note in self.notes.items():
            if path[: len(place)] == place and len(path) > len(place):
                yield ".".join(str(step) for step in path[len(place) :]), note


def read_comments(text: str, pack: PackText) -> Comments:
    """Read the comments of a pack file: behind a line, or on lines of their own before it."""
    places = _places(pack)
    intro: list[str] = []
    waiting: list[str] = []
    notes: dict[Place, list[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        found = _COMMENT.search(_QUOTED.sub(lambda quoted: "." * len(quoted[0]), line))
        said = line[found.start(1) :].strip() if found else ""
        if _TOOL.search(said):
            continue
        if not line.strip().startswith("#"):
            here = places.get(number)
            if here is not None:
                notes.setdefault(here, []).extend([*waiting, *([said] if said else [])])
                waiting = []
        elif places and number < min(places):
            intro.append(_LINK.sub("", said))  # it is in docs_url
        else:
            waiting.append(said)
    kept = {path: " ".join(words) for path, words in notes.items() if words}
    return Comments(" ".join(filter(None, intro)), kept)


def _places(pack: PackText) -> dict[int, Place]:
    """Return what stands on each line: the first place, which is the outermost one."""
    found: dict[int, Place] = {}
    for path, line in sorted(pack.lines.items(), key=lambda item: len(item[0])):
        if path and (line not in found):
            found[line] = path
    return found
