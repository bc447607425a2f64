"""What is taken out of questions and answers before they leave the house as a recording. Pure.

Secrets that are known are found by their value, others by the name they stand under: in the query
of an address, in JSON, in a tag or an attribute of XML. They become REDACTED. Every mail address
becomes REDACTED-1, REDACTED-2, …, the same one always the same: an id that looks like an address
stays one of its own. What is no secret stays as it is, byte for byte.
"""

import codecs
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, unquote_plus, urlsplit, urlunsplit

from patra_ingest.model.secrets import is_secret_name
from patra_ingest.transport.hiding import hide

REDACTED = "REDACTED"

# Bodies are read as Latin-1: a byte from \x80 on is a part of some letter.
_WORD = r"A-Za-z0-9\x80-\xff"
_AT = r"(?:@|%(?:25)?40|\\u0040|&#0*64;|&#[xX]0*40;|&commat;)"
_MAIL = re.compile(
    rf"[{_WORD}](?:[{_WORD}.+_'\-]|%(?!(?:25)?40)[0-9A-Fa-f]{{2}}){{0,63}}{_AT}"
    rf"(?:[{_WORD}\-]{{1,63}}\.){{1,8}}[A-Za-z]{{2,24}}(?![{_WORD}])"
)
_USER = re.compile(r"(?<=://)[^\s/?#\"'<>@]+@")
_BEARER = re.compile(r"\b((?:[Bb]earer|BEARER)\s+)(?=\S*[\d=])[\w.~+/\-=%]{8,}")
_JWT = re.compile(r"\beyJ[\w\-]{6,}\.[\w\-]+\.[\w\-]*")
# Each has what stands before a value, the name it stands under, and the value.
_PARAMETER = re.compile(
    r"(?P<before>(?:[?&]|&amp;|\\u0026|%26|%3[Ff])(?P<name>[A-Za-z][\w.\-\[\]]{0,63})(?:=|%3[Dd]))"
    r"(?P<value>(?:(?!&amp;|%26)[^\s&\"'<>\\;#])+)"
)
_NAMED = (
    re.compile(
        r"(?P<before>\"(?P<name>[A-Za-z][\w.\-]{1,63})\"\s*:\s*)"
        r"(?P<value>\"(?:[^\"\\]|\\.)*\"|-?\d[\d.eE+\-]*)"
    ),
    re.compile(  # JSON within a text of JSON
        r"(?P<before>\\\"(?P<name>[A-Za-z][\w.\-]{1,63})\\\"\s*:\s*)(?P<value>\\\"[^\"\\]*\\\")"
    ),
    re.compile(
        r"(?P<before><(?:\w+:)?(?P<name>[A-Za-z][\w.\-]{1,63})>)(?P<value>[^<>]+)(?=</(?:\w+:)?(?P=name)>)"
    ),
    re.compile(r"(?P<before>\s(?P<name>[A-Za-z][\w.\-]{1,63})=)(?P<value>\"[^\"<]+\"|'[^'<]+')"),
)


@dataclass
class Scrubber:
    """Scrubs all parts of one recording, so that what was one thing stays one thing."""

    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    counts: Counter[str] = field(default_factory=Counter)
    _mails: dict[str, str] = field(default_factory=dict, repr=False)

    def text(self, text: str) -> str:
        """Return a text without secrets and mail addresses."""
        clean = hide(text, self.secrets, REDACTED)
        self.counts["secret"] += clean != text
        clean = self._sub(_USER, "", clean)  # what is left is an address, and no mail address
        clean = self._sub(_BEARER, rf"\g<1>{REDACTED}", clean)
        clean = self._sub(_JWT, REDACTED, clean)
        clean = self._named(_PARAMETER, clean, as_parameter=True)
        for pattern in _NAMED:
            clean = self._named(pattern, clean, as_parameter=False)
        return _MAIL.sub(self._mail, clean)

    def body(self, body: bytes) -> bytes:
        """Return a body without them; in its own charset."""
        if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return self.text(body.decode("utf-16", "replace")).encode("utf-16")
        return self.text(body.decode("latin-1")).encode("latin-1")

    def url(self, url: str, kept: Iterable[str] = ()) -> str:
        """Return an address without them; a value among `kept` says where a page begins."""
        known = frozenset(kept)
        parts = urlsplit(url)
        pairs = [self._parameter(pair, known) for pair in parts.query.split("&") if pair]
        host = parts.netloc.rpartition("@")[2]
        path = self._encoded(parts.path, "/:@!$&'()*+,;=~")
        return urlunsplit((parts.scheme, host, path, "&".join(pairs), ""))

    def _parameter(self, pair: str, kept: frozenset[str]) -> str:
        name, equals, value = pair.partition("=")
        plain = unquote_plus(value)
        is_secret = is_secret_name(unquote_plus(name), as_parameter=True)
        if equals and plain and plain not in kept and is_secret:
            self.counts["secret"] += 1
            return f"{name}={REDACTED}"
        return f"{name}{equals}{self._encoded(value, '')}"

    def _encoded(self, written: str, safe: str) -> str:
        """Return a part of an address, as it was written where nothing had to go."""
        plain = unquote_plus(written) if not safe else unquote(written)
        clean = self.text(plain)
        return written if clean == plain else quote(clean, safe=safe)

    def _sub(self, pattern: re.Pattern[str], by: str, text: str) -> str:
        clean, count = pattern.subn(by, text)
        self.counts["secret"] += count
        return clean

    def _named(self, pattern: re.Pattern[str], text: str, as_parameter: bool) -> str:
        def redact(found: re.Match[str]) -> str:
            if not is_secret_name(found["name"], as_parameter) or REDACTED in found["value"]:
                return found[0]
            self.counts["secret"] += 1
            in_json = '"' in found["before"]
            return found["before"] + _like(found["value"], in_json)

        return pattern.sub(redact, text)

    def _mail(self, found: re.Match[str]) -> str:
        mail = re.sub(_AT, "@", found[0]).lower()
        if mail not in self._mails:
            self._mails[mail] = f"{REDACTED}-{len(self._mails) + 1}"
            self.counts["mail address"] += 1
        return self._mails[mail]


def _like(value: str, in_json: bool) -> str:
    """Return REDACTED in the quotes of a value; in JSON a number gets some."""
    quotes = next((one for one in ('\\"', '"', "'") if value.startswith(one)), "")
    quotes = quotes or ('"' if in_json else "")
    return f"{quotes}{REDACTED}{quotes}"
