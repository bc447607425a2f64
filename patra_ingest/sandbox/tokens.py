"""The cursors the sandbox hands out: opaque, stateless, and bound to what was asked. Pure.

A token holds `+`, `/` and `=` on purpose. Sent back without percent-encoding, `+` arrives as a
space and the token is invalid, exactly as it happens to careless clients of Crossref.
"""

import binascii
from base64 import b64decode, b64encode
from hashlib import blake2b

_MARK = "DnF1+/"


def write_token(position: int, scope: str) -> str:
    """Return the cursor that goes on `position` works into `scope`."""
    return _MARK + b64encode(position.to_bytes(8, "big") + _seal(scope)).decode()


def read_token(token: str, scope: str) -> int | None:
    """Return the position in a cursor, or None when it was not handed out for `scope`."""
    if not token.startswith(_MARK):
        return None
    try:
        decoded = b64decode(token.removeprefix(_MARK), validate=True)
    except (binascii.Error, ValueError):
        return None
    # Only the one spelling that was handed out is good.
    position = int.from_bytes(decoded[:8], "big")
    return position if token == write_token(position, scope) else None


def _seal(scope: str) -> bytes:
    # Eight bytes, so that 16 in all leave one over and the token always ends with "==".
    return blake2b(scope.encode(), digest_size=8).digest()
