"""Known secrets, hidden by value wherever and however they are written. Pure.

`redact` knows secrets by the names they stand under; here they are known themselves, so a key in a
parameter called `k`, in a path or echoed in an error message is hidden as well.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from html.entities import html5
from urllib.parse import unquote, unquote_plus, urlsplit, urlunsplit

from patra_ingest.transport.redact import HIDDEN

# A shorter one is hidden as a whole word only: a key `1` must not blank out every number.
_WORD = 8
_SURELY_A_KEY = 16
_SHORTEST_KEY = 6
_IN_NAMES = frozenset(" -_.'@")  # what a name may hold beside letters
# Escapes and encodings end in letters and digits, and are no part of the word behind them.
_BEGIN = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{4})"
    r"|(?<=%[0-9A-Fa-f]{2})|(?<=%25[0-9A-Fa-f]{2}))"
)
_END = "(?![A-Za-z0-9])"


def hide(text: str, secrets: Iterable[str], by: str = HIDDEN) -> str:
    """Return `text` without the secrets, however written: see `_written`."""
    for secret in sorted(secrets, key=len, reverse=True):
        if secret:
            text = _pattern(secret, _WORD).sub(by, text)
    return text


def hide_in_body(body: bytes, secrets: Iterable[str]) -> bytes:
    """Return a body without the keys that it repeats; the very same bytes where it repeats none.

    Only what cannot be a word of somebody's record: a user name is no reason to change one.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if _is_key(secret) and _may_be_in(secret, body):
            # Byte for byte: whatever its charset, what is not a key stays as it is.
            body = _bytes_pattern(secret).sub(HIDDEN.encode(), body)
    return body


def _is_key(secret: str) -> bool:
    """Whether no record holds this by chance: it is long, or no mere word, name or number."""
    if not _SHORTEST_KEY <= len(secret) < _SURELY_A_KEY:
        return len(secret) >= _SURELY_A_KEY
    others = [sign for sign in secret if not sign.isalpha()]
    return 0 < len(others) < len(secret) and not _IN_NAMES.issuperset(others)


def _may_be_in(secret: str, body: bytes) -> bool:
    """Whether a body is worth a closer look: nearly all are not, and large ones are many.

    Letters and digits are written as they are, or encoded although nobody has to.
    """
    run, percent, entity = _longest_run(secret)
    return (
        run in body
        or (b"%" in body and percent.search(body) is not None)
        or (b"#" in body and entity.search(body) is not None)
    )


def hide_headers(headers: Mapping[str, str], secrets: Iterable[str]) -> dict[str, str]:
    """Return the headers with every secret in a value hidden."""
    known = tuple(secrets)
    return {name: hide(value, known) for name, value in headers.items()}


def strip_url(url: str, secrets: Iterable[str], names: Iterable[str] = ()) -> str:
    """Return `url` without user, password, the parameters `names` and those that hold a secret.

    What is left can be stored and asked again: signing puts the credential back.
    """
    # A short secret may as well be an ordinary value; a filter must not vanish for that.
    long = tuple(secret for secret in secrets if len(secret) >= _WORD)
    try:
        parts = urlsplit(url)
    except ValueError:
        return hide(url, long)
    gone = frozenset(names)
    kept = [
        pair
        for pair in parts.query.split("&")
        if unquote_plus(pair.partition("=")[0]) not in gone and not holds_secret(pair, long)
    ]
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "&".join(kept), parts.fragment))


def holds_secret(text: str, secrets: Iterable[str]) -> bool:
    """Whether one of the secrets is in a text, as it is or percent-encoded."""
    forms = (text, unquote(text), unquote_plus(text))
    return any(
        secret and _pattern(secret, _WORD).search(form) for secret in secrets for form in forms
    )


@lru_cache(256)
def _pattern(secret: str, shortest: int) -> re.Pattern[str]:
    """Return what finds a secret; one that is shorter than this only as a whole word."""
    written = "".join(_written(character) for character in secret)
    return re.compile(written if len(secret) >= shortest else f"{_BEGIN}{written}{_END}")


@lru_cache(256)
def _bytes_pattern(secret: str) -> re.Pattern[bytes]:
    written = _pattern(secret, _SURELY_A_KEY).pattern
    return re.compile(written.encode("utf-8", "surrogatepass"))


@lru_cache(256)
def _longest_run(secret: str) -> tuple[bytes, re.Pattern[bytes], re.Pattern[bytes]]:
    """Return the longest run of letters and digits, and what finds one of them encoded."""
    run = max(re.findall("[A-Za-z0-9]*", secret), key=len)
    signs = [ord(character) for character in sorted(set(run))]
    percent = "|".join(map(_hex, signs))
    entity = "|".join(map(_number, signs))
    return (
        run.encode(),
        re.compile(f"%(?:25)*(?:{percent})".encode()),
        re.compile(f"#(?:{entity});".encode()),
    )


def _written(character: str) -> str:
    """Return a pattern of every way in which a character may be written.

    Plain, percent-encoded once or more, as an entity of HTML or XML, escaped in JSON.
    """
    ways = ["".join(f"%(?:25)*{_hex(byte)}" for byte in _bytes(character))]
    if not (character.isascii() and character.isalnum()):
        ways.append("".join(rf"\\+u{unit}" for unit in _utf16(character)))
    if character in '"\\/':
        ways.append(r"\\+" + re.escape(character))
    if character == " ":
        ways.append(r"\+")
    names = [f"|{name}" for name, text in html5.items() if text == character]
    named = "".join(name.removesuffix(";") for name in names)
    ways.append(rf"(?:&|\\+u0026)(?:amp;)*(?:#(?:{_number(ord(character))}){named});")
    ways.append(re.escape(character))  # last: a percent sign also begins its own encoding
    return f"(?:{'|'.join(ways)})"


def _number(code: int) -> str:
    """Return a pattern of the number of a character in an entity, decimal or hexadecimal."""
    return f"0*{code}|[xX]0*{_either_case(f'{code:X}')}"


def _utf16(character: str) -> Iterator[str]:
    raw = character.encode("utf-16-be", "replace")
    for start in range(0, len(raw), 2):
        yield "".join(_hex(byte) for byte in raw[start : start + 2])


def _bytes(character: str) -> bytes:
    return character.encode("utf-8", "replace")


def _hex(byte: int) -> str:
    return _either_case(f"{byte:02X}")


def _either_case(digits: str) -> str:
    return "".join(f"[{digit}{digit.lower()}]" if digit.isalpha() else digit for digit in digits)
