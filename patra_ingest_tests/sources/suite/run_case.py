"""One case through the whole engine: apply, plan, work, and what the ledger then says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from patra_ingest.ledger.db import read_json
from patra_ingest.ledger.signals import add_signals
from patra_ingest.model.codes import Signal
from patra_ingest.packs import FOLDER
from patra_ingest.planner.trigger import Trigger
from patra_ingest.planner.windowing import Asked
from patra_ingest.registry.served import list_record_endpoints
from patra_ingest.sandbox.recordings import Recording
from patra_ingest.sandbox.replayer import Replayer, serve_recordings
from patra_ingest.settings import Settings
from patra_ingest.spec.overrides import parse_overrides
from patra_ingest.wiring import open_ingest
from patra_ingest_tests.pipeline.harness import Home, work_off
from patra_ingest_tests.sources.suite.cases import CODES, Case
from patra_ingest_tests.sources.suite.packs import quick_pack
from patra_ingest_tests.sources.suite.readers import read_ids

CONTACT = "suite@uni-x.de"  # a placeholder would be refused
_DAY = (datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 1, 2, tzinfo=UTC))
# Once is enough to see what an answer means; the pauses between tries are tested elsewhere.
_ONCE = ("retry.max_attempts=1",)


@dataclass(frozen=True)
class Result:
    """What the ledger says after a case, and what was sent for it."""

    ids: frozenset[str]
    deleted: frozenset[str]
    seen: int
    batches: int
    quarantined: int
    tasks: list[str]
    first_error: str
    certificates: list[dict[str, Any]]
    held: list[str]
    served: list[str]
    unanswered: list[str]


def run_case(
    case: Case, home: Home, recordings: Sequence[Recording] = (), packs: Path = FOLDER
) -> Result:
    """Run a case on a fresh ledger, against its own recordings or others.

    `packs` is the folder of its pack, where that is no built-in one.
    """
    with serve_recordings(recordings or case.recordings()) as replayer:
        home.apply(quick_pack(case.source, replayer.at, packs, case.parameters))
        settings = Settings(home=home.folder, db_url=home.url, contact=CONTACT)
        with open_ingest(settings) as live:
            _add_signals(case, home)
            planned = live.planner.plan(_trigger(case, replayer))
            assert planned.plan_id is not None, f"nothing was planned: {planned.reason}"
            work_off(live)
        return _result(home, replayer)


def _trigger(case: Case, replayer: Replayer) -> Trigger:
    said = {text.partition("=")[0] for text in case.set}
    once = [text for text in _ONCE if text.partition("=")[0] not in said]
    texts = [text.replace("{url}", replayer.url) for text in (*once, *case.set)]
    asked = Asked(*(case.window or _DAY)) if not case.ask_for or case.window else Asked()
    return Trigger(
        case.source,
        case.endpoint,
        case.operation,
        asked,
        replace(parse_overrides(texts), query=case.query),
        partition=case.partition,
    )


def _add_signals(case: Case, home: Home) -> None:
    if not case.ask_for:
        return
    with home.db.write() as tx:
        now = home.db.now(tx)
        (name, *_) = list_record_endpoints(tx, case.source, case.endpoint, now)
        ids = read_ids(case.ask_for, case.recordings())
        add_signals(tx, case.source, name, ids, Signal.CORRECTION, "suite", None, now)


def _result(home: Home, replayer: Replayer) -> Result:
    stats = [
        read_json(row[0])
        for row in home.rows(
            "SELECT stats FROM ing_task_run_batch WHERE status_code = 'SUCCEEDED' ORDER BY id"
        )
    ]
    runs = home.rows("SELECT error, certificate FROM ing_task_run ORDER BY id")
    errors = [row[0] for row in runs if row[0]]
    return Result(
        frozenset(_column(home, "SELECT provider_id FROM ing_record WHERE is_deleted = 0")),
        frozenset(_column(home, "SELECT provider_id FROM ing_record WHERE is_deleted = 1")),
        sum(one["itemsCount"] for one in stats),
        len(stats),
        home.one("SELECT COUNT(*) FROM ing_quarantine"),
        _column(home, "SELECT status_code FROM ing_task ORDER BY id"),
        errors[0] if errors else "",
        [read_json(row[1]) for row in runs if row[1]],
        _column(home, "SELECT endpoint_name FROM ing_hold WHERE resumed_at IS NULL"),
        replayer.served,
        [visit.said for visit in replayer.unanswered],
    )


def _column(home: Home, query: str) -> list[str]:
    return [row[0] for row in home.rows(query)]


def check(case: Case, result: Result) -> Mapping[str, int]:
    """Hold the ledger against the files; return the numbers for the table."""
    assert result.unanswered == []
    expected = read_ids(case.ids, case.recordings())
    assert result.ids == frozenset(expected)
    assert result.deleted == frozenset(case.deleted)
    assert result.quarantined == case.quarantined
    if case.is_error:
        _check_error(case, result)
    else:
        _check_proof(case, result, expected)
    return {
        "pages": result.batches,
        "records": len(result.ids) + len(result.deleted),
        "errors": int(case.is_error),
    }


def _check_error(case: Case, result: Result) -> None:
    code, _, words = result.first_error.partition(": ")
    assert code == CODES[case.outcome], result.first_error
    assert case.says in words
    assert "SUCCEEDED" not in result.tasks
    assert bool(result.held) is (case.outcome == "FATAL")


def _check_proof(case: Case, result: Result, expected: list[str]) -> None:
    assert set(result.tasks) == {"SUCCEEDED"}, result.first_error
    proofs = result.certificates
    came = len(result.ids) + len(result.deleted) + result.quarantined
    assert {proof["verdict"] for proof in proofs} == {case.outcome}
    landed = sum(proof["landed"] for proof in proofs)
    assert landed == (came if case.landed is None else case.landed)
    seen = len(expected) + len(case.deleted) + case.quarantined
    assert result.seen == (seen if case.seen is None else case.seen)
    if case.stop:
        assert {proof["stop_rule"] for proof in proofs} == {case.stop}
    if case.pages is not None:
        assert sum(proof["pages"] for proof in proofs) == case.pages
