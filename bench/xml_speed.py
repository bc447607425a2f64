"""10,000 PubMed articles through decode and mapping, beside a loop with xmltodict in the same run.

Both sides build the same records: id, fields, content hash, the item as JSON. Ours is the built-in
pack's `fetch`, run by the executor's own functions. Each measurement is a process of its own, so
that its peak of memory is its own; the sides take turns.

    python -m bench.xml_speed SIDE SHAPE FOLDER     one measurement, as JSON
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.articles import article_set
from bench.figures import verdict
from bench.xmltodict_loop import FINDS, Find, read_records
from patra_ingest.executor.decoding import decode, read_tree
from patra_ingest.executor.garbage import seldom_collected
from patra_ingest.executor.looks import looks_of
from patra_ingest.executor.mapping import map_items
from patra_ingest.ledger.db import open_db
from patra_ingest.ledger.migrate import migrate
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.apply import apply_pack
from patra_ingest.registry.pack import read_pack
from patra_ingest.registry.read import read_declaration
from patra_ingest.spec.compile import compile_spec
from patra_ingest.spec.declaration import Overrides
from patra_ingest.spec.snapshot import SpecSnapshot
from patra_ingest.transport.messages import Response

ARTICLES = 10_000
PER_PAGE = 200
SAMPLE = 400
REPEATS = 3
MIN_RATIO = 3.0
SIDES = ("ours", "xmltodict")
SHAPES = {"pages of 200": "pages", "one response": "whole"}
_AT = datetime(2026, 11, 16, tzinfo=UTC)
_MARKUP = frozenset({"title", "abstract"})  # xmltodict forgets where in the text markup stood


def measure_xml() -> None:
    """Print records per second and peaks of memory of both sides."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = _write_bodies(folder)
        shared = _agree(folder)
        print(f"\nXML: {ARTICLES} articles, {size / 1e6:.0f} MB, {len(shared)} fields;", end=" ")
        print(f"per second of processor time, medians of {REPEATS}, each a process of its own")
        print(f"{'':16}{'ours/s':>10}{'xmltodict/s':>13}{'ours MB':>10}{'xmltodict MB':>14}")
        for shape in SHAPES:
            _compare(shape, folder)


def _compare(shape: str, folder: Path) -> None:
    taken: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    for _ in range(REPEATS):
        for side in SIDES:
            taken[side].append(_measured(side, SHAPES[shape], folder))
    speed = {s: ARTICLES / statistics.median(t["seconds"] for t in taken[s]) for s in SIDES}
    peak = {s: statistics.median(t["peak"] for t in taken[s]) for s in SIDES}
    ratio = speed["ours"] / speed["xmltodict"]
    judged = verdict(f"≥ {MIN_RATIO:g} ×", ratio >= MIN_RATIO)
    print(
        f"  {shape:<14}{speed['ours']:>10.0f}{speed['xmltodict']:>13.0f}"
        f"{peak['ours']:>10.0f}{peak['xmltodict']:>14.0f}   {ratio:.2f} × as fast   {judged}"
    )


def _measured(side: str, shape: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.xml_speed", side, shape, str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def _write_bodies(folder: Path) -> int:
    for first in range(0, ARTICLES, PER_PAGE):
        (folder / f"pages-{first:06d}.xml").write_bytes(article_set(first, PER_PAGE))
    whole = article_set(0, ARTICLES)
    (folder / "whole-0.xml").write_bytes(whole)
    return len(whole)


def _agree(folder: Path) -> list[str]:
    """Note the fields that both sides find alike, and require that nearly all are."""
    spec, body = _pubmed(folder), article_set(0, SAMPLE)
    ours = [json.loads(record.fields_json) for record in _map(spec, body)]
    agreed = {name: _alike(name, ours, body) for name in ours[0]}
    shared = {name: which for name, which in agreed.items() if which is not None}
    if left_out := sorted(agreed.keys() - shared.keys()):
        print(f"left out, because the other loop does not find the same: {', '.join(left_out)}")
    if "title" not in shared or len(shared) < 10:
        raise SystemExit("the two sides do not build the same records: nothing was measured")
    (folder / "fields.json").write_text(json.dumps(shared))
    return list(shared)


def _alike(name: str, ours: list[dict[str, Any]], body: bytes) -> int | None:
    """Return which function of the other loop finds a field as ours does; None: none of them."""
    for which, find in enumerate(FINDS.get(name, ())):
        records = read_records(body, {"pmid": FINDS["pmid"][0], "found": find})
        theirs = [json.loads(fields)["found"] for _, _, fields, _ in records]
        pairs = [(own[name], found) for own, found in zip(ours, theirs, strict=True)]
        if all(_is_same(name, *pair) for pair in pairs):
            return which
    return None


def _is_same(name: str, own: Any, found: Any) -> bool:
    if name in _MARKUP and own and found:
        return Counter(own.replace(" ", "")) == Counter(found.replace(" ", ""))
    return bool(own == found)


def _pubmed(folder: Path) -> SpecSnapshot:
    url = f"sqlite:///{folder / 'ledger.db'}"
    migrate(url)
    db = open_db(url)
    with db.write() as tx:
        apply_pack(tx, read_pack(FOLDER / "pubmed.yaml"), _AT)
        declared = read_declaration(tx, "pubmed", "fetch", Operation.UPDATE, _AT)
        spec = compile_spec(declared, Overrides()).spec
    db.close()
    return spec


def _map(spec: SpecSnapshot, body: bytes) -> list[Any]:
    """Decode and map as the executor does."""
    response = Response(200, {"content-type": "text/xml"}, body, 0.1, "https://example.org/", _AT)
    tree = read_tree(response, spec.response, looks=looks_of(spec))
    decoded = decode(response, tree, spec, None, {})
    mapped = map_items(decoded.items, spec, "UTC", None)
    if mapped.bad:
        raise SystemExit(f"an article cannot be mapped: {mapped.bad[0]}")
    return mapped.records


def _side(side: str, folder: Path) -> Callable[[bytes], list[Any]]:
    shared: Mapping[str, int] = json.loads((folder / "fields.json").read_text())
    if side == "xmltodict":
        finds: dict[str, Find] = {name: FINDS[name][which] for name, which in shared.items()}
        finds.setdefault("pmid", FINDS["pmid"][0])
        return lambda body: read_records(body, finds)
    whole = _pubmed(folder)
    kept = tuple(field for field in whole.fields if field.name in shared)
    spec = whole.model_copy(update={"fields": kept})
    return lambda body: _map(spec, body)


def main(side: str, shape: str, folder: Path) -> None:
    """Measure one side once, in this process."""
    read, seconds, many = _side(side, folder), 0.0, 0
    read(article_set(0, 2))  # what is compiled once is compiled
    with seldom_collected() if side == "ours" else nullcontext():  # as every worker does
        for file in sorted(folder.glob(f"{shape}-*.xml")):
            body = file.read_bytes()
            began = time.process_time()
            many += len(read(body))
            seconds += time.process_time() - began
    if many != ARTICLES:
        raise SystemExit(f"{many} of {ARTICLES} articles came out")
    print(json.dumps({"seconds": seconds, "peak": _peak_mb()}))


def _peak_mb() -> float:
    """Return the most memory this process had; what it was forked from does not count."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("this system does not tell the memory of a process")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python -m bench.xml_speed SIDE SHAPE FOLDER")
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
