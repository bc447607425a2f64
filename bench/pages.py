"""Pages to measure on, the same at every run: works as Crossref writes them, articles of PubMed."""

from random import Random
from typing import Any

ITEMS = 1000
ARTICLES = 200
_SEED = 20260101
_NAMES = ("Müller", "Okafor", "Lindqvist", "Tanaka", "O'Neill", "Sanz-García", "Li", "Haddad")
_WORDS = ("effects", "of", "early", "intervention", "on", "survival", "in", "mice", "trial", "cell")


def crossref_items() -> list[dict[str, Any]]:
    """Return the items of one page; some lack a title, authors or an abstract, as in life."""
    random = Random(_SEED)
    return [_work(random, number) for number in range(ITEMS)]


def _work(random: Random, number: int) -> dict[str, Any]:
    year, month, day = random.randint(1990, 2026), random.randint(1, 12), random.randint(1, 28)
    date = {"date-parts": [[year, month, day]]}
    work: dict[str, Any] = {
        "DOI": f"10.5555/{number:07d}",
        "type": random.choice(("journal-article", "book-chapter", "posted-content")),
        "indexed": {**date, "date-time": f"{year}-{month:02d}-{day:02d}T08:30:00Z"},
        "container-title": ["Journal of Measured Things"],
        "publisher": "Example Press",
        "ISSN": ["1234-5678", "8765-4321"],
        "issued": date,
        "language": "en",
        "license": [{"URL": "https://creativecommons.org/licenses/by/4.0/", "delay-in-days": 0}],
        "is-referenced-by-count": random.randint(0, 400),
        "link": [{"URL": f"https://example.org/{number}/{kind}"} for kind in ("pdf", "xml")],
        "reference": [_reference(random, key) for key in range(random.randint(0, 30))],
    }
    if number % 50:
        work["title"] = [_sentence(random, 12)]
    if number % 20:
        work["author"] = [_author(random) for _ in range(random.randint(1, 9))]
    if number % 3:
        work["abstract"] = f"<jats:p>{_sentence(random, 120)}</jats:p>"
    if number % 25 == 0:
        kinds = ("erratum", "retraction")
        work["updated-by"] = [{"type": kind, "DOI": "10.5555/0"} for kind in kinds]
    return work


def _reference(random: Random, key: int) -> dict[str, Any]:
    return {"key": f"ref{key}", "unstructured": _sentence(random, 15), "year": "2001"}


def _author(random: Random) -> dict[str, Any]:
    author = {"given": "A.", "sequence": "additional", "affiliation": [{"name": "Institute"}]}
    # A group signs with its name alone.
    return {**author, "family": random.choice(_NAMES)} if random.random() < 0.97 else author


def _sentence(random: Random, words: int) -> str:
    return " ".join(random.choices(_WORDS, k=words)).capitalize()


def pubmed_page() -> bytes:
    """Return the body of one answer with articles."""
    random = Random(_SEED)
    articles = "".join(_article(random, number) for number in range(ARTICLES))
    return f"<PubmedArticleSet>{articles}</PubmedArticleSet>".encode()


def _article(random: Random, number: int) -> str:
    authors = "".join(
        f'<Author ValidYN="Y"><LastName>{random.choice(_NAMES)}</LastName><Initials>A</Initials>'
        "<AffiliationInfo><Affiliation>Institute</Affiliation></AffiliationInfo></Author>"
        for _ in range(random.randint(1, 9))
    )
    headings = "".join(
        f'<MeshHeading><DescriptorName UI="D{index:06d}">{_sentence(random, 2)}</DescriptorName>'
        "</MeshHeading>"
        for index in range(random.randint(0, 15))
    )
    abstract = "".join(
        f'<AbstractText Label="{label}">{_sentence(random, 40)} 1.73 m<sup>2</sup>.</AbstractText>'
        for label in ("BACKGROUND", "METHODS", "RESULTS")
    )
    return (
        f'<PubmedArticle><MedlineCitation Status="MEDLINE"><PMID Version="1">{number}</PMID>'
        "<DateRevised><Year>2026</Year><Month>01</Month><Day>02</Day></DateRevised><Article>"
        f"<ArticleTitle>{_sentence(random, 12)} <i>in vivo</i>.</ArticleTitle>"
        f"<Abstract>{abstract}</Abstract><AuthorList>{authors}</AuthorList></Article>"
        f"<MeshHeadingList>{headings}</MeshHeadingList></MedlineCitation><PubmedData>"
        f'<ArticleIdList><ArticleId IdType="pubmed">{number}</ArticleId>'
        f'<ArticleId IdType="doi">10.5555/{number:07d}</ArticleId></ArticleIdList>'
        "</PubmedData></PubmedArticle>"
    )
