"""A pack whose source stands somewhere else says the same of it in all other things."""

from patra_ingest.registry.forms import pack_form
from patra_ingest.registry.move import moved, to_base
from patra_ingest_tests.builders import a_pack, an_endpoint

REAL = "https://api.library.example/v1"
HERE = "http://127.0.0.1:9"


def the_pack():
    own = {"type": "API_KEY", "secret": "env:KEY", "field": "k", "location": "QUERY"}
    return a_pack(
        REAL,
        works=an_endpoint(auth={"credentials": {"own": own}}, http={"read_timeout": "9s"}),
        far=an_endpoint(request={"base_url": "https://files.library.example/v2/"}),
        whole=an_endpoint(request={"path": "https://files.library.example/all"}),
    )


def test_every_address_is_moved_and_plain_http_allowed_wherever_http_is_spoken_of():
    pack = moved(the_pack(), to_base(REAL, f"{HERE}/there/"))

    assert pack.provenance.base_url == f"{HERE}/there"
    assert pack.endpoints["far"].request.base_url == f"{HERE}/v2/"
    assert pack.endpoints["whole"].request.path == f"{HERE}/all"
    http = pack.endpoints["works"].http
    assert (http.allow_insecure_http, http.read_timeout.total_seconds()) == (True, 9)


def test_credentials_stay_unless_they_must_not_leave():
    kept, dropped = moved(the_pack(), str), moved(the_pack(), str, keep_credentials=False)

    assert pack_form(kept) == pack_form(the_pack())
    assert "own" in kept.endpoints["works"].auth.credentials
    assert dropped.endpoints["works"].auth is None
