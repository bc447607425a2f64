"""One body, packed in every way that a server may choose."""

import gzip
import zlib

import zstandard

BODY = b"x" * 5000
PACKED = {
    "gzip": gzip.compress(BODY),
    "x-gzip": gzip.compress(BODY),
    "members": gzip.compress(BODY[:1000]) + gzip.compress(BODY[1000:]) + b"\0\0",
    "deflate": zlib.compress(BODY),
    "raw": zlib.compress(BODY, wbits=-15),
    "zstd": zstandard.compress(BODY),
    "frames": zstandard.compress(BODY[:1000]) + zstandard.compress(BODY[1000:]),
    "twice": gzip.compress(zstandard.compress(BODY)),
    "identity": BODY,
    "br": BODY,
}
ENCODINGS = {"members": "gzip", "raw": "deflate", "frames": "zstd", "twice": "zstd, gzip"}
