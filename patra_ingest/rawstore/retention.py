"""Old bodies leave the raw store. Whether one is still wanted is the ledger's to say."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path


def list_old_bodies(folder: Path, before: datetime) -> set[str]:
    """Return the storage keys of the bodies that were written before `before`."""
    return {str(path.relative_to(folder)) for path in _older(folder, "sha256/**/*.zst", before)}


def drop_bodies(folder: Path, keys: Iterable[str]) -> tuple[int, int]:
    """Remove bodies; return how many there were, and their bytes on the disk."""
    count = size = 0
    for key in keys:
        path = folder / key
        with suppress(FileNotFoundError):  # another upkeep was faster
            size += path.stat().st_size
            path.unlink()
            count += 1
    return count, size


def drop_remains(folder: Path, before: datetime) -> int:
    """Remove what writers that died left half-written before `before`; return how many files."""
    count = 0
    for path in list(_older(folder, "sha256/**/*.part", before)):
        path.unlink(missing_ok=True)
        count += 1
    return count


def _older(folder: Path, pattern: str, before: datetime) -> Iterator[Path]:
    for path in folder.glob(pattern):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < before.timestamp():
                yield path
