"""Compressed bodies, undone piece by piece: no input makes us hold much more than its limit. Pure.

httpx would unpack for us, but without a bound: 64 KB on the wire may stand for gigabytes.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator

import zstandard

ANNOUNCED = "gzip, deflate, zstd"

_PIECE = 256 * 1024  # bytes unpacked at a time
# A zstd block of 4 bytes may unpack to 128 KB, and its library knows no bound: small bites.
_ZSTD_BITE = 512
_ZSTD_WINDOW = 8 * 1024 * 1024  # the most that RFC 9659 allows on the web
_GZIP, _ZLIB, _RAW = 31, 15, -15
_MAX_LAYERS = 3
# Some servers name a charset, or that there is nothing, where a compression belongs.
_PLAIN = frozenset(
    ("", "identity", "none", "binary", "8bit", "7bit", "utf-8", "utf8", "us-ascii", "iso-8859-1")
)

Pieces = Iterable[bytes]


class UnknownEncoding(Exception):
    """A Content-Encoding that we did not ask for and cannot undo."""


class DamagedBody(Exception):
    """A body that is not what its Content-Encoding says, or that ends too early."""


def unpacker(content_encoding: str) -> Callable[[Pieces], Iterator[bytes]]:
    """Return what undoes a Content-Encoding, lazily; UnknownEncoding if nothing can."""
    names = [name.strip().lower() for name in content_encoding.split(",")]
    layers = [name for name in names if name not in _PLAIN]
    if len(layers) > _MAX_LAYERS or not _WAYS.keys() >= set(layers):
        raise UnknownEncoding(f"Content-Encoding {content_encoding!r:.80}")

    def unpack(pieces: Pieces) -> Iterator[bytes]:
        for name in reversed(layers):
            pieces = _WAYS[name](pieces)
        return iter(pieces)

    return unpack


def _gunzip(pieces: Pieces) -> Iterator[bytes]:
    return _inflated(pieces, lambda _first: _GZIP)


def _inflate(pieces: Pieces) -> Iterator[bytes]:
    """Undo deflate: with a zlib header, as the standard says, or without, as many servers do."""
    return _inflated(
        _with_two_bytes_first(pieces), lambda first: _ZLIB if _is_zlib(first) else _RAW
    )


def _inflated(pieces: Pieces, kind: Callable[[bytes], int]) -> Iterator[bytes]:
    """Undo one stream after the other: a gzip body may have several members."""
    stream = None
    ended = False
    for piece in pieces:
        while piece:
            if stream is None:
                piece = piece.lstrip(b"\0") if ended else piece  # padding behind a stream
                if not piece:
                    break
                stream = zlib.decompressobj(kind(piece))
            yield _inflate_some(stream, piece)
            piece = stream.unused_data if stream.eof else stream.unconsumed_tail
            if stream.eof:
                stream, ended = None, True
    # zlib may hold output back although it has taken all input.
    while stream is not None and (rest := _inflate_some(stream, b"")):
        yield rest
    if stream is not None and not stream.eof:
        raise DamagedBody("the compressed body ends too early")


def _inflate_some(stream: "zlib._Decompress", piece: bytes) -> bytes:
    try:
        return stream.decompress(piece, _PIECE)
    except zlib.error as error:
        raise DamagedBody(f"the compressed body is damaged: {error}") from error


def _with_two_bytes_first(pieces: Pieces) -> Iterator[bytes]:
    start = b""
    for piece in pieces:
        start += piece
        if len(start) >= 2:
            yield start
            start = b""
    yield start


def _is_zlib(first: bytes) -> bool:
    return len(first) > 1 and first[0] & 15 == 8 and int.from_bytes(first[:2], "big") % 31 == 0


def _unzstd(pieces: Pieces) -> Iterator[bytes]:
    frame = None
    for bite in _bites(pieces):
        while bite:
            frame = (
                frame or zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
            )
            try:
                yield frame.decompress(bite)
            except zstandard.ZstdError as error:
                raise DamagedBody(f"the compressed body is damaged: {error}") from error
            bite = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
    if frame is not None:
        raise DamagedBody("the compressed body ends too early")


def _bites(pieces: Pieces) -> Iterator[bytes]:
    for piece in pieces:
        for start in range(0, len(piece), _ZSTD_BITE):
            yield piece[start : start + _ZSTD_BITE]


_WAYS: dict[str, Callable[[Pieces], Iterator[bytes]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _inflate,
    "zstd": _unzstd,
}
