"""The common record: what every built-in pack calls the things that most sources know.

A pack maps what its source has and leaves out the rest; it may add fields of its own. The record's
id, its update time and whether it was deleted are columns of the ledger, not fields.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_DOI = re.compile(r"10\.\d{4,9}/\S+", re.ASCII)
_DATE = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?", re.ASCII)
_ISSN = re.compile(r"\d{4}-\d{3}[\dX]", re.ASCII)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != ""


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_text, value))


def _is_doi(value: Any) -> bool:
    return _is_text(value) and _DOI.fullmatch(value) is not None and value == value.lower()


def _is_date(value: Any) -> bool:
    return _is_text(value) and _DATE.fullmatch(value) is not None


def _is_issns(value: Any) -> bool:
    return _is_texts(value) and all(_ISSN.fullmatch(one) for one in value)


@dataclass(frozen=True)
class CommonField:
    """A field of the common record: what it means, how it is written, and the test for that."""

    meaning: str
    written: str
    fits: Callable[[Any], bool]


COMMON_FIELDS: Mapping[str, CommonField] = {
    "doi": CommonField("its DOI", "lower case, without https://doi.org/", _is_doi),
    "pmid": CommonField(
        "its number in PubMed", "digits, as text", lambda value: _is_text(value) and value.isdigit()
    ),
    "pmcid": CommonField(
        "its number in PubMed Central",
        "PMC and digits",
        lambda value: _is_text(value) and value[:3] == "PMC" and value[3:].isdigit(),
    ),
    "title": CommonField("its title", "text", _is_text),
    "authors": CommonField(
        "who wrote it", "list of names; family name first where its parts are known", _is_texts
    ),
    "journal": CommonField("where it appeared", "text", _is_text),
    "issn": CommonField("the ISSNs of that", "list, each as 1234-567X", _is_issns),
    "published": CommonField("when it was published", "2026, 2026-11 or 2026-11-03", _is_date),
    "created": CommonField("when the source had it first", "a date, as above", _is_date),
    "type": CommonField("what it is, in the source's own words", "text", _is_text),
    "language": CommonField("the language it is written in, as the source says", "text", _is_text),
    "has_abstract": CommonField(
        "whether the source has an abstract", "true or false", lambda value: isinstance(value, bool)
    ),
    "license": CommonField("its licence: an address or a code", "text", _is_text),
    "retracted": CommonField(
        "whether it was retracted", "true or false", lambda value: isinstance(value, bool)
    ),
    "corrected": CommonField(
        "whether a correction was published", "true or false", lambda value: isinstance(value, bool)
    ),
}


def find_misfits(fields: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each common field that is written in another way; null always fits."""
    return [
        f"{name} is {fields[name]!r:.80}, not {common.written}"
        for name, common in COMMON_FIELDS.items()
        if fields.get(name) is not None and not common.fits(fields[name])
    ]
