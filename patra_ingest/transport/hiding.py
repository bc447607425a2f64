"""Known secrets, hidden by value wherever and however they are written. Pure.

`redact` knows secrets by the names they stand under; here they are known themselves, so a key in a
parameter called `k`, in a path or echoed in an error message is hidden as well.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from urllib.parse import unquote, unquote_plus, urlsplit, urlunsplit

from patra_ingest.transport.redact import HIDDEN

# A shorter one is hidden as a whole word only: a key `1` must not blank out every number.
_WORD = 8
_SURELY_A_KEY = 16


def hide(text: str, secrets: Iterable[str], by: str = HIDDEN) -> str:
    """Return `text` without the secrets, plain, percent-encoded (once or more) or JSON-escaped."""
    for secret in sorted(secrets, key=len, reverse=True):
        if secret:
            text = _pattern(secret).sub(by, text)
    return text


def hide_in_body(body: bytes, secrets: Iterable[str]) -> bytes:
    """Return a body without the keys that it repeats; the very same bytes where it repeats none.

    Only what is too long to be a word of somebody's record: a user name is no reason to change one.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SURELY_A_KEY and _may_be_in(secret, body):
            # Byte for byte: whatever its charset, what is not a key stays as it is.
            body = _bytes_pattern(secret).sub(HIDDEN.encode(), body)
    return body


def _may_be_in(secret: str, body: bytes) -> bool:
    """Whether a body is worth a closer look: nearly all are not, and large ones are many.

    Letters and digits are written as they are, or percent-encoded although nobody has to.
    """
    run, encoded = _longest_run(secret)
    return run in body or (b"%" in body and encoded.search(body) is not None)


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
    return any(secret and _pattern(secret).search(form) for secret in secrets for form in forms)


@lru_cache(256)
def _pattern(secret: str) -> re.Pattern[str]:
    written = "".join(_written(character) for character in secret)
    if len(secret) < _WORD:
        written = rf"(?<![A-Za-z0-9]){written}(?![A-Za-z0-9])"
    return re.compile(written)


@lru_cache(256)
def _bytes_pattern(secret: str) -> re.Pattern[bytes]:
    return re.compile(_pattern(secret).pattern.encode("utf-8", "surrogatepass"))


@lru_cache(256)
def _longest_run(secret: str) -> tuple[bytes, re.Pattern[bytes]]:
    """Return the longest run of letters and digits, and what finds one of them percent-encoded."""
    run = max(re.findall("[A-Za-z0-9]*", secret), key=len)
    ways = "|".join(_hex(ord(character)) for character in sorted(set(run)))
    return run.encode(), re.compile(f"%(?:25)*(?:{ways})".encode())


def _written(character: str) -> str:
    """Return a pattern of every way in which a character may be written."""
    ways = ["".join(f"%(?:25)*{_hex(byte)}" for byte in _bytes(character))]
    if not (character.isascii() and character.isalnum()):
        ways.append("".join(rf"\\+u{unit}" for unit in _utf16(character)))
    if character in '"\\/':
        ways.append(r"\\+" + re.escape(character))
    if character == " ":
        ways.append(r"\+")
    ways.append(re.escape(character))  # last: a percent sign also begins its own encoding
    return f"(?:{'|'.join(ways)})"


def _utf16(character: str) -> Iterator[str]:
    raw = character.encode("utf-16-be", "replace")
    for start in range(0, len(raw), 2):
        yield "".join(_hex(byte) for byte in raw[start : start + 2])


def _bytes(character: str) -> bytes:
    return character.encode("utf-8", "replace")


def _hex(byte: int) -> str:
    return "".join(
        f"[{digit}{digit.lower()}]" if digit.isalpha() else digit for digit in f"{byte:02X}"
    )
