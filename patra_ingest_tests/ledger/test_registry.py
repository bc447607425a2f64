"""The Registry: packs in with history, declarations out for one instant."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from patra_ingest.errors import UnknownName
from patra_ingest.ledger.db import instant_text, open_db, read_instant
from patra_ingest.model.codes import Operation
from patra_ingest.packs import builtin_packs
from patra_ingest.registry.apply import Change, apply_pack
from patra_ingest.registry.check import find_overlaps
from patra_ingest.registry.pack import parse_pack, read_pack
from patra_ingest.registry.pack_file import PackText
from patra_ingest.registry.read import EndpointName, list_endpoints, read_declaration
from patra_ingest.registry.rows import TABLES
from patra_ingest.spec.compile import compile_spec
from patra_ingest.spec.declaration import Overrides
from patra_ingest_tests.builders import NOON, START, a_pack, an_endpoint, by_token, day, pack_text

ENDPOINT = EndpointName("example", "works", Operation.HARVEST)


def apply(db, pack, now=START):
    with db.write() as tx:
        return apply_pack(tx, pack, now)


def declared(db, endpoint="works", at=NOON, provenance="example"):
    with db.read() as tx:
        return read_declaration(tx, provenance, endpoint, Operation.HARVEST, at)


def spec(db, **asked):
    return compile_spec(declared(db, **asked), Overrides()).spec


def counted(db):
    with db.read() as tx:
        counts = {t: tx.execute(text(f"SELECT COUNT(*) FROM {t}")).scalar() for t in TABLES}
    return {table.removeprefix("reg_prov_"): count for table, count in counts.items() if count}


def test_a_new_source_opens_a_row_for_each_dimension(db):
    changes = apply(db, a_pack(works=an_endpoint(), tokens=by_token()))

    assert {change.action for change in changes} == {"opened"}
    assert Change("opened", "provenance example") in changes
    assert counted(db) == {
        "endpoint_def": 2,
        "pagination_cfg": 2,
        "window_offset_cfg": 2,
        "http_cfg": 1,
        "retry_cfg": 1,
        "rate_limit_cfg": 1,
    }


AWKWARD = {
    "rate": {"key": "x", "per_second": 0.1, "burst": 3, "in_flight": 2, "cost": 0.3},
    "retry": {"max_attempts": 7, "multiplier": 1.7, "jitter": 0.2, "statuses": [500, 503]},
    "http": {
        "allow_insecure_http": True,
        "headers": {"b": "2", "a": "1"},
        "read_timeout": "1500ms",
    },
}


def awkward_pack():
    return parse_pack(PackText("x", {**pack_text(), **AWKWARD}, {}))


@pytest.mark.parametrize(
    "pack",
    [
        pytest.param(a_pack(), id="plain"),
        pytest.param(
            a_pack(works=an_endpoint(window={"initial_from": "2024-02-29T23:59:59.5Z"})),
            id="with a start",
        ),
        pytest.param(a_pack(works=by_token()), id="by token"),
        pytest.param(awkward_pack(), id="with fractions"),
        *(pytest.param(read_pack(path), id=path.stem) for path in builtin_packs()),
    ],
)
def test_applying_the_same_pack_twice_changes_nothing(db, pack):
    apply(db, pack)
    before = counted(db)

    assert apply(db, pack, day(1)) == []
    assert counted(db) == before


def test_a_change_closes_the_old_row_at_the_instant_the_new_one_opens(db):
    apply(db, a_pack())

    changes = apply(db, a_pack(works=an_endpoint(paging={"page_size": 77})), day(1))

    assert changes == [Change("replaced", "pagination works")]
    with db.read() as tx:
        found = tx.execute(text("SELECT * FROM reg_prov_pagination_cfg ORDER BY id")).mappings()
        old, new = found.all()
    assert read_instant(old["effective_to"]) == read_instant(new["effective_from"]) == day(1)
    assert new["effective_to"] is None
    assert (old["page_size_value"], new["page_size_value"]) == (10, 77)


def test_the_past_stays_as_it_was(db):
    apply(db, a_pack())
    apply(db, a_pack(works=an_endpoint(paging={"page_size": 77})), day(1))
    apply(db, a_pack(works=an_endpoint(paging={"page_size": 88})), day(2))

    sizes = [spec(db, at=day(n)).paging.page_size for n in (0, 1, 2)]
    just_before = spec(db, at=day(1) - (day(1) - day(0)) / 86_400_000_000).paging.page_size

    assert sizes == [10, 77, 88]
    assert just_before == 10
    with pytest.raises(UnknownName):
        declared(db, at=START - (day(1) - day(0)))


def test_what_a_pack_no_longer_names_is_closed(db):
    apply(db, a_pack(works=an_endpoint(), tokens=by_token()))

    changes = apply(db, a_pack(works=an_endpoint()), day(1))

    assert {change.action for change in changes} == {"closed"}
    assert Change("closed", "endpoint tokens") in changes
    with db.read() as tx:
        now = list_endpoints(tx, day(2), Operation.HARVEST)
        before = list_endpoints(tx, START, Operation.HARVEST)
    assert now == [ENDPOINT]
    assert before == [replace(ENDPOINT, endpoint="tokens"), ENDPOINT]
    with pytest.raises(UnknownName, match=r"has no endpoint 'tokens' for HARVEST. Its endp.*works"):
        declared(db, "tokens")


def test_a_closed_endpoint_can_come_back(db):
    apply(db, a_pack(works=an_endpoint(), tokens=by_token()))
    apply(db, a_pack(works=an_endpoint()), day(1))
    apply(db, a_pack(works=an_endpoint(), tokens=by_token()), day(2))

    assert declared(db, "tokens").endpoint == "tokens"


def test_a_changed_address_is_changed_and_the_old_one_is_kept(db):
    apply(db, a_pack())

    assert apply(db, a_pack("http://127.0.0.1:10"), day(1)) == [
        Change("changed", "provenance example")
    ]
    assert spec(db).request.base_url == "http://127.0.0.1:10"
    assert spec(db, at=day(1)).request.base_url == "http://127.0.0.1:10"
    assert spec(db, at=START).request.base_url == "http://127.0.0.1:9"


def test_a_declaration_says_what_the_pack_said(db):
    apply(db, awkward_pack())

    found = spec(db)

    assert (found.rate.per_second, found.rate.cost, found.rate.in_flight) == (0.1, 0.3, 2)
    assert (found.retry.max_attempts, found.retry.statuses) == (7, (500, 503))
    assert (found.retry.multiplier, found.retry.jitter) == (1.7, 0.2)
    assert found.http.headers == {"a": "1", "b": "2"}
    assert found.http.read_timeout.total_seconds() == 1.5
    assert found.window.max_span.total_seconds() == 86_400


def test_both_engines_compile_the_same_spec(db, sqlite_template, tmp_path):
    file = tmp_path / "other.db"
    file.write_bytes(sqlite_template.read_bytes())
    other = open_db(f"sqlite:///{file}")
    for ledger in (db, other):
        apply(ledger, awkward_pack())

    here, there = (compile_spec(declared(ledger), Overrides()) for ledger in (db, other))
    other.close()

    assert here.spec == there.spec
    assert here.fingerprint == there.fingerprint


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([], 1, id="the general row"),
        pytest.param([("SOURCE", None, "works", 2)], 2, id="bound to the endpoint first"),
        pytest.param([("TASK", "HARVEST", None, 3)], 3, id="TASK before SOURCE"),
        pytest.param(
            [("SOURCE", None, "works", 2), ("TASK", "HARVEST", None, 3)],
            2,
            id="the endpoint counts more than the operation",
        ),
        pytest.param(
            [("TASK", "HARVEST", "works", 4), ("SOURCE", None, "works", 2)], 4, id="both, best"
        ),
        pytest.param([("TASK", "UPDATE", "works", 9)], 1, id="another operation"),
        pytest.param([("SOURCE", None, "authors", 9)], 1, id="another endpoint"),
    ],
)
def test_per_dimension_the_closest_row_counts(db, rows, expected):
    apply(db, parse_pack(PackText("x", {**pack_text(), "retry": {"max_attempts": 2}}, {})))
    with db.write() as tx:
        tx.execute(text("UPDATE reg_prov_retry_cfg SET max_retry_times = 1"))
        for scope, task_type, endpoint, retries in rows:
            add_retry_row(tx, scope, task_type, endpoint, retries)

    assert spec(db).retry.max_attempts == expected + 1


def add_retry_row(tx, scope, task_type, endpoint, retries, at=START):
    tx.execute(
        text(
            "INSERT INTO reg_prov_retry_cfg (provenance_id, scope_code, task_type, endpoint_name,"
            " effective_from, max_retry_times, backoff_policy_type_code)"
            " SELECT id, :scope, :task, :endpoint, :at, :n, 'EXP_JITTER' FROM reg_provenance"
        ),
        {
            "scope": scope,
            "task": task_type,
            "endpoint": endpoint,
            "at": instant_text(at),
            "n": retries,
        },
    )


def test_a_row_that_hides_another_is_found(db):
    apply(db, a_pack())
    with db.read() as tx:
        assert find_overlaps(tx, "example", NOON) == []
    with db.write() as tx:
        add_retry_row(tx, "SOURCE", None, None, 8, day(1))

    with db.read() as tx:
        (said,) = find_overlaps(tx, "example", NOON)
        assert find_overlaps(tx, "example", START) == []

    assert said.startswith("reg_prov_retry_cfg #")
    assert said.endswith("close one of them")
    assert spec(db).retry.max_attempts == 9


@pytest.mark.parametrize("how", ["deleted = 1", "lifecycle_status_code = 'DRAFT'"])
def test_a_row_that_is_deleted_or_not_active_does_not_count(db, how):
    apply(db, a_pack())
    with db.write() as tx:
        add_retry_row(tx, "SOURCE", None, "works", 8)
        tx.execute(text(f"UPDATE reg_prov_retry_cfg SET {how} WHERE endpoint_name = 'works'"))

    assert spec(db).retry.max_attempts == 2


def test_names_nobody_knows_are_said_with_those_we_know(db):
    with pytest.raises(UnknownName, match=r"no source 'x' in the Registry.*: none yet"):
        declared(db, provenance="x")
    apply(db, a_pack())
    with pytest.raises(UnknownName, match=r"Known sources: example\. Add one with"):
        declared(db, provenance="x")
    assert declared(db, provenance="EXAMPLE").provenance == "example"


def test_without_a_name_the_first_endpoint_is_meant(db):
    apply(db, a_pack(zoo=an_endpoint(), ants=by_token()))

    assert declared(db, None).endpoint == "ants"


def test_every_value_knows_the_row_it_came_from(db):
    apply(db, a_pack())

    origins = compile_spec(declared(db), Overrides()).origins

    assert origins["request.base_url"] == "provenance example"
    assert origins["request.path"] == "endpoint works"
    assert origins["paging.page_size"].startswith("reg_prov_pagination_cfg #")
    assert origins["retry.multiplier"] == "platform"


def test_the_same_words_in_another_row_are_the_same_configuration(db):
    packs = [a_pack(works=an_endpoint(paging={"page_size": size})) for size in (10, 77, 10)]
    for number, pack in enumerate(packs):
        apply(db, pack, day(number))

    first, other, again = (compile_spec(declared(db, at=day(n)), Overrides()) for n in range(3))

    assert first.config_hash == again.config_hash != other.config_hash
    assert first.fingerprint == again.fingerprint
    assert first.config["rows"] != again.config["rows"]


def test_two_changes_within_one_instant_leave_the_last(db):
    apply(db, a_pack())
    for size in (77, 88):
        apply(db, a_pack(works=an_endpoint(paging={"page_size": size})), day(1))

    assert spec(db).paging.page_size == 88
