"""What a pack says, the Registry says: through the ledger, through YAML, on both engines."""

from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from patra_ingest.errors import CompileError
from patra_ingest.model.keys import canonical_json, spec_fingerprint
from patra_ingest.packs import builtin_packs
from patra_ingest.registry.apply import apply_pack
from patra_ingest.registry.code_book import builtin_code_book
from patra_ingest.registry.pack import parse_pack, read_pack
from patra_ingest.registry.pack_file import read_pack_text
from patra_ingest.registry.read import list_endpoints, read_named
from patra_ingest.registry.unpack import pack_text, read_source
from patra_ingest.spec.compile import compile_spec
from patra_ingest.spec.declaration import GROUPS, Declaration, Layer, Overrides
from patra_ingest.spec.merge import merge
from patra_ingest.spec.platform import PLATFORM
from patra_ingest.spec.snapshot import SpecSnapshot
from patra_ingest_tests.builders import NOON, START, a_declaration, a_pack, an_endpoint
from patra_ingest_tests.properties.packs import whole_packs

# Every example undoes what it wrote, so all may share one ledger.
SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
few = settings(max_examples=6, suppress_health_check=SHARED)
many = settings(max_examples=15, suppress_health_check=SHARED)
PACKS = [read_pack(path) for path in builtin_packs()]


@contextmanager
def trial(db):
    """Open a transaction that leaves nothing behind."""
    with db.write() as tx:
        try:
            yield tx
        finally:
            tx.rollback()


def require_fixed_point(db, pack):
    with trial(db) as tx:
        apply_pack(tx, pack, START)
        shown = read_source(tx, pack.provenance.code, NOON)
        assert shown == pack
        assert apply_pack(tx, shown, NOON) == []
        assert read_source(tx, pack.provenance.code, NOON) == pack


@many
@given(whole_packs())
def test_a_source_is_read_as_it_was_applied(sqlite_db, pack):
    require_fixed_point(sqlite_db, pack)


@few
@given(whole_packs())
def test_a_source_is_read_as_it_was_applied_on_every_engine(db, pack):
    require_fixed_point(db, pack)


@many
@given(whole_packs())
def test_what_show_prints_is_the_same_pack(pack):
    assert parse_pack(read_pack_text(pack_text(pack), "shown")) == pack


@pytest.mark.parametrize("pack", PACKS, ids=lambda pack: pack.provenance.code)
def test_a_built_in_pack_is_read_as_it_was_applied(db, pack):
    require_fixed_point(db, pack)
    assert parse_pack(read_pack_text(pack_text(pack), "shown")) == pack


def test_a_text_that_looks_like_a_number_is_shown_in_quotes():
    pack = a_pack(works=an_endpoint(request={"path": "1e3"}))

    assert parse_pack(read_pack_text(pack_text(pack), "shown")) == pack


def test_a_limit_that_is_a_number_can_be_applied_twice(sqlite_db):
    able = {"ops": ["RANGE"], "range": "NUMBER", "min": "0", "max": "10.5"}
    book = {"fields": {"year": {"type": "NUMBER"}}, "capabilities": {"year": able}}
    form = {**a_pack().model_dump(mode="json", exclude_none=True), "expressions": book}

    require_fixed_point(sqlite_db, type(a_pack()).model_validate(form))


NUMBERS = st.integers(1, 50)
overrides = st.fixed_dictionaries(
    {},
    optional={
        "http": st.fixed_dictionaries({"max_body_mb": NUMBERS, "http2": st.booleans()}),
        "retry": st.fixed_dictionaries(
            {"max_attempts": st.integers(1, 20), "jitter": st.sampled_from([0.1, 1 / 3, 0.0])}
        ),
        "rate": st.fixed_dictionaries({"burst": NUMBERS, "cost": st.sampled_from([0.1, 0.3, 1])}),
        "paging": st.fixed_dictionaries({"max_pages": NUMBERS}),
        "request": st.fixed_dictionaries({"headers": st.just({"b": "2", "a": "é"})}),
    },
)


def compiled(db, pack, values):
    """Return everything of a pack, compiled, by its name."""
    with trial(db) as tx:
        apply_pack(tx, pack, START)
        declared = {
            name: read_named(tx, name, NOON, builtin_code_book())
            for name in list_endpoints(tx, NOON)
        }
    try:
        return {name: compile_spec(found, Overrides(values)) for name, found in declared.items()}
    except CompileError:
        if not values:
            raise
        reject()  # some packs have limits that a trigger cannot pass


@many
@given(st.sampled_from([*PACKS, a_pack()]), overrides)
def test_compiling_twice_gives_the_same_bytes(sqlite_db, pack, values):
    one, other = (compiled(sqlite_db, pack, values) for _ in range(2))

    assert one.keys() == other.keys()
    for name, found in one.items():
        again = other[name]
        assert found.spec.model_dump_json() == again.spec.model_dump_json()
        assert canonical_json(found.proto) == canonical_json(again.proto)
        assert (found.fingerprint, found.proto_hash) == (again.fingerprint, again.proto_hash)


@many
@given(st.sampled_from([*PACKS, a_pack()]), overrides)
def test_a_snapshot_survives_its_json(sqlite_db, pack, values):
    for found in compiled(sqlite_db, pack, values).values():
        read = SpecSnapshot.model_validate_json(found.spec.model_dump_json())

        assert read == found.spec
        assert spec_fingerprint(read.model_dump(mode="json")) == found.fingerprint


@few
@given(st.sampled_from([*PACKS, a_pack()]), overrides)
def test_every_engine_compiles_to_the_same_fingerprints(db, sqlite_db, pack, values):
    here, there = (compiled(ledger, pack, values) for ledger in (db, sqlite_db))

    assert {name: one.fingerprint for name, one in here.items()} == {
        name: one.fingerprint for name, one in there.items()
    }


LAYERS = ("platform", "provenance x", "endpoint works", "reg_prov_http_cfg #1", "trigger")
SAID = st.dictionaries(
    st.sampled_from(["max_body_mb", "proxy", "read_timeout", "idempotency_header"]), NUMBERS
)


@given(st.lists(SAID, min_size=4, max_size=4))
def test_the_highest_layer_that_says_a_key_is_its_origin(said):
    layers = [Layer(name, {"http": keys}) for name, keys in zip(LAYERS[1:], said, strict=True)]
    declared = Declaration("x", "works", a_declaration().operation, tuple(layers[:-1]))

    merged = merge(declared, Overrides(layers[-1].values), ())

    everything = [PLATFORM["http"], *said]
    for key, value in merged.values["http"].items():
        speakers = [name for name, keys in zip(LAYERS, everything, strict=True) if key in keys]
        assert merged.origins[f"http.{key}"] == speakers[-1]
        assert value == everything[LAYERS.index(speakers[-1])][key]
    assert {key for keys in everything for key in keys} == merged.values["http"].keys()
    known = {f"{group}.{key}" for group in GROUPS for key in merged.values[group]}
    assert known == merged.origins.keys()
