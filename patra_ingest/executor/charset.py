"""What characters the bytes of a body are: by its mark, by its header, else UTF-8. Pure."""

import codecs
import re
from dataclasses import dataclass

from patra_ingest.transport.messages import Response

_DECLARED = re.compile(r"""charset\s*=\s*["']?([\w.:+-]+)""", re.IGNORECASE | re.ASCII)
_XML_DECLARED = re.compile(rb"\s*<\?xml[^>]{0,200}\bencoding\s*=")
_MARKS = (  # the longer first: UTF-32 begins as UTF-16 does
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True)
class Charset:
    """The name of a character set, and how many bytes of the body only announce it."""

    name: str
    mark: int = 0

    @property
    def is_utf8(self) -> bool:
        """Whether orjson can read such a body as it is."""
        return self.name in ("utf-8", "ascii")


def charset_of(response: Response) -> Charset:
    """Return the charset of a body. A byte order mark wins over the header, which may be a default.

    A charset that nobody knows is taken for UTF-8, which most of them mean.
    """
    for mark, name in _MARKS:
        if response.body.startswith(mark):
            return Charset(name, len(mark))
    declared = _DECLARED.search(response.headers.get("content-type", ""))
    return Charset(_known(declared[1]) if declared else "utf-8")


def as_text(body: bytes, charset: Charset) -> str:
    """Return the body as text; raise ValueError with the charset and the byte that does not fit."""
    try:
        return body[charset.mark :].decode(charset.name)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"byte {error.start + charset.mark + 1} does not fit the charset {charset.name}"
        ) from error


def xml_names_its_charset(body: bytes) -> bool:
    """Whether an XML body says itself what its characters are; the header does not matter then."""
    return _XML_DECLARED.match(body) is not None


def _known(name: str) -> str:
    try:
        found = codecs.lookup(name)
    except LookupError:
        return "utf-8"
    # Codecs such as hex and zlib are no character sets, though Python keeps them in one list.
    return found.name if found._is_text_encoding else "utf-8"
