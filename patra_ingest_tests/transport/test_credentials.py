"""Secrets are found where they are, and a new refresh token survives a restart."""

import json
import stat
import threading
from urllib.parse import parse_qs

import pytest

from patra_ingest.errors import EndpointHalted
from patra_ingest.settings import Settings
from patra_ingest.spec.policies import ApiKey
from patra_ingest.transport.credentials import Credentials
from patra_ingest.transport.messages import Request
from patra_ingest_tests.transport.desk import spec_of

OK: dict[str, str] = {}


@pytest.fixture
def shop(desk, upstream):
    desk.secrets.update({"env:ID": "id", "env:SECRET": "secret", "env:REFRESH": "refresh-0"})
    desk.url = f"{upstream.url}/scripted"
    upstream.answers = [
        (200, {"access_token": f"t{n}", "expires_in": 60, "refresh_token": f"refresh-{n}"}, OK)
        for n in range(1, 9)
    ]
    return desk


def sign(desk, refresh="env:REFRESH"):
    oauth = {
        "type": "OAUTH2",
        "token_url": desk.url,
        "grant": "REFRESH_TOKEN",
        "client_id": "env:ID",
        "client_secret": "env:SECRET",
        "refresh_token": refresh,
    }
    return desk.auth.sign(Request("GET", "https://h.example/"), spec_of(mine=oauth), "lib")


def used(upstream):
    return [parse_qs(told["body"])["refresh_token"][0] for told in upstream.told]


def mode(file):
    return stat.S_IMODE(file.stat().st_mode)


def test_a_rotated_token_of_the_environment_survives_a_restart(shop, upstream):
    sign(shop)
    sign(shop.restarted())
    sign(shop.restarted())

    assert used(upstream) == ["refresh-0", "refresh-1", "refresh-2"]
    kept = shop.folder / "lib-mine"
    assert (mode(kept), mode(shop.folder)) == (0o600, 0o700)
    assert "refresh-0" not in kept.read_text()
    assert sorted(path.name for path in shop.folder.iterdir()) == ["lib-mine", "lib-mine.lock"]


def test_a_new_token_in_the_environment_wins_over_the_kept_one(shop, upstream):
    sign(shop)
    shop.secrets["env:REFRESH"] = "by-hand"
    sign(shop.restarted())
    sign(shop.restarted())

    assert used(upstream) == ["refresh-0", "by-hand", "refresh-2"]


def test_a_rotated_token_of_a_file_is_written_back(shop, upstream, tmp_path):
    place = tmp_path / "token"
    place.write_text("refresh-0\n")
    place.chmod(0o644)
    settings = Settings(home=tmp_path)
    reference = f"file:{place}"
    read = shop.secrets.get
    shop.credentials._read_secret = lambda ref: read(ref) or settings.secret(ref)

    sign(shop, reference)

    assert (place.read_text(), mode(place)) == ("refresh-1\n", 0o600)
    assert list(tmp_path.glob(".token*")) == []
    assert not (shop.folder / "lib-mine").exists()


def test_a_file_behind_a_link_is_replaced_and_the_link_stays(tmp_path):
    place, link = tmp_path / "real", tmp_path / "link"
    place.write_text("old")
    link.symlink_to(place)
    credentials = Credentials(Settings().secret, tmp_path / "home")

    credentials.keep_refresh_token("lib", "mine", f"file:{link}", "new")

    assert link.is_symlink()
    assert credentials.refresh_token("lib", "mine", f"file:{link}") == "new"


def test_a_file_nobody_may_write_is_kept_in_our_own_folder(tmp_path):
    # A place inside what is no folder: nobody may write there, not even root.
    (tmp_path / "mount").write_text("a file")
    reference = f"file:{tmp_path}/mount/token"
    credentials = Credentials({reference: "old"}.get, tmp_path / "home")

    with credentials.alone("lib", "mine"):
        credentials.keep_refresh_token("lib", "mine", reference, "new")

    assert credentials.refresh_token("lib", "mine", reference) == "new"


def test_a_token_that_did_not_change_is_not_written(shop, upstream):
    upstream.answers = [(200, {"access_token": "t", "refresh_token": "refresh-0"}, OK)]

    sign(shop)

    assert not (shop.folder / "lib-mine").exists()


def test_nobody_asks_with_a_token_that_could_not_be_replaced(shop, upstream, tmp_path):
    (tmp_path / "home").write_text("no folder")

    with pytest.raises(EndpointHalted, match=r"refresh tokens cannot be kept in .*: make it"):
        sign(shop)

    assert upstream.seen == []


def test_a_kept_token_that_is_damaged_is_no_reason_to_use_the_old_one(shop, upstream):
    sign(shop)
    (shop.folder / "lib-mine").write_text('{"replaces"')

    with pytest.raises(EndpointHalted, match="cannot be read"):
        sign(shop.restarted())


def test_names_never_lead_out_of_the_folder(tmp_path):
    credentials = Credentials({"env:A": "old"}.get, tmp_path / "home")
    with credentials.alone("../lib", "a/../../b"):
        credentials.keep_refresh_token("../lib", "a/../../b", "env:A", "new")

    assert {path.parent for path in tmp_path.rglob("*") if path.is_file()} == {tmp_path / "home"}


def test_processes_take_turns_with_a_refresh_token(shop, upstream):
    desks = [shop, *(shop.restarted() for _ in range(4))]
    threads = [threading.Thread(target=sign, args=(desk,)) for desk in desks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert used(upstream) == [f"refresh-{n}" for n in range(5)]
    assert json.loads((shop.folder / "lib-mine").read_text())["token"] == "refresh-5"


@pytest.mark.parametrize(
    ("content", "expected"),
    [("key\n", "key"), ("  k e y ", "k e y"), ("", None), ("\n", None), (None, None)],
)
def test_settings_read_a_secret_from_a_file_or_the_environment(
    tmp_path, monkeypatch, content, expected
):
    place = tmp_path / "key"
    if content is not None:
        place.write_text(content)
        monkeypatch.setenv("A_KEY", content)
    settings = Settings(home=tmp_path)

    assert settings.secret(f"file:{place}") == expected
    assert settings.secret("env:A_KEY") == expected
    assert settings.secret(f"file:{tmp_path}") is None
    assert settings.credentials_folder == tmp_path / "credentials"


def test_a_fingerprint_tells_nothing_and_changes_with_the_secret():
    secrets = {"env:A": "one"}
    credentials = Credentials(secrets.get, None)
    key = ApiKey(type="API_KEY", field="k", secret="env:A")
    first = credentials.fingerprint(key)
    secrets["env:A"] = "two"

    assert "one" not in first
    assert credentials.fingerprint(key) != first
