"""The loop that somebody writes who has xmltodict: parse, look into dicts, build the same records.

Every field of the common record and of the built-in pack has its function here. Where packs write a
field in two ways there are two; the benchmark takes the one that finds what ours finds.
"""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import orjson
import xmltodict

Find = Callable[[dict[str, Any]], Any]
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def read_records(body: bytes, fields: Mapping[str, Find]) -> list[tuple[str, str, bytes, bytes]]:
    """Return id, content hash, fields and payload of every article of an answer."""
    found = listed(xmltodict.parse(body)["PubmedArticleSet"].get("PubmedArticle"))
    return [_record(article, fields) for article in found]


def _record(article: dict[str, Any], fields: Mapping[str, Find]) -> tuple[str, str, bytes, bytes]:
    kept = {name: find(article) for name, find in fields.items()}
    hashed = sha256(orjson.dumps(article, option=orjson.OPT_SORT_KEYS)).hexdigest()
    return kept["pmid"], hashed, orjson.dumps(kept), orjson.dumps(article)


def listed(value: Any) -> list[Any]:
    """Return what may be one element, several or none as a list."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def text(value: Any) -> str | None:
    """Return the text of an element: attributes make it a dict, and markup inside another one."""
    if value is None or isinstance(value, str):
        return value
    parts = [value.get("#text", "")]
    for name, inner in value.items():
        if name[0] not in "@#":
            parts += [text(one) or "" for one in listed(inner)]
    return "".join(parts) or None


def _collapsed(value: str | None) -> str | None:
    return " ".join(value.split()) if value else None


def _article(item: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = item["MedlineCitation"]["Article"]
    return found


def _below(item: Any, *names: str) -> Any:
    for name in names:
        if item is None:
            return None
        item = item.get(name)
    return item


def _pmid(item: dict[str, Any]) -> str | None:
    return text(item["MedlineCitation"]["PMID"])


def _version(item: dict[str, Any]) -> str | None:
    found: str | None = item["MedlineCitation"]["PMID"].get("@Version")
    return found


def _title(item: dict[str, Any]) -> str | None:
    return _collapsed(text(_article(item).get("ArticleTitle")))


def _abstracts(item: dict[str, Any]) -> list[Any]:
    return listed(_below(_article(item), "Abstract", "AbstractText"))


def _abstract(item: dict[str, Any]) -> str | None:
    parts = [text(part) for part in _abstracts(item)]
    return _collapsed(" ".join(part for part in parts if part))


def _has_abstract(item: dict[str, Any]) -> bool:
    return any(text(part) for part in _abstracts(item))


def _journal(item: dict[str, Any]) -> str | None:
    return text(_below(_article(item), "Journal", "Title"))


def _issn(item: dict[str, Any]) -> str | None:
    return text(_below(_article(item), "Journal", "ISSN"))


def _issns(item: dict[str, Any]) -> list[str] | None:
    found = _issn(item) or text(
        _below(item["MedlineCitation"], "MedlineJournalInfo", "ISSNLinking")
    )
    return [found] if found else None


def _language(item: dict[str, Any]) -> str | None:
    found = listed(_article(item).get("Language"))
    return text(found[0]) if found else None


def _ymd(value: dict[str, Any] | None) -> str | None:
    if not value:
        return None
    year = value.get("Year") or (value.get("MedlineDate") or "")[:4]
    month = value.get("Month")
    if not month:
        return year or None
    number = int(month) if month.isdecimal() else _MONTHS.index(month[:3].lower()) + 1
    day = value.get("Day")
    return f"{year}-{number:02d}" + (f"-{int(day):02d}" if day else "")


def _published(item: dict[str, Any]) -> str | None:
    return _ymd(_below(_article(item), "Journal", "JournalIssue", "PubDate"))


def _revised(item: dict[str, Any]) -> str | None:
    return _ymd(item["MedlineCitation"].get("DateRevised"))


def _created(item: dict[str, Any]) -> str | None:
    for stage in listed(_below(item["PubmedData"], "History", "PubMedPubDate")):
        if stage.get("@PubStatus") == "entrez":
            return _ymd(stage)
    return None


def _authors(item: dict[str, Any]) -> list[Any]:
    return listed(_below(_article(item), "AuthorList", "Author"))


def _last_names(item: dict[str, Any]) -> list[str] | None:
    return [one["LastName"] for one in _authors(item) if one.get("LastName")] or None


def _names(item: dict[str, Any]) -> list[str] | None:
    found = []
    for one in _authors(item):
        last = one.get("LastName")
        given = one.get("ForeName") or one.get("Initials")
        name = f"{last}, {given}" if last and given else last or one.get("CollectiveName")
        if name:
            found.append(name)
    return found or None


def _mesh(item: dict[str, Any]) -> list[str | None] | None:
    headings = listed(_below(item["MedlineCitation"], "MeshHeadingList", "MeshHeading"))
    return [text(one["DescriptorName"]) for one in headings] or None


def _types(item: dict[str, Any]) -> list[str | None] | None:
    kinds = listed(_below(_article(item), "PublicationTypeList", "PublicationType"))
    return [text(one) for one in kinds] or None


def _type(item: dict[str, Any]) -> str | None:
    found = _types(item)
    return found[0] if found else None


def _retracted(item: dict[str, Any]) -> bool:
    return "Retracted Publication" in (_types(item) or ())


def _corrected(item: dict[str, Any]) -> bool:
    notes = _below(item["MedlineCitation"], "CommentsCorrectionsList", "CommentsCorrections")
    kinds = {one.get("@RefType") for one in listed(notes)}
    return not kinds.isdisjoint(("ErratumIn", "CorrectedandRepublishedIn"))


def _id_of(kind: str) -> Find:
    def find(item: dict[str, Any]) -> str | None:
        for one in listed(_below(item["PubmedData"], "ArticleIdList", "ArticleId")):
            if one.get("@IdType") == kind:
                return text(one)
        return None

    return find


_written_doi = _id_of("doi")


def _doi(item: dict[str, Any]) -> str | None:
    found = _written_doi(item)
    return found.lower() if found else None


FINDS: Mapping[str, tuple[Find, ...]] = {
    "pmid": (_pmid,),
    "version": (_version,),
    "title": (_title,),
    "abstract": (_abstract,),
    "has_abstract": (_has_abstract,),
    "journal": (_journal,),
    "issn": (_issn, _issns),
    "language": (_language,),
    "published": (_published,),
    "revised": (_revised,),
    "created": (_created,),
    "authors": (_last_names, _names),
    "mesh": (_mesh,),
    "types": (_types,),
    "type": (_type,),
    "retracted": (_retracted,),
    "corrected": (_corrected,),
    "doi": (_doi,),
    "pmcid": (_id_of("pmc"),),
}
