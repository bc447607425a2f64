"""Compressed answers: unpacked, whole, and never larger than we are ready to take."""

import gzip
import tracemalloc
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.errors import PageTooBig, RequestRejected, TransientError
from patra_ingest.transport.messages import Options, Request
from patra_ingest.transport.unpacking import DamagedBody, UnknownEncoding, unpacker
from patra_ingest_tests.transport.packed import BODY, PACKED

PACKERS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
    "identity": bytes,
    "": bytes,
}
MEGABYTE = 1024 * 1024


def send(transport, permit, url, **options):
    return transport.send(Request("GET", url, options=Options(**options)), permit())


@pytest.mark.parametrize("name", [name for name in PACKED if name != "br"])
def test_a_packed_body_arrives_plain_and_its_wire_bytes_are_counted(
    upstream, transport, permit, name
):
    answer = send(transport, permit, f"{upstream.url}/packed/{name}")

    assert answer.body == BODY
    assert answer.wire_bytes == len(PACKED[name])


@pytest.mark.parametrize("name", ["gzip", "deflate", "raw", "zstd", "twice"])
def test_a_packed_body_that_ends_too_early_is_a_transient_error(upstream, transport, permit, name):
    with pytest.raises(TransientError, match="ends too early"):
        send(transport, permit, f"{upstream.url}/halved/{name}")


def test_an_encoding_nobody_asked_for_is_rejected_for_good(upstream, transport, permit):
    with pytest.raises(RequestRejected, match=r"Content-Encoding 'br'.*compression: false"):
        send(transport, permit, f"{upstream.url}/packed/br")


def test_an_error_keeps_its_status_whatever_its_body_is_packed_in(upstream, transport, permit):
    assert send(transport, permit, f"{upstream.url}/packed/br/503").status == 503


@pytest.mark.parametrize(
    ("compression", "announced"), [(True, "gzip, deflate, zstd"), (False, "identity")]
)
def test_we_ask_for_what_we_can_unpack(upstream, transport, permit, compression, announced):
    send(transport, permit, upstream.url, compression=compression)

    assert upstream.told[0]["Accept-Encoding"] == announced


def test_a_pack_may_ask_for_an_encoding_itself(upstream, transport, permit):
    transport.send(Request("GET", upstream.url, headers={"accept-encoding": "gzip"}), permit())

    assert upstream.told[0]["accept-encoding"] == "gzip"
    assert "Accept-Encoding" not in upstream.told[0]


@pytest.mark.parametrize(
    ("path", "limit", "read"),
    [
        ("/packed/identity", 4999, r"\d+ on the wire, \d+ unpacked"),
        ("/packed/gzip", 4999, "40 on the wire, 5000 unpacked"),
        ("/packed/gzip", 39, "0 on the wire, 0 unpacked"),
        ("/huge", 64 * MEGABYTE, "0 on the wire, 0 unpacked"),
    ],
)
def test_a_body_too_large_asks_for_smaller_pages(upstream, transport, permit, path, limit, read):
    said = rf"answered more than {limit} bytes \(read so far: {read}\); ask for smaller pages"

    with pytest.raises(PageTooBig, match=said):
        send(transport, permit, upstream.url + path, max_body_bytes=limit)


def test_a_body_of_exactly_the_limit_is_taken(upstream, transport, permit):
    assert send(transport, permit, f"{upstream.url}/packed/gzip", max_body_bytes=5000).body == BODY


@pytest.mark.parametrize(("encoding", "megabytes"), [("gzip", 1500), ("zstd", 10_000)])
def test_a_bomb_stops_at_the_limit_in_bounded_memory(
    upstream, transport, permit, encoding, megabytes
):
    tracemalloc.start()
    try:
        with pytest.raises(PageTooBig, match=r"on the wire"):
            send(
                transport,
                permit,
                f"{upstream.url}/bomb/{encoding}/{megabytes}",
                max_body_bytes=20 * MEGABYTE,
            )
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert most < 100 * MEGABYTE


def test_the_worst_bite_of_zstd_is_no_more_than_a_few_megabytes():
    bomb = zstandard.ZstdCompressor().compress(bytes(1_000_000_000))

    first = next(unpacker("zstd")([bomb]))

    assert len(first) <= 17 * MEGABYTE


@given(st.lists(st.sampled_from(sorted(PACKERS)), max_size=3), st.binary(max_size=2000), st.data())
def test_any_layers_cut_anywhere_give_the_body_back(layers, body, data):
    packed = body
    for name in layers:
        packed = PACKERS[name](packed)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(packed)), max_size=5)))
    pieces = [packed[a:b] for a, b in zip([0, *cuts], [*cuts, len(packed)], strict=True)]

    assert b"".join(unpacker(", ".join(layers))(pieces)) == body


@given(st.sampled_from(["gzip", "deflate", "zstd"]), st.binary(min_size=1), st.data())
def test_a_cut_body_is_never_taken_for_a_whole_one(name, body, data):
    packed = PACKERS[name](body)
    cut = data.draw(st.integers(1, len(packed) - 1))

    with pytest.raises(DamagedBody):
        list(unpacker(name)([packed[:cut]]))


@pytest.mark.parametrize("name", ["UTF-8", "utf8", "none", "binary", "8bit", "iso-8859-1"])
def test_what_is_no_compression_is_nothing_to_undo(name):
    assert b"".join(unpacker(name)([b"plain"])) == b"plain"
    assert b"".join(unpacker(f"gzip, {name}")([gzip.compress(b"packed")])) == b"packed"


@pytest.mark.parametrize("name", ["br", "gzip, br", "compress", "gzip, gzip, gzip, gzip"])
def test_what_cannot_be_undone_is_said_before_a_byte_is_read(name):
    with pytest.raises(UnknownEncoding, match="Content-Encoding"):
        unpacker(name)
