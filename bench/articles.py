"""Invented PubMed articles, of the sizes and the variety that efetch sends; the same at every run.

Some have no abstract, some have seven sections of it with markup inside; some have one author, a
few have a hundred; dates come in three forms; what may lack lacks now and then.
"""

from collections.abc import Iterator
from random import Random

_SEED = 20260101
_NAMES = ("Müller", "Okafor", "Lindqvist", "Tanaka", "O'Neill", "Sanz-García", "Li", "Haddad")
_GIVEN = ("Ada", "Chidi", "Karin M", "Yuki", "Siobhán", "José Luis", "Wei", "Leila")
_WORDS = (
    *("effects", "of", "early", "intervention", "on", "survival", "in", "mice", "a", "trial"),
    *("cell", "response", "patients", "with", "reduced", "expression", "was", "measured", "by"),
    *("the", "mean", "difference", "between", "groups", "and", "controls", "p &lt; 0.05", "risk"),
)
_MARKED = (
    "<i>in vivo</i>",
    "10<sup>9</sup>/L",
    "H<sub>2</sub>O",
    "<b>n = 12</b>",
    "<i>E. coli</i>",
)
_TOPICS = ("Animals", "Humans", "Female", "Neoplasms", "Liver", "Signal Transduction", "Aged")
_SECTIONS = ("BACKGROUND", "OBJECTIVE", "METHODS", "RESULTS", "CONCLUSIONS", "REGISTRATION")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TYPES = ("Journal Article", "Review", "Randomized Controlled Trial", "Letter")


def article_set(first: int, count: int) -> bytes:
    """Return one answer of efetch with articles of these numbers."""
    return b"".join(_parts(first, count))


def _parts(first: int, count: int) -> Iterator[bytes]:
    yield b'<?xml version="1.0" ?>\n<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle,'
    yield b' 1st January 2024//EN" "https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_240101.dtd">\n'
    yield b"<PubmedArticleSet>\n"
    for number in range(first, first + count):
        yield _article(Random(_SEED + number), number).encode()
        yield b"\n"
    yield b"</PubmedArticleSet>"


def _article(random: Random, number: int) -> str:
    year = random.randint(1975, 2026)
    return (
        '<PubmedArticle><MedlineCitation Status="MEDLINE" Owner="NLM" IndexingMethod="Automated">'
        f'<PMID Version="{1 + (number % 40 == 0)}">{30_000_000 + number}</PMID>'
        f"{_date('DateCompleted', year, random)}{_date('DateRevised', year, random)}"
        f'<Article PubModel="Print-Electronic">{_journal(random, year)}'
        f"<ArticleTitle>{_text(random, 14, 0.1)}.</ArticleTitle>"
        f"<Pagination><StartPage>{number % 900}</StartPage><MedlinePgn>{number % 900}-9"
        '</MedlinePgn></Pagination><ELocationID EIdType="doi" ValidYN="Y">'
        f"10.5555/{number:07d}</ELocationID>"
        f"{_abstract(random)}{_authors(random)}<Language>{_one(random, 'eng', 'fre')}</Language>"
        f"{_grants(random)}{_types(random, number)}"
        "<ArticleDate DateType='Electronic'><Year>2012</Year><Month>02</Month><Day>20</Day>"
        "</ArticleDate></Article><MedlineJournalInfo><Country>England</Country><MedlineTA>J Ex"
        f"</MedlineTA><NlmUniqueID>0376334</NlmUniqueID><ISSNLinking>1234-5678</ISSNLinking>"
        f"</MedlineJournalInfo>{_chemicals(random)}<CitationSubset>IM</CitationSubset>"
        f"{_corrections(random, number)}{_headings(random)}{_keywords(random)}</MedlineCitation>"
        f"<PubmedData>{_history(random, year)}<PublicationStatus>ppublish</PublicationStatus>"
        f"{_ids(number)}{_references(random)}</PubmedData></PubmedArticle>"
    )


def _one(random: Random, usual: str, other: str) -> str:
    return usual if random.random() < 0.9 else other


def _text(random: Random, words: int, marked: float = 0.0) -> str:
    chosen = random.choices(_WORDS, k=words)
    if random.random() < marked:
        chosen[random.randrange(1, words)] = random.choice(_MARKED)
    return " ".join(chosen).capitalize() if "<" not in chosen[0] else " ".join(chosen)


def _date(tag: str, year: int, random: Random, attributes: str = "") -> str:
    month, day = random.randint(1, 12), random.randint(1, 28)
    return (
        f"<{tag}{attributes}><Year>{year}</Year><Month>{month:02d}</Month><Day>{day:02d}</Day>"
        f"</{tag}>"
    )


def _journal(random: Random, year: int) -> str:
    chance = random.random()
    day = f"<Day>{random.randint(1, 28)}</Day>" if chance < 0.6 else ""
    published = f"<Year>{year}</Year><Month>{random.choice(_MONTHS)}</Month>{day}"
    if chance > 0.97:
        published = f"<MedlineDate>{year} Jan-Feb</MedlineDate>"
    issn = '<ISSN IssnType="Electronic">1234-567X</ISSN>' if chance < 0.95 else ""
    return (
        f'<Journal>{issn}<JournalIssue CitedMedium="Internet"><Volume>{year - 1970}</Volume>'
        f"<Issue>{random.randint(1, 12)}</Issue><PubDate>{published}</PubDate></JournalIssue>"
        "<Title>Journal of measured things and of their ways</Title>"
        "<ISOAbbreviation>J Meas Things</ISOAbbreviation></Journal>"
    )


def _abstract(random: Random) -> str:
    chance = random.random()
    if chance < 0.15:
        return ""
    if chance < 0.65:
        paragraphs = f"<AbstractText>{_text(random, random.randint(90, 260), 0.5)}.</AbstractText>"
    else:
        paragraphs = "".join(
            f'<AbstractText Label="{label}" NlmCategory="{label}">'
            f"{_text(random, random.randint(25, 90), 0.4)}.</AbstractText>"
            for label in _SECTIONS[: random.randint(4, 6)]
        )
    rights = "<CopyrightInformation>Copyright © Example Press.</CopyrightInformation>"
    return f"<Abstract>{paragraphs}{rights if chance < 0.4 else ''}</Abstract>"


def _authors(random: Random) -> str:
    if random.random() < 0.02:
        return ""
    many = random.randint(60, 110) if random.random() < 0.01 else random.randint(1, 12)
    listed = "".join(_author(random, number) for number in range(many))
    group = "<Author ValidYN='Y'><CollectiveName>The Example Group</CollectiveName></Author>"
    shown = listed + (group if random.random() < 0.03 else "")
    return f'<AuthorList CompleteYN="Y">{shown}</AuthorList>'


def _author(random: Random, number: int) -> str:
    given = random.choice(_GIVEN)
    known = f'<Identifier Source="ORCID">0000-0002-1825-{number:04d}</Identifier>'
    place = (
        "<AffiliationInfo><Affiliation>Department of Measured Things, Institute for "
        f"{random.choice(_TOPICS)}, University of Example, {random.randint(1, 99)} Long Street, "
        "Exampletown 12345, Exampleland.</Affiliation></AffiliationInfo>"
    )
    return (
        f'<Author ValidYN="Y"><LastName>{random.choice(_NAMES)}</LastName>'
        f"<ForeName>{given}</ForeName><Initials>{given[0]}</Initials>"
        f"{known if random.random() < 0.3 else ''}{place if random.random() < 0.8 else ''}</Author>"
    )


def _grants(random: Random) -> str:
    many = max(0, random.randint(-6, 4))
    listed = "".join(
        f"<Grant><GrantID>R01 EX{n:06d}</GrantID><Acronym>EX</Acronym><Agency>NIX</Agency>"
        "<Country>Exampleland</Country></Grant>"
        for n in range(many)
    )
    return f'<GrantList CompleteYN="Y">{listed}</GrantList>' if many else ""


def _types(random: Random, number: int) -> str:
    chosen = random.sample(_TYPES, random.randint(1, 3))
    chosen += ["Retracted Publication"] if number % 500 == 7 else []
    listed = "".join(f'<PublicationType UI="D016428">{one}</PublicationType>' for one in chosen)
    return f"<PublicationTypeList>{listed}</PublicationTypeList>"


def _chemicals(random: Random) -> str:
    many = max(0, random.randint(-5, 6))
    listed = "".join(
        f'<Chemical><RegistryNumber>0</RegistryNumber><NameOfSubstance UI="D{n:06d}">'
        f"{random.choice(_TOPICS)} factor</NameOfSubstance></Chemical>"
        for n in range(many)
    )
    return f"<ChemicalList>{listed}</ChemicalList>" if many else ""


def _corrections(random: Random, number: int) -> str:
    if random.random() > 0.08:
        return ""
    kind = random.choice(("ErratumIn", "CommentIn", "RetractionIn"))
    return (
        f'<CommentsCorrectionsList><CommentsCorrections RefType="{kind}"><RefSource>J Ex. 2020'
        f'</RefSource><PMID Version="1">{20_000_000 + number}</PMID></CommentsCorrections>'
        "</CommentsCorrectionsList>"
    )


def _headings(random: Random) -> str:
    many = max(0, random.randint(-6, 20))
    listed = "".join(
        f'<MeshHeading><DescriptorName UI="D{n:06d}" MajorTopicYN="N">{random.choice(_TOPICS)}'
        "</DescriptorName>"
        + '<QualifierName UI="Q000379" MajorTopicYN="Y">methods</QualifierName>' * (n % 3 == 0)
        + "</MeshHeading>"
        for n in range(many)
    )
    return f"<MeshHeadingList>{listed}</MeshHeadingList>" if many else ""


def _keywords(random: Random) -> str:
    many = max(0, random.randint(-3, 7))
    listed = "".join(f'<Keyword MajorTopicYN="N">{_text(random, 2)}</Keyword>' for _ in range(many))
    return f'<KeywordList Owner="NOTNLM">{listed}</KeywordList>' if many else ""


def _history(random: Random, year: int) -> str:
    stages = ("received", "revised", "accepted", "entrez", "pubmed", "medline")
    listed = "".join(
        f'<PubMedPubDate PubStatus="{stage}"><Year>{year}</Year><Month>{random.randint(1, 12)}'
        f"</Month><Day>{random.randint(1, 28)}</Day><Hour>6</Hour><Minute>0</Minute>"
        "</PubMedPubDate>"
        for stage in stages[random.randint(0, 3) :]
    )
    return f"<History>{listed}</History>"


def _ids(number: int) -> str:
    ids = {"pubmed": str(30_000_000 + number), "doi": f"10.5555/J.Meas.{number:07d}"}
    ids |= {"pii": f"S0000-{number}"} if number % 3 == 0 else {}
    ids |= {"pmc": f"PMC{1_000_000 + number}"} if number % 4 == 0 else {}
    listed = "".join(f'<ArticleId IdType="{kind}">{one}</ArticleId>' for kind, one in ids.items())
    return f"<ArticleIdList>{listed}</ArticleIdList>"


def _references(random: Random) -> str:
    if random.random() > 0.4:
        return ""
    listed = "".join(
        f"<Reference><Citation>{random.choice(_NAMES)} A, {random.choice(_NAMES)} B. "
        f"{_text(random, 10)}. J Meas Things. {random.randint(1970, 2025)};12(3):45-67.</Citation>"
        f'<ArticleIdList><ArticleId IdType="pubmed">{20_000_000 + n}</ArticleId></ArticleIdList>'
        "</Reference>"
        for n in range(random.randint(8, 50))
    )
    return f"<ReferenceList>{listed}</ReferenceList>"
