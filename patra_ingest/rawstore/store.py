"""Response bodies in a folder, compressed, each under the SHA-256 of its content.

The same body is kept once, however often and by however many processes it is put.
A body appears under its name whole or not at all.
"""

import hashlib
import os
import re
import threading
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import zstandard

from patra_ingest.errors import PersonMustAct, UnknownName

_LEVEL = 1
# One level of folders: to make a folder takes longer than to write a body. There once were two.
_KEY = re.compile(r"sha256/([0-9a-f]{2})/(?:\1[0-9a-f]{62}|([0-9a-f]{2})/\1\2[0-9a-f]{60})\.zst")


class RawStore:
    """The bodies under one local folder, which is made when the first one arrives."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lanes = threading.local()  # a compressor is costly to make and not to be shared

    def put(self, body: bytes) -> str:
        """Keep `body` and return its storage key; a body already kept is young again."""
        digest = hashlib.sha256(body).hexdigest()
        key = f"sha256/{digest[:2]}/{digest}.zst"
        name = f"{self._folder}/{key}"  # a text: once per page, a Path takes its time
        if _is_there(name):
            with suppress(FileNotFoundError):  # retention was quicker: it is written again
                os.utime(name)
                return key
        self._write(name, self._compressor().compress(body))
        return key

    def _compressor(self) -> zstandard.ZstdCompressor:
        found: zstandard.ZstdCompressor | None = getattr(self._lanes, "compressor", None)
        if found is None:
            found = self._lanes.compressor = zstandard.ZstdCompressor(level=_LEVEL)
        return found

    def get(self, key: str) -> bytes:
        """Return the body under `key`, checked against the digest in its name."""
        path = self._path(key)
        try:
            body = zstandard.decompress(path.read_bytes())
        except FileNotFoundError:
            raise UnknownName(
                f"The raw body {key} is not in {self._folder}.",
                "It is older than its retention, or PATRA_HOME is another one than it was then.",
            ) from None
        except zstandard.ZstdError as error:
            raise self._damaged(key, str(error)) from None
        except OSError as error:
            raise PersonMustAct(
                f"The raw body {key} in {self._folder} cannot be read ({error}).",
                "Check the folder and its permissions.",
            ) from error
        found = hashlib.sha256(body).hexdigest()
        if found != path.stem:
            raise self._damaged(key, f"its content has the digest {found}")
        return body

    def exists(self, key: str) -> bool:
        """Tell whether the body under `key` is kept."""
        return _is_there(self._path(key))

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise UnknownName(f"{key!r} is not a raw-body key.", "Use one from a batch row.")
        return self._folder / key

    def _write(self, name: str, packed: bytes) -> None:
        part = f"{name}.{uuid4().hex}.part"
        try:
            try:
                _write_bytes(part, packed)
                # Whoever comes second replaces the file with the same bytes.
                os.replace(part, name)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(part)
                raise
        except OSError as error:
            raise PersonMustAct(
                f"A response body cannot be kept in {self._folder} ({error}).",
                "Make room or correct the permissions there, then start again.",
            ) from error

    def _damaged(self, key: str, seen: str) -> PersonMustAct:
        return PersonMustAct(
            f"The raw body {key} in {self._folder} is damaged: {seen}.",
            "Restore the file from a backup, or remove it and replay with --live.",
        )


def _is_there(name: Path | str) -> bool:
    try:
        # An empty file is what a power cut leaves of one; no compressed body is empty.
        return os.stat(name).st_size > 0
    except OSError:
        return False  # whoever then reads or writes it is told why


def _write_bytes(name: str, packed: bytes) -> None:
    """Write a new file; its folder is nearly always there, once the store has grown."""
    try:
        with open(name, "xb") as file:
            file.write(packed)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "xb") as file:
            file.write(packed)
