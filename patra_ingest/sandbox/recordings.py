"""Recorded answers: a folder with one file per body, and beside each what it was the answer to.

`NAME` is the body as it came, unpacked; `NAME.meta.json` tells the rest:

    {"file": "01-list-p1.json",
     "source": "crossref",
     "shows": "the first of two pages",
     "status": 200,
     "request": {"method": "GET", "url": "https://api.example.org/works?cursor=*"},
     "response_headers": {"content-type": "application/json", "x-rate-limit-limit": "5"},
     "sequence": {"id": "works", "page": 1, "of": 2}}

Only `request.method` and `request.url` must be there. A status that nobody recorded is null, and
200 is taken for it. `request.body` is the text of a POST. A header may have a list of values.
`sequence` tells which answers belong together, and in which order. Other keys are kept for people.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from patra_ingest.errors import PersonMustAct

_META = ".meta.json"
_REMEDY = "See docs/replaying.md for how a recording is written."
# What a file holds, where no header was recorded.
_KINDS = {
    ".json": "application/json",
    ".xml": "text/xml;charset=utf-8",
    ".html": "text/html;charset=utf-8",
    ".txt": "text/plain;charset=utf-8",
    ".csv": "text/csv;charset=utf-8",
    ".tsv": "text/tab-separated-values;charset=utf-8",
    ".jsonl": "application/x-ndjson",
}


@dataclass(frozen=True)
class InSequence:
    """The place of an answer among those that followed each other."""

    id: str
    page: int
    of: int


@dataclass(frozen=True)
class Recording:
    """One answer and the question it answered; `url` is empty where nobody wrote that down."""

    name: str
    method: str
    url: str
    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()  # names in lower case
    asked_body: str = ""
    sequence: InSequence | None = None
    about: str = ""

    @property
    def content_type(self) -> str:
        """What the body is: as the source said, or else as the file's name ends."""
        told = (value for name, value in self.headers if name == "content-type")
        suffix = Path(self.name).suffix.lower()
        return next(told, _KINDS.get(suffix, "application/octet-stream"))


def read_recordings(folder: Path, names: Iterable[str] | None = None) -> list[Recording]:
    """Return the recordings of a folder by name, or those named, in that order.

    PersonMustAct when there is none, or one of them cannot be read.
    """
    wanted = sorted(_names(folder)) if names is None else list(names)
    if not wanted:
        what = f"{folder} has no recordings: no file there ends in {_META}."
        raise PersonMustAct(what, _REMEDY)
    return [read_recording(folder, name) for name in wanted]


def _names(folder: Path) -> list[str]:
    try:
        return [file.name.removesuffix(_META) for file in folder.iterdir() if _is_meta(file)]
    except OSError as error:
        raise PersonMustAct(f"{folder} cannot be read ({error.strerror}).", _REMEDY) from None


def _is_meta(file: Path) -> bool:
    return file.name.endswith(_META)


def read_recording(folder: Path, name: str) -> Recording:
    """Return one recording; PersonMustAct when it cannot be read."""
    place = folder / f"{name}{_META}"
    try:
        told = json.loads(place.read_text(encoding="utf-8"))
        asked, sequence = told["request"], told.get("sequence")
        return Recording(
            name,
            asked["method"].upper(),
            asked.get("url") or "",
            (folder / name).read_bytes(),
            int(told.get("status") or 200),
            tuple(_headers(told.get("response_headers") or {})),
            _text(asked.get("body")),
            InSequence(str(sequence["id"]), sequence["page"], sequence["of"]) if sequence else None,
            str(told.get("shows", "")),
        )
    except OSError as error:
        what = f"The recording {name} in {folder} cannot be read ({error.strerror})."
        raise PersonMustAct(what, _REMEDY) from None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        what = f"{place} does not tell what was asked ({type(error).__name__}: {error})."
        raise PersonMustAct(what, _REMEDY) from None


def _headers(told: Mapping[str, str | list[str]]) -> Iterable[tuple[str, str]]:
    for name, value in told.items():
        for one in value if isinstance(value, list) else [value]:
            yield name.lower(), str(one)


def _text(body: Any) -> str:
    """Return what was sent, as text; who wrote a JSON body down as JSON meant the same."""
    if body is None or isinstance(body, str):
        return body or ""
    return json.dumps(body)


def write_recording(
    folder: Path, recording: Recording, source: str, more: Mapping[str, Any] | None = None
) -> None:
    """Write a recording that `read_recordings` reads again; `more` is for people."""
    asked = {"method": recording.method, "url": recording.url}
    if recording.asked_body:
        asked["body"] = recording.asked_body
    told: dict[str, Any] = {
        "file": recording.name,
        "source": source,
        "shows": recording.about,
        "status": recording.status,
        "request": asked,
        "response_headers": _listed(recording.headers),
        **(more or {}),
        "bytes": len(recording.body),
        "sha256": sha256(recording.body).hexdigest(),
    }
    if recording.sequence:
        place = recording.sequence
        told["sequence"] = {"id": place.id, "page": place.page, "of": place.of}
    (folder / recording.name).write_bytes(recording.body)
    text = json.dumps(told, indent=1, ensure_ascii=False)
    (folder / f"{recording.name}{_META}").write_text(text + "\n", encoding="utf-8")


def _listed(headers: Iterable[tuple[str, str]]) -> dict[str, str | list[str]]:
    listed: dict[str, list[str]] = {}
    for name, value in headers:
        listed.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in listed.items()}
