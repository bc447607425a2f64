import hashlib
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest
import zstandard

from patra_ingest.errors import PersonMustAct, UnknownName
from patra_ingest.rawstore.store import RawStore

BODY = b'{"items": [1, 2, 3]}' * 500


@pytest.fixture
def store(tmp_path):
    return RawStore(tmp_path / "raw")


def files(store_folder):
    return [path for path in store_folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "body", [BODY, b"", bytes(range(256)) * 40], ids=["json", "empty", "bytes"]
)
def test_what_was_put_comes_back(store, body):
    key = store.put(body)

    assert store.get(key) == body
    assert store.exists(key)


def test_the_key_is_the_digest_of_the_body(store, tmp_path):
    digest = hashlib.sha256(BODY).hexdigest()

    key = store.put(BODY)

    assert key == f"sha256/{digest[:2]}/{digest}.zst"
    assert (tmp_path / "raw" / key).stat().st_size < len(BODY) / 10


def test_a_body_already_kept_is_not_written_again_but_young_again(store, tmp_path):
    path = tmp_path / "raw" / store.put(BODY)
    os.utime(path, (0, 0))
    before = path.stat()

    store.put(BODY)

    after = path.stat()
    assert before.st_ino == after.st_ino
    assert after.st_mtime > before.st_mtime + 1000


def test_what_a_power_cut_left_empty_is_written_again(store, tmp_path):
    path = tmp_path / "raw" / store.put(BODY)
    path.write_bytes(b"")

    assert store.get(store.put(BODY)) == BODY


def test_a_body_of_a_store_with_two_levels_of_folders_is_still_found(store, tmp_path):
    key = store.put(BODY)
    digest = hashlib.sha256(BODY).hexdigest()
    older = f"sha256/{digest[:2]}/{digest[2:4]}/{digest}.zst"
    (tmp_path / "raw" / older).parent.mkdir()
    (tmp_path / "raw" / key).rename(tmp_path / "raw" / older)

    assert store.exists(older)
    assert store.get(older) == BODY


def test_a_missing_body_is_named(store):
    key = store.put(BODY)
    other = f"sha256/00/0011{'0' * 60}.zst"

    assert not store.exists(other)
    with pytest.raises(UnknownName, match=f"The raw body {other} is not in"):
        store.get(other)
    assert store.get(key) == BODY


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda packed: packed[:-20], id="cut short"),
        pytest.param(lambda packed: b"garbage", id="something else"),
        pytest.param(lambda packed: zstandard.compress(b"another body"), id="another body"),
    ],
)
def test_a_damaged_body_is_never_handed_out(store, tmp_path, damage):
    key = store.put(BODY)
    path = tmp_path / "raw" / key
    path.write_bytes(damage(path.read_bytes()))

    with pytest.raises(PersonMustAct, match=f"{key} in .* is damaged"):
        store.get(key)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "../../etc/passwd",
        "sha256/ab/abcd.zst",
        f"sha256/ab/{'0' * 64}.zst",
        "sha256/ab/cd/abcd.zst",
        f"sha256/ab/cd/{'0' * 64}.zst",
        f"sha256/ab/cd/abce{'0' * 60}.zst",
    ],
)
def test_a_key_that_is_none_never_reaches_the_folder(store, key):
    with pytest.raises(UnknownName, match="is not a raw-body key"):
        store.get(key)


def test_a_folder_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "raw").write_text("a file where the folder should be")

    with pytest.raises(PersonMustAct, match="cannot be kept in"):
        RawStore(tmp_path / "raw").put(BODY)


def put_and_get_all(folder):
    """Put the same bodies as everyone else and read each back at once."""
    store = RawStore(folder)
    bodies = [f"body {number}".encode() * 2000 for number in range(20)]
    return [store.get(store.put(body)) == body for body in bodies]


def test_threads_may_put_the_same_bodies_at_once(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(put_and_get_all, [tmp_path] * 8))

    assert all(map(all, answers))
    assert len(files(tmp_path)) == 20


def test_processes_may_put_the_same_bodies_at_once(tmp_path):
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        answers = list(pool.map(put_and_get_all, [tmp_path] * 4))

    assert all(map(all, answers))
    assert len(files(tmp_path)) == 20


def test_a_write_that_fails_leaves_nothing_behind(store, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(PersonMustAct, match="No space left on device"):
        store.put(BODY)

    assert files(tmp_path) == []
