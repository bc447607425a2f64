"""Signing functions that other packages bring along, as real entry points."""

import hashlib
import hmac
import traceback

import pytest

from patra_ingest.errors import EndpointHalted
from patra_ingest.transport.messages import Request
from patra_ingest_tests.transport.desk import spec_of

SECRET = "s3cr3t-CANARY"
URL = "https://h.example/works"
SIGNERS = """
import hashlib, hmac
from patra_ingest.transport.hooks import Signature

def sign(request, secret):
    text = f"{request.method} {request.url} {request.now:%Y%m%d}"
    made = hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
    return Signature(headers={"X-Date": f"{request.now:%Y%m%d}"}, params={"s": made})

def anonymous(request, secret):
    return Signature(headers={"X-Secret-Was": str(secret)})

def quoting(request, secret):
    raise ValueError(f"cannot use {secret} for {request}")

def wrong(request, secret):
    return {"X": secret}

def numbers(request, secret):
    return Signature(headers={"X": 1})
"""
POINTS = """[patra_ingest.signers]
demo = demo_signers:sign
anonymous = demo_signers:anonymous
quoting = demo_signers:quoting
wrong = demo_signers:wrong
numbers = demo_signers:numbers
lost = demo_signers:nowhere
"""


@pytest.fixture
def hooked(desk, tmp_path, monkeypatch):
    site = tmp_path / "site"
    info = site / "demo_signers-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: demo-signers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    (site / "demo_signers.py").write_text(SIGNERS)
    monkeypatch.syspath_prepend(site)
    desk.secrets["env:KEY"] = SECRET
    return desk


def signed(desk, hook, **more):
    auth = spec_of(mine={"type": "CUSTOM", "hook": hook, **more})
    return desk.auth.sign(Request("GET", URL, (("q", "a b"),)), auth, "lib").request


def test_a_signer_adds_to_the_request_what_only_the_upstream_sees(hooked):
    request = signed(hooked, "demo", secret="env:KEY")

    text = f"GET {URL}?q=a%20b {hooked.clock.now():%Y%m%d}"
    made = hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).hexdigest()
    assert request.full_url == f"{URL}?q=a%20b&s={made}"
    assert request.shown_url == f"{URL}?q=a%20b&s=***"
    assert request.headers == {"X-Date": f"{hooked.clock.now():%Y%m%d}"}
    assert SECRET in request.hidden


def test_a_signer_may_need_no_secret(hooked):
    assert signed(hooked, "anonymous").headers == {"X-Secret-Was": "None"}


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ("nobody", r"no signing hook nobody \(installed: anonymous, demo, lost, .*\): install"),
        ("quoting", "the signing hook quoting failed with ValueError"),
        ("wrong", "the signing hook wrong returned no Signature of texts but dict"),
        ("numbers", "the signing hook numbers returned no Signature of texts"),
        ("lost", "lost cannot be loaded from demo_signers:nowhere: AttributeError"),
    ],
)
def test_a_signer_that_fails_halts_the_endpoint_and_leaks_nothing(hooked, hook, said):
    with pytest.raises(EndpointHalted, match=said) as caught:
        signed(hooked, hook, secret="env:KEY")

    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_without_any_package_the_halt_says_so(desk):
    with pytest.raises(EndpointHalted, match=r"installed: none"):
        signed(desk, "demo")
