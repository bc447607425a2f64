"""Recorded answers of real sources, read by the functions that the executor reads them with.

The recordings lie beside the project, in ../shared/fixtures, and are never copied into it. They
hold real host names: nothing here sends anything.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from patra_ingest.errors import IngestError
from patra_ingest.executor.certificate import pack_ids
from patra_ingest.executor.decoding import Decoded, decode, read_tree
from patra_ingest.executor.history import (
    History,
    is_known,
    page_hash,
    require_sense,
    require_shape,
)
from patra_ingest.executor.mapping import Mapped, map_items
from patra_ingest.executor.paging import Ended, Page, Seen, first_page, next_page
from patra_ingest.executor.triage import judge
from patra_ingest.ledger.db import open_db
from patra_ingest.model.codes import Operation
from patra_ingest.model.records import NewRecord
from patra_ingest.registry.apply import apply_pack
from patra_ingest.registry.code_book import builtin_code_book
from patra_ingest.registry.pack import Pack
from patra_ingest.registry.read import read_declaration
from patra_ingest.spec.compile import compile_spec
from patra_ingest.spec.declaration import Overrides
from patra_ingest.spec.paging import Paging
from patra_ingest.spec.snapshot import CallSpec, SpecSnapshot
from patra_ingest.transport.messages import Response
from patra_ingest_tests.builders import DAY, NOON

_FOLDER = Path(__file__).parents[3] / "shared" / "fixtures"
_ledgers = count()

needs_recordings = pytest.mark.skipif(
    not _FOLDER.is_dir(), reason="there are no recordings in ../shared/fixtures"
)


@dataclass(frozen=True)
class Read:
    """What an answer holds, and what its items became."""

    decoded: Decoded
    mapped: Mapped

    @property
    def ids(self) -> list[str]:
        """The ids of its records, in the order of the answer."""
        return [record.provider_id for record in self.mapped.records]

    @property
    def ends(self) -> tuple[int, str, str]:
        """How many records there are, and the ids of the first and the last."""
        ids = self.ids
        return (len(ids), ids[0], ids[-1]) if ids else (0, "", "")

    def record(self, provider_id: str) -> NewRecord:
        """Return the one record of that id."""
        (found,) = (one for one in self.mapped.records if one.provider_id == provider_id)
        return found


def recordings(source: str) -> set[str]:
    """Return the names of all recorded answers of a source; none where there is no recording."""
    files = (_FOLDER / source).glob("*")
    return {file.name for file in files if not file.name.endswith(".meta.json")}


def recorded(source: str, name: str, status: int | None = None) -> Response:
    """Return a recorded answer; `status` where none was recorded, which is otherwise 200."""
    about = _about(source, name)
    headers = about["response_headers"] or {}
    texts = {key.lower(): _joined(value) for key, value in headers.items()}
    body = (_FOLDER / source / name).read_bytes()
    said = about["status"] or status or 200
    return Response(said, texts, body, 0.1, f"https://{source}.example/", NOON)


def asked_url(source: str, name: str) -> str:
    """Return the address that was asked for."""
    return str(_about(source, name)["request"]["url"])


def asked(source: str, name: str) -> dict[str, str]:
    """Return the parameters that were sent in the address."""
    return dict(parse_qsl(urlsplit(asked_url(source, name)).query, keep_blank_values=True))


def _about(source: str, name: str) -> dict[str, Any]:
    about: dict[str, Any] = json.loads((_FOLDER / source / f"{name}.meta.json").read_text())
    return about


def _joined(value: str | list[str]) -> str:
    return value if isinstance(value, str) else ", ".join(value)


def compiled(
    template: Path,
    pack: Pack,
    endpoint: str | None,
    operation: Operation = Operation.HARVEST,
    values: Mapping[str, Mapping[str, Any]] | None = None,
    query: Mapping[str, Any] | None = None,
    available: frozenset[str] = frozenset(),
) -> SpecSnapshot:
    """Apply a pack to a copy of an empty ledger, and compile one of its endpoints from there."""
    copy = template.with_name(f"recorded-{next(_ledgers)}.db")
    shutil.copyfile(template, copy)
    ledger = open_db(f"sqlite:///{copy}")
    with ledger.write() as tx:
        apply_pack(tx, pack, NOON)
        codes, later = builtin_code_book(), NOON + DAY
        source = pack.provenance.code
        declaration = read_declaration(tx, source, endpoint, operation, later, codes)
    ledger.close()
    return compile_spec(declaration, Overrides(values or {}, query=query), available).spec


def read(
    response: Response,
    call: CallSpec,
    paging: Paging | None = None,
    said: Mapping[str, object] | None = None,
    ids: Sequence[str] = (),
) -> Read:
    """Read an answer as the executor does; raise what it would raise.

    `said` is what the request spoke of, for an answer that must echo it; `ids` what it asked for.
    """
    tree = cache(lambda: read_tree(response, call.response))
    meaning = judge(response, call, tree, NOON)
    if isinstance(meaning, IngestError):
        raise meaning
    decoded = Decoded([], total=0)  # where a rule says that there is nothing
    if meaning is None:
        spoken = {"ids": list(ids) or None, **(said or {})}
        decoded = decode(response, tree(), call, paging, spoken)
    mapped = map_items(decoded.items, call, "UTC", None)
    require_shape(decoded, mapped)
    return Read(decoded, mapped)


@dataclass(frozen=True)
class Walked:
    """A walk over recorded pages: where each was expected, and what comes after the last."""

    places: list[Page]
    pages: list[Read]
    after: Page | Ended

    @property
    def ids(self) -> list[str]:
        """The ids of all pages."""
        return [one for page in self.pages for one in page.ids]


def walk(source: str, names: Sequence[str], spec: SpecSnapshot) -> Walked:
    """Go from page to page as the executor does, on recorded answers."""
    history = History([], set())
    after: Page | Ended = first_page(spec.paging)
    walked = Walked([], [], after)
    for name in names:
        assert isinstance(after, Page), f"the walk has ended before {name}: {after}"
        page = read(recorded(source, name), spec, spec.paging)
        require_sense(page.decoded, page.mapped, after, history)
        walked.places.append(after)
        walked.pages.append(page)
        after = next_page(spec.paging, after, _seen(page, history))
        history.add(_stats(page, history))
    return Walked(walked.places, walked.pages, after)


def _stats(page: Read, history: History) -> dict[str, Any]:
    """Return what a batch's stats say of its page, as far as the next page depends on it."""
    return {
        "itemsCount": len(page.decoded.items),
        "idKeys": pack_ids(page.mapped.ids),
        "pageHash": page_hash(page.mapped),
        "onlyKnown": is_known(page.mapped, history),
    }


def _seen(page: Read, history: History) -> Seen:
    decoded = page.decoded
    return Seen(
        len(decoded.items),
        decoded.next,
        decoded.total,
        decoded.has_more,
        decoded.step,
        history.walked,
        page.mapped.observed_max,
    )
