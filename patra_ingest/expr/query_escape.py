"""Keeping a person's text inside its clause, whatever it holds.

`written(…)` is for a value that stands bare, `quoted(…)` for one in double quotes. Both raise
ValueError when the syntax has no way to say the value; neither ever lets a quote, a bracket, an
operator or a separator of the value act as one.
"""

import re
import unicodedata

from patra_ingest.expr.query_rules import Syntax

_BOOLEAN = re.compile(r"\b(AND|OR|NOT)\b")
# PubMed has no escape character. Typographic quotes count as quotes there, # names an old search.
_PUBMED_QUOTED = re.compile('["“”„‟″＂\\[\\]［］]')
_PUBMED_BARE = re.compile('["“”„‟″＂\\[\\]［］(){}（）:：,，#&|]')
_LUCENE_QUOTED = re.compile(r'["\\]')
_LUCENE_BARE = re.compile(r'[+\-&|!(){}\[\]^"~*?:\\/=,;]')
_JOINERS = "\u200c\u200d"  # part of the spelling in several scripts
_UNESCAPABLE = re.compile("[<>]")  # Elasticsearch reads them as ranges even after a backslash


def written(syntax: Syntax, value: str) -> str:
    """Return the value as it may stand bare in a clause of this syntax."""
    text = _one_line(value)
    match syntax:
        case Syntax.PUBMED:
            text = _lowered(_squeezed(_PUBMED_BARE.sub(" ", text)))
        case Syntax.LUCENE:
            text = _lucene_words(text)
        case Syntax.CROSSREF_FILTER:
            _require_no_comma(text)
    return _require_something(text, value)


def quoted(syntax: Syntax, value: str) -> str:
    """Return the value in double quotes, with nothing inside that could end them."""
    text = _one_line(value)
    match syntax:
        case Syntax.PUBMED:
            text = _squeezed(_PUBMED_QUOTED.sub(" ", text))
        case Syntax.LUCENE:
            text = _LUCENE_QUOTED.sub(r"\\\g<0>", text)
        case Syntax.CROSSREF_FILTER:
            _require_no_comma(text)
            text = _squeezed(text.replace('"', " "))
        case Syntax.NONE:
            text = _squeezed(text.replace('"', " "))
    return f'"{_require_something(text, value) if value.strip() else ""}"'


def _lucene_words(text: str) -> str:
    plain = _squeezed(_UNESCAPABLE.sub(" ", text))
    escaped = _LUCENE_BARE.sub(r"\\\g<0>", _lowered(plain))
    # Without parentheses only the first word would belong to the clause's field.
    return f"({escaped})" if " " in escaped else escaped


def _one_line(value: str) -> str:
    return _squeezed("".join(_visible(character) for character in value))


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Cc", "Zl", "Zp", "Zs"):
        return " "
    # A soft hyphen or a zero-width space would hide a word from us that the source then sees.
    return "" if category == "Cf" and character not in _JOINERS else character


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _lowered(text: str) -> str:
    return _BOOLEAN.sub(lambda word: word[0].lower(), text)


def _require_no_comma(text: str) -> None:
    if "," in text:
        raise ValueError("a filter has no way to write a comma")


def _require_something(text: str, value: str) -> str:
    if not text:
        raise ValueError("nothing of it can be written" if value.strip() else "a blank has no form")
    return text
