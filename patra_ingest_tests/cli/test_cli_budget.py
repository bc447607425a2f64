"""`patra budget`: what a person sees of speed, silence and quotas, and what a script gets."""

import json
from contextlib import closing
from datetime import timedelta
from decimal import Decimal

import pytest

from patra_ingest.cli.budget import bar
from patra_ingest.clock import SystemClock
from patra_ingest.ledger.db import insert, open_db
from patra_ingest.ledger.quotas import reserve, try_spend
from patra_ingest.ledger.rates import create_bucket
from patra_ingest.model.quotas import QuotaRule, Reservation, charges_at, window_at
from patra_ingest.model.rates import Holder, SharedBucket
from patra_ingest.rate.told import Told
from patra_ingest.views.budget import QuotaState
from patra_ingest.views.spans import ago, still
from patra_ingest_tests.builders import DAY, NOON, a_spec, days

DAILY = QuotaRule("openalex", Decimal(100), DAY)
MINUTES = timedelta(minutes=1)


@pytest.fixture
def now():
    return SystemClock().now()


@pytest.fixture
def ledger(home):
    with closing(open_db(f"sqlite:///{home / 'ledger.db'}")) as db, db.write() as tx:
        yield tx


def a_bucket(now, key="crossref", rate="3", **more):
    values = {"tokens": Decimal(1), "refilled_at": now, "burst": Decimal(3), "in_flight_limit": 3}
    return SharedBucket(
        rate_key=key,
        rate_per_second=Decimal(rate),
        configured_rate=Decimal(3),
        **{**values, **more},
    )


def add_plan(tx, operation="BACKFILL"):
    """Add a plan whose spec spends from the daily quota."""
    row = {
        "schedule_instance_id": 1,
        "plan_key": operation,
        "provenance_code": "openalex",
        "endpoint_name": "works",
        "operation_code": operation,
        "namespace_scope_code": "GLOBAL",
        "namespace_key": "0" * 64,
        "cursor_key": "updated_at",
        "direction_code": "FORWARD",
        "expr_proto_hash": "1" * 64,
        "spec_fingerprint": "1" * 64,
        "spec_snapshot": a_spec(rate={"key": "openalex"}).model_dump_json(),
        "slice_strategy_code": "TIME",
    }
    insert(tx, "ing_plan", row)


def seen(patra, *arguments):
    """Return the rows of the shown table, without the columns' spaces."""
    done = patra("budget", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return [" ".join(line.split()) for line in done.stdout.splitlines() if line.strip()]


def test_nothing_used_yet_is_one_sentence(patra, home):
    done = patra("budget")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "No request was sent or planned yet, so no budget is in use.\n"
    assert json.loads(patra("budget", "--json").stdout) == []


def test_an_unknown_key_is_one_sentence_and_exit_code_1(patra, home, now):
    assert patra("budget", "nobody").returncode == 1
    with closing(open_db(f"sqlite:///{home / 'ledger.db'}")) as db, db.write() as tx:
        create_bucket(tx, a_bucket(now))
    done = patra("budget", "nobody", "--json")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "patra: No request of the rate key nobody was ever sent or planned. Used were crossref.\n"
    )


def test_a_key_at_full_speed_is_two_lines(patra, ledger, now):
    create_bucket(ledger, a_bucket(now, in_flight_limit=None))
    ledger.commit()

    assert seen(patra) == ["key crossref", "speed 3 per second, burst 3"]


def test_a_person_sees_why_we_are_slow_silent_and_full(patra, ledger, now):
    until = now + 2 * MINUTES
    signal = {"signal": "RETRY_AFTER", "at": now, "holder": "one", "until": until}
    holders = {
        "one": Holder(2, Decimal(0), until),
        "two": Holder(0, Decimal(0), until, since=now),
        "dead": Holder(1, Decimal(0), now - MINUTES),
    }
    told = Told(
        in_flight=2,
        limit=Decimal(100),
        remaining=Decimal("7.5"),
        resets_at=now + 3 * 60 * MINUTES + MINUTES,
        unreadable=("X-Reset: in the past",),
        at=now - MINUTES,
    )
    bucket = a_bucket(
        now,
        rate="1.5",
        cut_at=now - 5 * MINUTES,
        cool_down_until=until,
        last_signal=signal,
        holders=holders,
        told=told.as_json(),
    )
    create_bucket(ledger, bucket)
    ledger.commit()

    key, speed, places, silence, said = seen(patra, "crossref")

    assert key == "key crossref"
    assert speed.startswith("speed 1.5 of 3 per second (cut 5 min ")
    assert speed.endswith("ago), burst 3")
    assert places == "requests 2 of 2 in flight (one 2); 1 in line"
    assert silence.startswith(f"pause silent until {until:%Y-%m-%d %H:%M:%S}Z, ")
    assert silence.endswith(" more: the source asked for it (Retry-After)")
    assert said.startswith("it said 2 in flight, 7.5 of 100 left, full again in 3 h")
    assert ", unreadable X-Reset: in the past (1 min" in said


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"cut_at": NOON, "last_signal": {"signal": "HTTP_429", "rate": "1"}}, "too fast (429))"),
        ({"cut_at": NOON, "last_signal": {"signal": "HTTP_503", "rate": "1"}}, "ago: http 503)"),
        ({"told": {"ratePerSecond": "1.5"}}, "(the source allows no more)"),
        ({}, "(it rises with use)"),
    ],
)
def test_a_slow_key_says_why(patra, ledger, now, more, why):
    create_bucket(ledger, a_bucket(now, rate="1.5", **more))
    ledger.commit()

    assert why in seen(patra)[1]


def test_quotas_are_bars_with_marks_and_what_lies_ahead_is_one_line(patra, ledger, now):
    today, tomorrow = (window_at(DAILY, now + n * DAY) for n in range(2))
    limits = {("openalex", window): DAILY.limit for window in (today, tomorrow)}
    items = [Reservation("openalex", today, Decimal(20)), Reservation("openalex", tomorrow, 30)]
    reserve(ledger, 1, items, limits, now)
    try_spend(ledger, None, charges_at([DAILY], now, Decimal(40)), now)
    for operation in ("BACKFILL", "UPDATE", "HARVEST"):
        add_plan(ledger, operation)
    ledger.commit()

    key, speed, quota, stops, ahead = seen(patra)

    assert (key, speed) == ("key openalex", "speed no request was sent yet")
    assert quota.startswith(
        "quota ████████████▒▒▒▒│▒░░░░│░░░░░░░ 40 spent, 20 reserved, 40 free of 100; full again in "
    )
    assert quota.endswith(f"({today.end:%Y-%m-%d %H:%M}Z)")
    assert stops == "BACKFILL up to 54, UPDATE up to 72"
    assert ahead == f"ahead 30 reserved in 1 window until {tomorrow.end:%Y-%m-%d %H:%M}Z"
    assert f"from {tomorrow.start:%Y-%m-%d %H:%M}Z" in seen(patra, "openalex")[4]


def test_scripts_get_numbers(patra, ledger, now):
    bucket = a_bucket(now, "openalex", "1.5", cool_down_until=now - MINUTES)
    create_bucket(ledger, bucket)
    try_spend(ledger, None, charges_at([DAILY], now, Decimal("0.25")), now)
    add_plan(ledger)
    ledger.commit()

    [found] = json.loads(patra("budget", "--json").stdout)

    assert found["rate_key"] == "openalex"
    rate = found["rate"]
    assert (rate["per_second"], rate["configured_per_second"], rate["burst"]) == (1.5, 3, 3)
    assert (rate["in_flight"], rate["in_flight_limit"], rate["holders"]) == (0, 3, {})
    assert (rate["silent_until"], rate["told"]) == (None, None)
    [quota] = found["quotas"]
    assert {name: quota[name] for name in ("limit", "spent", "reserved", "free")} == {
        "limit": 100,
        "spent": 0.25,
        "reserved": 0,
        "free": 99.75,
    }
    assert quota["marks"] == {"BACKFILL": 54}


@pytest.mark.parametrize(
    ("limit", "reserved", "spent", "marks", "shown"),
    [
        (10, 0, 0, {}, "░" * 30),
        (10, 0, "0.0001", {}, "█" + "░" * 29),
        (10, 0, "9.9999", {}, "█" * 29 + "░"),
        (10, 0, 10, {"BACKFILL": 10}, "█" * 30),
        (10, 3, 12, {}, "█" * 30),
        (10, 20, 5, {}, "█" * 15 + "▒" * 15),
        (0, 0, 0, {}, "█" * 30),
    ],
)
def test_a_bar_never_hides_what_is_there_and_looks_full_only_when_it_is(
    limit, reserved, spent, marks, shown
):
    amounts = (Decimal(str(amount)) for amount in (limit, reserved, spent))
    stops = {name: Decimal(mark) for name, mark in marks.items()}

    assert bar(QuotaState("a", days(0, 1), *amounts, stops)) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (61.5, "1 min 1 s"),
        (3600, "1 h"),
        (86_400 + 7_260, "1 d 2 h"),
        (-5, "0 s"),
    ],
)
def test_spans_have_two_units_at_most(seconds, shown):
    assert ago(NOON - timedelta(seconds=seconds), NOON) == f"{shown} ago"


def test_what_is_still_to_wait_is_rounded_up():
    assert still(NOON + timedelta(seconds=1.2), NOON) == "2 s"
    assert still(NOON + timedelta(seconds=2), NOON) == "2 s"
