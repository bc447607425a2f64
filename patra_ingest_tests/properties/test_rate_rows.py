"""What the ledger keeps of a rate key is what was put there."""

import shutil
from datetime import datetime
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from patra_ingest.ledger import rates
from patra_ingest.ledger.db import open_db
from patra_ingest.model.rates import Holder, SharedBucket
from patra_ingest_tests.builders import NOON

instants = st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1)).map(  # noqa: DTZ001
    lambda at: at.replace(tzinfo=NOON.tzinfo)
)
amounts = st.decimals(-100_000, 100_000, places=9)
rates_ = st.decimals("0.000000001", 10_000, places=9)
holders_ = st.builds(Holder, st.integers(0, 99), amounts, instants, st.none() | instants)
plain = st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers(0, 99), max_size=3)
rows = st.builds(
    SharedBucket,
    rate_key=st.just("k"),
    tokens=amounts,
    refilled_at=instants,
    rate_per_second=rates_,
    burst=st.decimals("0.000001", 10_000, places=6),
    in_flight_limit=st.none() | st.integers(1, 99),
    configured_rate=rates_,
    cool_down_until=st.none() | instants,
    holders=st.dictionaries(st.text(max_size=9), holders_, max_size=4),
    cut_at=st.none() | instants,
    raised_at=st.none() | instants,
    warm_from=st.none() | instants,
    told=st.none() | plain,
    last_signal=st.none() | plain,
)


@pytest.fixture(scope="module")
def ledger(sqlite_template, tmp_path_factory):
    copy = tmp_path_factory.mktemp("rates") / "ledger.db"
    shutil.copyfile(sqlite_template, copy)
    opened = open_db(f"sqlite:///{copy}")
    yield opened
    opened.close()


def a_slow_row(rate):
    return SharedBucket("k", Decimal(1), NOON, Decimal(rate), Decimal(1), None, Decimal(rate))


@given(row=rows)
@example(row=a_slow_row("0.000002455"))  # SQLite reads both as floats a step beside them
@example(row=a_slow_row("0.003599056"))
def test_every_row_comes_back_from_the_ledger_as_it_went(ledger, row):
    with ledger.write() as tx:
        rates.create_bucket(tx, row)
        rates.save_bucket(tx, row, NOON)
        assert rates.find_bucket(tx, "k") == row
