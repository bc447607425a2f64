"""The cases: what is served, what is asked, what must come of it. Read from YAML, checked here.

A file is one source:

    folder: crossref                # of ../shared/fixtures; hand-made ones lie beside the file
    not_asked:                      # recordings that no case serves, and why
      56-agency.json: the pack never asks who registered a DOI
    one_page: it has no pages       # hand-made only: why no case has two pages
    cases:
    - case: three pages end with a short one     # the sentence that is tested
      each: [a.json, b.json]        # one case for each of these, which is served first …
      each_as: GET https://api.crossref.org/works         # … as the answer to this question
      folder: oai-pmc               # another one than the file's, if its files are there
      endpoint: works
      operation: HARVEST            # HARVEST unless told otherwise
      window: [2025-01-01, 2025-01-02]           # [from, to); this one unless told otherwise
      partition: biorxiv            # none unless told
      ask_for: ["10.5555/1"]        # UPDATE only: ids that signals name; or read, as `ids`
      parameters: {code: oaipmh}    # of a template; what the file says of all cases, and this
      set: [paging.page_size=2]     # as after --set; {url} is where the recordings are served
      query: {term: {…}}            # a neutral query
      secrets: {CORE_API_KEY: invented}          # variables of the environment, for credentials
      serve:                        # in this order; hand-made: all of the folder unless told
      - 01-p1.json
      - file: 23-429-html.html      # … or with changes:
        as: GET https://api.crossref.org/works?cursor=*   # the question it shall answer
        path: /works                # … or only another path
        after: 03-p3.json           # … or that of this one, once more, behind it in its sequence
        status: 429                 # where none was recorded
        swap: {'"total-results":454': '"total-results":60'}   # words of the body
      outcome: COMPLETE             # or DRIFTED, or an action of the pack language (REJECT, FATAL,
                                    # THROTTLE, RETRY, RESTART_SLICE, RESLICE), or INCOMPLETE
      says: ignored a part          # words of the error
      stop: SHORT_PAGE              # the rule that ended the walk
      pages: 3                      # pages of the walk, in its certificate
      ids: ["10.5555/1", …]         # the ids of the records; or how a file is read for them:
      # {json: message.items, id: DOI}   a list, and in each item a path or "{source}:{id}"
      # {xml: //MedlineCitation/PMID}    an XPath, namespaces aside
      # {regex: '"DOI":"([^"]+)"'}       the first group, or the whole
      #   … lower: true                  ids as the pack writes them
      #   … files: [24-two.xml]          those files only; else all that were served with 200
      deleted: [id]                 # records that are marked as deleted
      quarantined: 2                # bad items
      landed: 7                     # in the certificate, where it is not the sum of these three
      seen: 8                       # items in all pages, where some are more than once there

`ids` of an error case are the records that were stored before it: none unless told.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from patra_ingest.model.codes import Operation
from patra_ingest.sandbox.recordings import (
    InSequence,
    Recording,
    read_recording,
    read_recordings,
)

FIXTURES = Path(__file__).parents[4] / "shared" / "fixtures"
RECORDED = Path(__file__).parents[1] / "recorded_cases"
HANDMADE = Path(__file__).parents[1] / "handmade"
SKIPPED = "there are no recordings in ../shared/fixtures"

PROVED = ("COMPLETE", "DRIFTED")
# How a run that ended by an action of the pack language is written down in the ledger.
CODES: Mapping[str, str] = {
    "REJECT": "L2",
    "FATAL": "L4",
    "RETRY": "L1",
    "THROTTLE": "THROTTLED",
    "RESTART_SLICE": "RESTART",
    "RESLICE": "RESULT_CAP",
    "INCOMPLETE": "INCOMPLETE",
}


@dataclass(frozen=True)
class Served:
    """One recording as a case serves it."""

    file: str
    as_: str | None = None
    path: str | None = None
    after: str | None = None
    status: int | None = None
    swap: Mapping[str, str] = field(default_factory=dict)

    def read(self, folder: Path) -> Recording:
        """Return the recording, changed as the case says; a word to be swapped must be there."""
        one = read_recording(folder, self.file)
        if self.as_:
            method, _, url = self.as_.partition(" ")
            one = replace(one, method=method, url=url, asked_body="", sequence=None)
        if self.after:
            one = _behind(one, read_recording(folder, self.after))
        if self.path:
            one = replace(one, url=urlsplit(one.url)._replace(path=self.path).geturl())
        if self.status:
            one = replace(one, status=self.status)
        body = one.body
        for old, new in self.swap.items():
            assert str(old).encode() in body, f"{self.file} does not hold {old}"
            body = body.replace(str(old).encode(), str(new).encode())
        return replace(one, body=body)


def _behind(one: Recording, before: Recording) -> Recording:
    place = before.sequence
    assert place, f"{before.name} is in no sequence"
    following = InSequence(place.id, place.page + 1, place.of + 1)
    asked = {"method": before.method, "url": before.url, "asked_body": before.asked_body}
    return replace(one, **asked, sequence=following)


@dataclass(frozen=True)
class Case:
    """One promise about a source."""

    source: str
    kind: str  # recorded or handmade
    folder: Path
    case: str
    endpoint: str
    outcome: str
    operation: Operation = Operation.HARVEST
    window: tuple[datetime, datetime] | None = None
    partition: str | None = None
    ask_for: Any = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    set: tuple[str, ...] = ()
    query: Mapping[str, Any] | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)
    serve: tuple[Served, ...] = ()
    says: str = ""
    stop: str | None = None
    pages: int | None = None
    ids: Any = ()
    deleted: tuple[str, ...] = ()
    quarantined: int = 0
    landed: int | None = None
    seen: int | None = None

    @property
    def is_error(self) -> bool:
        """Whether the case ends in an error, and not in a proof."""
        return self.outcome not in PROVED

    def recordings(self) -> list[Recording]:
        """Return what is served."""
        if not self.serve:
            return read_recordings(self.folder)
        return [one.read(self.folder) for one in self.serve]


@dataclass(frozen=True)
class Source:
    """The cases of one source, and the recordings that none of them serves."""

    code: str
    kind: str
    folder: Path
    cases: tuple[Case, ...]
    not_asked: Mapping[str, str]
    one_page: str = ""


def recorded_sources() -> list[Source]:
    """Return the sources that real recordings are there for."""
    return [_source(file, file.stem, "recorded") for file in sorted(RECORDED.glob("*.yaml"))]


def handmade_sources(folder: Path = HANDMADE) -> list[Source]:
    """Return the sources that we have made recordings for."""
    files = sorted(folder.glob("*/cases.yaml"))
    return [_source(file, file.parent.name, "handmade") for file in files]


def _source(file: Path, code: str, kind: str) -> Source:
    told = yaml.safe_load(file.read_text(encoding="utf-8"))
    folder = FIXTURES / told["folder"] if kind == "recorded" else file.parent
    given = told.get("parameters") or {}
    cases = tuple(
        _case(code, kind, folder, {**one, "parameters": {**given, **one.get("parameters", {})}})
        for each in told["cases"]
        for one in _each(each)
    )
    return Source(code, kind, folder, cases, told.get("not_asked") or {}, told.get("one_page", ""))


def _each(told: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a case once, or once for each file that it names."""
    if "each" not in told:
        yield told
        return
    for one in told["each"]:
        name = one if isinstance(one, str) else one["file"]
        rest = {key: value for key, value in told.items() if key not in ("each", "each_as")}
        first = {"file": name, **({"as": told["each_as"]} if "each_as" in told else {})}
        first |= {} if isinstance(one, str) else one
        serve = [first, *(told.get("serve") or ())]
        yield {**rest, "case": f"{told['case']}: {name}", "serve": serve}


def _case(code: str, kind: str, folder: Path, told: dict[str, Any]) -> Case:
    known = dict(told)
    if "operation" in known:
        known["operation"] = Operation(known["operation"])
    if "window" in known:
        start, end = known["window"]
        known["window"] = (_instant(start), _instant(end))
    known["serve"] = tuple(_served(one) for one in known.get("serve") or ())
    for name in ("ids", "ask_for", "set", "deleted"):
        if not isinstance(known.get(name), dict):
            known[name] = tuple(str(one) for one in known.get(name) or ())
    if kind == "recorded":
        # Several folders of recordings may serve one source.
        known["folder"] = FIXTURES / known["folder"] if "folder" in known else folder
    else:
        known["folder"] = folder
    case = Case(code, kind, **known)
    assert case.outcome in (*PROVED, *CODES), f"{case.outcome} is no outcome"
    return case


def _served(told: str | dict[str, Any]) -> Served:
    if isinstance(told, str):
        return Served(told)
    renamed = {"as_" if name == "as" else name: value for name, value in told.items()}
    return Served(**renamed)


def _instant(told: Any) -> datetime:
    if isinstance(told, datetime):
        return told if told.tzinfo else told.replace(tzinfo=UTC)
    if isinstance(told, date):
        return datetime(told.year, told.month, told.day, tzinfo=UTC)
    return datetime.fromisoformat(str(told).replace("Z", "+00:00"))
