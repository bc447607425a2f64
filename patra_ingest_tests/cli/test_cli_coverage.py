"""`patra coverage`: a person sees every hole, why it is there and what to do; so does a script."""

import json
from datetime import UTC, datetime, timedelta

from sqlalchemy import text

from patra_ingest.cli.coverage_look import look_at
from patra_ingest.ledger.db import insert, instant_text, json_text
from patra_ingest.ledger.holds import place_hold
from patra_ingest.planner.coverage import Cover
from patra_ingest.planner.windowing import Asked
from patra_ingest.registry.apply import apply_pack
from patra_ingest.views.coverage import list_coverage
from patra_ingest_tests.builders import NOON, START, a_pack, a_spec, day, days

SPEC = a_spec(window={"safety_lag": "1d", "granularity": "DAY"}).model_dump_json()
# NOON is the twentieth: what is a day old and a whole day has settled.
SETTLED = day(18)


def add_plan(tx, first, past, question="q", **columns):
    """Write a plan; `trigger` is what was asked for."""
    trigger = columns.pop("trigger", {})
    names = {"provenance_code": "example", "endpoint_name": "works", "operation_code": "HARVEST"}
    root = insert(
        tx,
        "ing_schedule_instance",
        {**names, "trigger_params": json_text(trigger), "triggered_at": instant_text(NOON)},
    )
    count = tx.execute(text("SELECT COUNT(*) FROM ing_plan")).scalar_one()
    row = {
        "schedule_instance_id": root,
        "plan_key": f"{count:064d}",
        **names,
        "namespace_scope_code": "EXPR",
        "namespace_key": question * 64,
        "cursor_key": "updated_at",
        "direction_code": "FORWARD",
        "expr_proto_hash": question * 64,
        "spec_fingerprint": "f" * 64,
        "spec_snapshot": SPEC,
        "window_from": instant_text(day(first)),
        "window_to": instant_text(day(past)),
        "slice_strategy_code": "TIME",
        "status_code": "READY",
        **columns,
    }
    return insert(tx, "ing_plan", row)


def add_slice(tx, plan, first, past, status, error=None, remarks=None):
    """Write a slice of a plan and its task; without `first` it has no window."""
    names = {"provenance_code": "example", "endpoint_name": "works", "operation_code": "HARVEST"}
    count = tx.execute(text("SELECT COUNT(*) FROM ing_plan_slice")).scalar_one()
    row = {
        "plan_id": plan,
        **names,
        "slice_no": count,
        "slice_signature_hash": f"{count:064d}",
        "slice_spec": "{}",
        "window_from": None if first is None else instant_text(day(first)),
        "window_to": None if past is None else instant_text(day(past)),
        "expr_hash": "e" * 64,
        "status_code": status,
        "record_remarks": remarks and json_text(remarks),
    }
    slice_id = insert(tx, "ing_plan_slice", row)
    code, message, retries = error or (None, None, 0)
    task = {
        "schedule_instance_id": 1,
        "plan_id": plan,
        "slice_id": slice_id,
        **names,
        "idempotent_key": f"{count:064d}",
        "expr_hash": "e" * 64,
        "last_error_code": code,
        "last_error_msg": message,
        "retry_count": retries,
        "status_code": "QUEUED" if status == "READY" else status,
        "finished_at": None if status == "READY" else instant_text(day(19)),
    }
    insert(tx, "ing_task", task)
    return slice_id


def set_cursor(tx, at, question="q"):
    row = {"provenance_code": "example", "endpoint_name": "works", "operation_code": "HARVEST"}
    space = {"namespace_scope_code": "EXPR", "namespace_key": question * 64}
    value = {"cursor_key": "updated_at", "cursor_type_code": "TIME", "cursor_value": str(at)}
    insert(tx, "ing_cursor", {**row, **space, **value, "normalized_instant": instant_text(at)})


def a_harvest(tx):
    """Ten planned days: two done, one cancelled, one failed, two left out, the rest in work."""
    plan = add_plan(tx, 0, 4)
    add_slice(tx, plan, 0, 2, "SUCCEEDED")
    add_slice(tx, plan, 2, 3, "FAILED", ("HTTP_500", "the\nserver \x1b[31m[bold]broke", 3))
    note = {"time": "2025-09-19T10:00:00Z", "by": "anna", "note": "too big"}
    add_slice(tx, plan, 3, 4, "CANCELLED", remarks=[{"by": "planner", "note": "made"}, note])
    add_slice(tx, add_plan(tx, 6, 10), 6, 10, "READY")
    set_cursor(tx, day(2))


def looks(db, asked=Asked(), now=NOON):  # noqa: B008 - a frozen value
    with db.read() as tx:
        return [look_at(facts, asked, now) for facts in list_coverage(tx, "example")]


def parts(look):
    return [(s.interval.window, s.interval.cover.value, s.why) for s in look.stretches]


def ok(done):
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stderr == ""
    return done.stdout


def test_every_hole_has_its_reason_and_its_remedy(db):
    with db.write() as tx:
        a_harvest(tx)

    (look,) = looks(db)

    failed = (
        "HTTP_500: the\nserver \x1b[31m[bold]broke [3 retries, ended 2025-09-20];"
        " cancelled by anna on 2025-09-19: too big"
    )
    assert parts(look) == [
        (days(0, 2), "SUCCEEDED", None),
        (days(2, 4), "FAILED", failed),
        (days(4, 6), "MISSING", "left out: a later --from was asked"),
        (days(6, 10), "LIVE", None),
        (days(10, 18), "MISSING", "not planned yet: the next trigger plans it"),
    ]
    assert look.window.end == SETTLED
    plan_it = "`patra plan example --endpoint works`"
    assert [s.remedy for s in look.stretches] == [None, plan_it, plan_it, None, plan_it]
    assert look.seconds()[Cover.MISSING] == 10 * 86_400


def test_what_lies_before_the_cursor_needs_a_plan_of_its_own(sqlite_db):
    with sqlite_db.write() as tx:
        plan = add_plan(tx, 2, 6, trigger={"set": {"rate": {"burst": 1}}})
        add_slice(tx, plan, 4, 6, "SUCCEEDED")
        set_cursor(tx, day(6))

    (look,) = looks(sqlite_db, Asked(day(0), day(20)))

    assert [why for _, _, why in parts(look)] == [
        "before the first plan: nobody asked for it",
        "left out: a later --from was asked",
        None,
        "not planned yet: the next trigger plans it",
        "not due yet: the source is given time to settle",
    ]
    first = "`patra plan example --endpoint works --op BACKFILL --from 2025-09-01 --to 2025-09-03`"
    assert look.stretches[0].remedy == f"{first} with the options of plan 1"
    assert not look.stretches[-1].is_hole


def test_a_held_endpoint_says_since_when_and_by_whom(sqlite_db):
    with sqlite_db.write() as tx:
        a_harvest(tx)
        place_hold(tx, "example", "works", "OPERATOR", "lunch", "anna", NOON)

    (look,) = looks(sqlite_db)

    held = "held since 2025-09-20T12:00:00Z by anna (lunch)"
    assert [why for _, kind, why in parts(look) if kind in ("MISSING", "LIVE")] == [held] * 3
    assert look.stretches[-1].remedy.startswith("`patra resume example/works`, then `patra plan")


def test_a_question_that_has_changed_leaves_the_old_one_behind_without_a_growing_hole(sqlite_db):
    with sqlite_db.write() as tx:
        add_slice(tx, add_plan(tx, 0, 3, question="a"), 0, 2, "SUCCEEDED")
        add_slice(tx, add_plan(tx, 0, 5, question="b"), 0, 5, "READY")
        other = {"params": {"topic": "bees"}}
        add_slice(tx, add_plan(tx, 0, 4, question="c", trigger=other), 0, 4, "READY")

    bees, new, old = looks(sqlite_db)

    assert (bees.facts.superseded_by, new.facts.superseded_by) == (None, None)
    assert old.facts.superseded_by == 2
    assert old.window == days(0, 3)
    assert old.stretches[-1].remedy.startswith("nothing: plan 2 asks another question")
    assert "needs its --from" in new.stretches[-1].why


def test_a_backfill_ends_where_it_was_asked_to_and_slices_of_ids_are_only_counted(sqlite_db):
    past = {"operation_code": "BACKFILL", "namespace_scope_code": "CUSTOM", "campaign": "old-stuff"}
    update = {"operation_code": "UPDATE", "namespace_scope_code": "CUSTOM"}
    with sqlite_db.write() as tx:
        one = add_plan(tx, 0, 4, slice_params=json_text({"partition": "journals"}), **past)
        add_slice(tx, one, 2, 4, "SUCCEEDED")
        many = add_plan(tx, 0, 1, **update)
        for status in ("SUCCEEDED", "FAILED", "SUCCEEDED"):
            add_slice(tx, many, None, None, status)

    backfill, refresh = looks(sqlite_db)

    assert backfill.window == days(0, 4)
    assert (backfill.facts.newest.partition, backfill.facts.newest.campaign) == (
        "journals",
        "old-stuff",
    )
    assert "--op BACKFILL --from 2025-09-01 --to 2025-09-03" in backfill.stretches[0].remedy
    assert (refresh.window, refresh.facts.unwindowed) == (None, {"FAILED": 1, "SUCCEEDED": 2})


def test_the_drawing_can_be_read_without_colour(patra, db, db_url):
    with db.write() as tx:
        a_harvest(tx)

    said = ok(patra("coverage", "example", "--to=2025-09-13", PATRA_DB_URL=db_url))

    lines = [line.rstrip() for line in said.splitlines()]
    assert lines[:5] == [
        "example/works HARVEST  [2025-09-01, 2025-09-13)  cursor 2025-09-03",
        "█" * 12 + "✗" * 12 + "·" * 12 + "▒" * 24 + "·" * 12,
        " " * 12 + "▲ cursor",
        "2025-09-01                     2025-09-07                     2025-09-13",
        "█ SUCCEEDED 16.7 %   ▒ LIVE 33.3 %   ✗ FAILED 16.7 %   · MISSING 33.3 %",
    ]
    assert lines[5] == "3 holes:"
    assert lines[6] == (
        "  ✗ [2025-09-03, 2025-09-05) 2 d: HTTP_500: the server  [31m[bold]broke"
        " [3 retries, ended 2025-09-20]; cancelled by anna on 2025-09-19: too big"
        " → `patra plan example --endpoint works`"
    )
    assert lines[8].startswith("  · [2025-09-11, 2025-09-13) 2 d: not planned yet:")


def test_a_script_gets_everything_as_json(patra, db, db_url):
    with db.write() as tx:
        a_harvest(tx)

    (told,) = json.loads(ok(patra("coverage", "example", "--json", PATRA_DB_URL=db_url)))

    assert [told[name] for name in ("provenance", "endpoint", "operation", "partition")] == [
        "example",
        "works",
        "HARVEST",
        None,
    ]
    assert told["cursor"] == "2025-09-03T00:00:00+00:00"
    assert [(i["cover"], i["slices"]) for i in told["intervals"]] == [
        ("SUCCEEDED", [1]),
        ("FAILED", [2, 3]),
        ("MISSING", []),
        ("LIVE", [4]),
        ("MISSING", []),
    ]
    edges = [(i["from"], i["to"]) for i in told["intervals"]]
    assert [start for start, _ in edges[1:]] == [end for _, end in edges[:-1]]
    assert told["window"] == {"from": edges[0][0], "to": edges[-1][1]}
    end = datetime.fromisoformat(told["window"]["to"])
    assert timedelta(days=1) <= datetime.now(UTC) - end <= timedelta(days=2, minutes=1)
    assert told["seconds"]["FAILED"] == 2 * 86_400
    assert told["unwindowed"] == {}


def test_a_long_list_of_holes_is_cut_for_people_only(patra, sqlite_db, sqlite_url):
    with sqlite_db.write() as tx:
        plan = add_plan(tx, 0, 60)
        for number in range(0, 60, 2):
            add_slice(tx, plan, number, number + 1, "SUCCEEDED")
    asked = ("coverage", "example", "--to=2025-10-31", "--op=harvest", "--endpoint=works")

    said = ok(patra(*asked, PATRA_DB_URL=sqlite_url))
    (told,) = json.loads(ok(patra(*asked, "--json", PATRA_DB_URL=sqlite_url)))

    assert said.count("left out: a later --from was asked") == 20
    assert "… and 10 more (--json lists all)" in said
    assert sum(interval["cover"] == "MISSING" for interval in told["intervals"]) == 30


def test_a_source_without_plans_says_how_to_begin_and_an_unknown_one_what_there_is(
    patra, sqlite_db, sqlite_url
):
    with sqlite_db.write() as tx:
        apply_pack(tx, a_pack(), START)
    ledger = {"PATRA_DB_URL": sqlite_url}

    begin = ok(patra("coverage", "example", **ledger))
    assert begin == (
        "Nothing of example was planned yet. Begin with `patra run example --from DATE`.\n"
    )
    assert json.loads(ok(patra("coverage", "example", "--json", **ledger))) == []
    for arguments, said in (
        (["nosuch"], "There is nothing called 'nosuch' to look at. Known: example/works."),
        (["example", "--endpoint=no"], "There is nothing called 'example/no' to look at."),
        (["example", "--op=GUESS"], "There is no operation 'GUESS'. Known operations: HARVEST"),
        (["example", "--from=soon"], "--from: 'soon' is not an instant"),
    ):
        done = patra("coverage", *arguments, **ledger)
        assert (done.returncode, done.stdout) == (1, "")
        assert said in done.stderr
