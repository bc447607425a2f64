"""Where secrets are read, and where a new refresh token is kept. No other module does either.

A source that replaces a refresh token with every use has forgotten the old one: the new one is
written down before anybody uses it, readable by nobody else.
"""

import fcntl
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from patra_ingest.errors import EndpointHalted
from patra_ingest.spec.policies import Credential
from patra_ingest.spec.references import secrets_of

ReadSecret = Callable[[str], str | None]
_OWNER_ONLY = 0o700


class Credentials:
    """The secrets of this machine; `folder` keeps the tokens that replaced one of them."""

    def __init__(self, read_secret: ReadSecret, folder: Path) -> None:
        self._read_secret = read_secret
        self._folder = folder

    def find(self, reference: str) -> str | None:
        """Return the secret at a reference, or None: there is none, or an empty one."""
        return self._read_secret(reference) or None

    def get(self, reference: str) -> str:
        """Return the secret at a reference; EndpointHalted names the reference if there is none."""
        secret = self.find(reference)
        if secret is None:
            raise EndpointHalted(f"there is no secret at {reference}; put it there, then resume")
        return secret

    def missing(self, credential: Credential) -> list[str]:
        """Return the references of a credential that lead nowhere."""
        return [place for place in secrets_of(credential) if self.find(place) is None]

    def fingerprint(self, credential: Credential) -> str:
        """Return what changes as soon as one of its secrets does."""
        return _digest("\0".join(self.find(place) or "" for place in secrets_of(credential)))

    @contextmanager
    def alone(self, owner: str, name: str) -> Iterator[None]:
        """Keep every other process of this machine from renewing the same credential."""
        place = self._place(owner, name)
        try:
            self._folder.mkdir(mode=_OWNER_ONLY, parents=True, exist_ok=True)
            lock = os.open(f"{place}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise EndpointHalted(_unwritable(self._folder, error)) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def refresh_token(self, owner: str, name: str, reference: str) -> str:
        """Return the refresh token: the one that replaced what is at the reference, if any did."""
        given = self.get(reference)
        kept = _read_kept(self._place(owner, name))
        # A person who puts another token at the reference means that one.
        return kept["token"] if kept.get("replaces") == _digest(given) else given

    def keep_refresh_token(self, owner: str, name: str, reference: str, token: str) -> None:
        """Keep the token that replaces the one at `reference`, so that a restart finds it.

        A file that can be written is written; else it is kept in our own folder.
        """
        kind, _, place = reference.partition(":")
        if kind == "file" and _try_write(Path(place).resolve(), token + "\n"):
            return
        given = _digest(self.get(reference))
        kept = self._place(owner, name)
        if not _try_write(kept, json.dumps({"replaces": given, "token": token})):
            raise EndpointHalted(
                f"the new refresh token of {name} cannot be kept at {kept}, and the old one may be"
                f" void: make the folder writable, put a new token at {reference}, then resume"
            )

    def _place(self, owner: str, name: str) -> Path:
        return self._folder / re.sub(r"[^A-Za-z0-9_.-]", "_", f"{owner}-{name}")


def _read_kept(place: Path) -> dict[str, str]:
    try:
        kept = json.loads(place.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise EndpointHalted(
            f"the kept refresh token {place} cannot be read ({type(error).__name__}): delete the"
            " file if its reference holds a newer token, then resume"
        ) from None
    return {key: str(value) for key, value in kept.items()} if isinstance(kept, dict) else {}


def _try_write(place: Path, text: str) -> bool:
    """Replace a file in one step; half of it is never seen, and only we may read it (0600)."""
    try:
        handle, draft = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    except OSError:
        return False
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, place)
    except OSError:
        Path(draft).unlink(missing_ok=True)
        return False
    return True


def _digest(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _unwritable(folder: Path, error: OSError) -> str:
    return (
        f"refresh tokens cannot be kept in {folder} ({error.strerror}): make it writable for this"
        " user, then resume"
    )
