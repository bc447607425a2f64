"""What may be written down of a request or an answer. Pure.

Every URL, header and text passes here before it reaches a table, a log or a message: credentials
become `***`, mail addresses `j…@host`. When in doubt a value is hidden: the true request can be
rebuilt from the snapshot, a leaked key cannot be called back.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote, unquote_plus, urlsplit, urlunsplit

from patra_ingest.model.secrets import is_secret_name

HIDDEN = "***"

_SECRET_HEADER = re.compile(
    r"authori[sz]ation|cookie|token|secret|passw|signature|credential|^x-auth"
    r"|(?:api|access|auth|subscription)-?key",
    re.IGNORECASE,
)

_USERINFO = re.compile(r"(?<=://)[^\s/?#\"'<>]*@")
_HEADER_LINE = re.compile(
    r"((?:authorization|cookie)\\?[\"']?\s*[:=]\s*\\?[\"']?)[^\r\n\"'\\]+", re.IGNORECASE
)
# A challenge (Bearer realm="…") and ordinary words (basic research) are no credentials.
_SCHEME = re.compile(
    r"\b((?i:bearer)\s+(?!\w+=\")|(?i:basic|digest|token)\s+(?=\S*(?:\d|=|[a-z][A-Z])))"
    r"[\w.~+/\-=%]{6,}"
)
_JWT = re.compile(r"\beyJ[\w\-]{6,}\.[\w\-.]+")
_TAG = re.compile(r"<([\w.\-]{2,64})>[^<>]+(?=</\1>|\Z)")
# name=value, name: value, "name": "value"; also percent-encoded, or quoted inside a JSON string
_NAME = re.compile(
    r"""(?:(?<![\w.\-])|(?<=%2[26])|(?<=%3F))([A-Za-z][\w.\-]{1,63})(?:\\?["']|%22)?\s*(=|:|%3[AD])\s*(?:%22)?""",
    re.IGNORECASE,
)
# A text may come to us cut off: what is not closed ends where the text ends.
_VALUE = re.compile(r"""(\\?["']).*?(?:\1|\Z)|(?:(?!%2[26])[^\s&;,"'<>{}\[\]|\\])+""", re.DOTALL)
_MAIL = re.compile(
    r"(?<![\w.%+\-])([A-Za-z0-9])[\w.%+\-]{0,63}@((?:[A-Za-z0-9\-]{1,63}\.)+[A-Za-z]{2,24})"
)


def redact_url(url: str) -> str:
    """Return `url` without user, password, secret parameters and whole mail addresses."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return redact_text(url)
    _, at, host = parts.netloc.rpartition("@")
    return urlunsplit(
        (
            parts.scheme,
            f"{HIDDEN}@{host}" if at else host,
            _redact_path(parts.path),
            _redact_query(parts.query),
            _redact_query(parts.fragment),
        )
    )


def hide_parameters(url: str) -> str:
    """Return `url` with its secret parameters hidden and nothing else: it still says which page."""
    base, mark, query = url.partition("?")
    pairs = "&".join(_hide_parameter(pair) for pair in query.split("&"))
    return _USERINFO.sub(f"{HIDDEN}@", base) + mark + pairs


def redact_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with lower-case names, credentials hidden and other values redacted."""
    return {
        name.lower(): HIDDEN if _SECRET_HEADER.search(name) else redact_text(value, None)
        for name, value in headers.items()
    }


def redact_text(text: str, limit: int | None = 1024) -> str:
    """Return `text` without anything that looks like a credential, cut to `limit` characters."""
    if limit is not None:
        # Redacting a whole body to keep 1 KB of it would be waste; this cut lies far enough
        # behind the part that is kept.
        text = text[: 4 * limit]
    clean = _USERINFO.sub(f"{HIDDEN}@", text)
    clean = _HEADER_LINE.sub(rf"\1{HIDDEN}", clean)
    clean = _SCHEME.sub(rf"\1{HIDDEN}", clean)
    clean = _JWT.sub(HIDDEN, clean)
    clean = _TAG.sub(_redact_tag, clean)
    clean = _redact_pairs(clean)
    clean = _MAIL.sub(r"\1…@\2", clean)
    if limit is not None and len(clean) > limit:
        return clean[: limit - 1] + "…"
    return clean


def _hide_parameter(pair: str) -> str:
    name, equals, value = pair.partition("=")
    is_secret = equals and value and is_secret_name(unquote_plus(name), as_parameter=True)
    return f"{name}={HIDDEN}" if is_secret else pair


def _redact_query(query: str) -> str:
    return "&".join(_redact_parameter(parameter) for parameter in query.split("&"))


@lru_cache(maxsize=128)  # all pages of a slice share theirs
def _redact_path(path: str) -> str:
    return redact_text(path, None)


@lru_cache(maxsize=128)  # … and most of their parameters
def _redact_parameter(parameter: str) -> str:
    hidden = _hide_parameter(parameter)
    if hidden != parameter:
        return hidden
    plain = unquote_plus(parameter)
    clean = redact_text(plain, None)
    if clean == plain:
        return parameter  # as it was sent, to the last percent sign
    return quote(clean, safe="=:/@,*").replace("%E2%80%A6", "…")


def _redact_tag(found: re.Match[str]) -> str:
    return f"<{found[1]}>{HIDDEN}" if is_secret_name(found[1], as_parameter=False) else found[0]


def _redact_pairs(text: str) -> str:
    kept, done = [], 0
    for name in _NAME.finditer(text):
        if name.start() < done or not is_secret_name(name[1], as_parameter=name[2] != ":"):
            continue  # and go on behind the name: the value of a harmless pair may hold another
        if value := _VALUE.match(text, name.end()):
            quoted = value[1] or ""
            kept += [text[done : name.end()], quoted, HIDDEN, quoted]
            done = value.end()
    return "".join([*kept, text[done:]])
