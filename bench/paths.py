"""Paths into a page: ours beside jsonpath-ng on JSON, and beside lxml's XPath on XML.

Both sides have compiled their path beforehand, and must find the same before they are measured.
"""

import statistics
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from jsonpath_ng.ext.parser import parse
from lxml import etree

from bench.figures import medians_in_turn, milliseconds, verdict
from bench.pages import ARTICLES, ITEMS, crossref_items, pubmed_page
from patra_ingest.expr.path import Path, compile_path
from patra_ingest.expr.xml_gather import gather, together
from patra_ingest.expr.xml_tree import read_xml

REPEATS = 21
IN_A_ROW = 5
MIN_RATIO = 20

# Ours, and what jsonpath-ng needs to be told for the same.
JSON_PATHS = (
    ("$.DOI", "$.DOI"),
    ("$.title[0]", "$.title[0]"),
    ("$.indexed.date-time", "$.indexed.'date-time'"),
    ("$.issued.date-parts[0][0]", "$.issued.'date-parts'[0][0]"),
    ("$.author[*].family", "$.author[*].family"),
    (
        "$.updated-by[?(@.type == 'retraction')].type",
        "$.'updated-by'[?(@.type == 'retraction')].type",
    ),
)
# Ours, and the same as XPath; the text of what is found is compared.
XML_PATHS = (
    ("$.MedlineCitation.PMID", "MedlineCitation/PMID"),
    ("$.MedlineCitation.PMID.@Version", "MedlineCitation/PMID/@Version"),
    ("$.MedlineCitation.Article.ArticleTitle", "MedlineCitation/Article/ArticleTitle"),
    (
        "$.MedlineCitation.Article.Abstract.AbstractText",
        "MedlineCitation/Article/Abstract/AbstractText",
    ),
    (
        "$.MedlineCitation.Article.AuthorList.Author.LastName",
        "MedlineCitation/Article/AuthorList/Author/LastName",
    ),
    (
        "$.MedlineCitation.MeshHeadingList.MeshHeading.DescriptorName",
        "MedlineCitation/MeshHeadingList/MeshHeading/DescriptorName",
    ),
    (
        "$.PubmedData.ArticleIdList.ArticleId[?(@.@IdType == 'doi')]",
        "PubmedData/ArticleIdList/ArticleId[@IdType = 'doi']",
    ),
)

Find = Callable[[Any], list[Any]]


def measure_paths() -> None:
    """Print how much faster our paths are, on JSON and on XML."""
    _measure_json()
    _measure_xml()


def _measure_json() -> None:
    items = crossref_items()
    print(f"\nPaths on a page of {ITEMS} works, medians of {REPEATS} × {IN_A_ROW}, ms per page")
    print(f"{'':63}{'ours':>8}{'jsonpath-ng':>13}")
    pairs = [(compile_path(ours), _searched(theirs)) for ours, theirs in JSON_PATHS]
    for path, find in pairs:
        _require_same(path.text, map(path.all, items), map(find, items))
        _compare_on(items, path.text, [(path, find)])
    _compare_on(items, "all of them", pairs)


def _searched(text: str) -> Find:
    search = parse(text).find
    return lambda item: [found.value for found in search(item)]


def _mapped(items: list[Any], paths: Sequence[Path]) -> None:
    """Ask as a mapping does: a column per path that has one value at most, else item by item."""
    for path in paths:
        if path.is_single:
            path.column(items)
        else:
            for item in items:
                path.all(item)


def _several(ask: Callable[[], None]) -> None:
    """Ask a few times in a row: a page that was just decoded is still in the machine's caches."""
    for _ in range(IN_A_ROW):
        ask()


def _compare_on(items: list[Any], what: str, pairs: Sequence[tuple[Path, Find]]) -> None:
    ours, theirs = zip(*pairs, strict=True)
    rounds = {
        "ours": partial(_several, partial(_mapped, items, ours)),
        "theirs": partial(_several, partial(_ask_all, items, theirs)),
    }
    taken = {name: ms / IN_A_ROW for name, ms in medians_in_turn(rounds, REPEATS).items()}
    ratio = taken["theirs"] / taken["ours"]
    judged = verdict(f"≥ {MIN_RATIO} ×", ratio >= MIN_RATIO)
    _say(what, taken, f"{ratio:5.1f} × faster   {judged}")


def _measure_xml() -> None:
    body = pubmed_page()
    size = len(body) / 1024
    print(f"\nPaths on an XML page of {ARTICLES} articles ({size:.0f} KB), medians of {REPEATS}")
    print(f"{'each time freshly read, ms per page; no target':63}{'ours':>8}{'lxml XPath':>13}")
    reading = {"ours": lambda: _our_articles(body), "theirs": lambda: _their_articles(body)}
    _say_shares("reading the body", medians_in_turn(reading, REPEATS))
    pairs = [(compile_path(ours).all, _xpath(theirs)) for ours, theirs in XML_PATHS]
    for (text, _), (ours, theirs) in zip(XML_PATHS, pairs, strict=True):
        _require_same(text, map(ours, _our_articles(body)), map(theirs, _their_articles(body)))
        _say_shares(text, _walked(body, [text], [(ours, theirs)]))
    _say_shares("all of them", _walked(body, [text for text, _ in XML_PATHS], pairs))


def _our_articles(body: bytes) -> list[Any]:
    return compile_path("$.PubmedArticleSet.PubmedArticle").nodes(read_xml(body, {}))


def _their_articles(body: bytes) -> list[Any]:
    return list(etree.fromstring(body))


def _xpath(text: str) -> Find:
    search: Any = etree.XPath(text)

    def find(article: Any) -> list[Any]:
        found = search(article)
        return [one if isinstance(one, str) else "".join(one.itertext()) for one in found]

    return find


def _walked(
    body: bytes, texts: Sequence[str], pairs: Sequence[tuple[Find, Find]]
) -> dict[str, float]:
    """Return the medians without the reading: our nodes remember, so each round gets new ones.

    Ours are walked together first, as a mapping does.
    """
    taken: dict[str, list[float]] = {"ours": [], "theirs": []}
    trails = together(compile_path(text).xml.trail for text in texts)
    own, other = zip(*pairs, strict=True)
    for _ in range(REPEATS):
        ours, theirs = _our_articles(body), _their_articles(body)

        def walk_ours(articles: list[Any] = ours) -> None:
            gather(articles, trails)
            _ask_all(articles, own)

        taken["ours"].append(milliseconds(walk_ours))
        taken["theirs"].append(milliseconds(partial(_ask_all, theirs, other)))
    return {name: statistics.median(times) for name, times in taken.items()}


def _ask_all(items: list[Any], finds: Sequence[Find]) -> None:
    """Ask item by item, as a mapping does."""
    if len(finds) == 1:
        find = finds[0]
        for item in items:
            find(item)
        return
    for item in items:
        for find in finds:
            find(item)


def _require_same(what: str, ours: Iterable[Any], theirs: Iterable[Any]) -> None:
    """Refuse to compare speeds of different answers."""
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if one != other:
            raise SystemExit(f"{what} finds {one!r} in item {number}, the other {other!r}")


def _say_shares(what: str, taken: dict[str, float]) -> None:
    _say(what, taken, f"{taken['theirs'] / taken['ours']:5.2f} × as fast")


def _say(what: str, taken: dict[str, float], judged: str) -> None:
    print(f"  {what:<61}{taken['ours']:8.2f}{taken['theirs']:13.2f}   {judged}")
