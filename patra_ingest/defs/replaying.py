"""Replays from Dagster: batches told once more, held against what the ledger has.

Nothing is written to the ledger. A live replay passes the rate gate, as every request does.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import dagster as dg
from pydantic import Field
from sqlalchemy import Connection

from patra_ingest.defs.planning import read_field
from patra_ingest.defs.refusing import refusing
from patra_ingest.defs.resources import LedgerResource
from patra_ingest.defs.runs import table, tag_run, trigger_of
from patra_ingest.executor.replay import replay, replay_live
from patra_ingest.executor.replay_report import Replay
from patra_ingest.ledger.evidence import get_run, list_runs_of_task, list_runs_of_window
from patra_ingest.model.window import Window
from patra_ingest.rawstore.store import RawStore
from patra_ingest.wiring import read_settings

_ROWS = 500  # batches that the table still lists; counts are of all
_PAGES = 20  # runs whose report is shown whole
_HOW = (
    "Say what to replay: `run` (and `batch`), or `task`, or `provenance`, `endpoint`,"
    " `window_from` and `window_to`."
)


class ReplayConfig(dg.Config):
    """What to tell once more: a run of the ledger, a task, or a window."""

    run: int = Field(default=0, description="Run of the ledger; an asset's `blackbox` lists them.")
    batch: int = Field(default=0, description="Only this batch of the run; 0: all of them.")
    task: int = Field(default=0, description="All runs of this task instead.")
    provenance: str = Field(default="", description="With the three below: a window instead.")
    endpoint: str = Field(default="", description="Endpoint of that window.")
    window_from: str = Field(default="", description="Its start, `2026-01-31` or with a time.")
    window_to: str = Field(default="", description="Its end, exclusive.")
    live: bool = Field(
        default=False, description="Ask the source again, through the rate gate; else stored bytes."
    )

    def runs(self, tx: Connection) -> list[int]:
        """Return the runs that are meant; fail with one sentence when that is not clear."""
        window = (self.provenance, self.endpoint, self.window_from, self.window_to)
        if sum((self.run != 0, self.task != 0, any(window))) != 1 or (self.batch and not self.run):
            raise dg.Failure(_HOW)
        if min(self.run, self.batch, self.task) < 0:
            raise dg.Failure("run, batch and task are numbers from 1.")
        if self.run:
            get_run(tx, self.run)  # raises when there is none
            return [self.run]
        if self.task:
            return list(list_runs_of_task(tx, self.task))
        if not all(window):
            raise dg.Failure(_HOW)
        names = self.provenance.lower(), self.endpoint.lower()
        return list(list_runs_of_window(tx, *names, self._window()))

    def _window(self) -> Window:
        start, end = (
            read_field(name, getattr(self, name)) for name in ("window_from", "window_to")
        )
        if not isinstance(start, datetime) or not isinstance(end, datetime) or start >= end:
            raise dg.Failure("window_from must lie before window_to.")
        return Window(start, end)


@dg.op(name="replay_batches")
def _replay_batches(
    context: dg.OpExecutionContext, config: ReplayConfig, ledger: LedgerResource
) -> int:
    """Tell batches once more; fail when something is not as the ledger has it."""
    with ledger.look() as live, live.db.read() as tx:
        runs = config.runs(tx)
    found = list(_live(ledger, runs, config) if config.live else _stored(ledger, runs, config))
    tag_run(context, trigger=trigger_of(context.run), **_tags(found))
    told = _metadata(found)
    if not all(one.is_fine for one in found):
        wrong = [one.verdict for one in found if not one.is_fine]
        raise dg.Failure(" ".join(wrong[:_PAGES]), metadata=told)
    context.add_output_metadata(told)
    return sum(len(one.batches) for one in found)


@dg.configured(_replay_batches)
def replay_batches(config: ReplayConfig) -> ReplayConfig:
    """Refuse what does not say clearly what to replay, and a run that is not there."""
    with refusing(), LedgerResource().look() as live, live.db.read() as tx:
        config.runs(tx)
    return config


def _stored(ledger: LedgerResource, runs: list[int], config: ReplayConfig) -> Iterator[Replay]:
    with ledger.look() as live:
        settings = read_settings()
        raw, batch = RawStore(settings.raw_folder), config.batch or None
        for run in runs:
            yield replay(live.db, raw, live.clock, run, batch, settings.contact)


def _live(ledger: LedgerResource, runs: list[int], config: ReplayConfig) -> Iterator[Replay]:
    with ledger.open() as live:
        upstream = live.upstream()
        for run in runs:
            yield replay_live(live.db, live.clock, upstream, run, config.batch or None)


def _tags(found: list[Replay]) -> dict[str, str]:
    if not found:
        return {}
    first = found[0]
    where = {"source": first.provenance, "endpoint": first.endpoint, "operation": first.operation}
    return {**where, "plan": str(first.lineage.get("plan_id") or "")}


def _metadata(found: list[Replay]) -> dict[str, Any]:
    """Return the reports: a page to read, a table of batches, numbers."""
    pages = [one.as_markdown() for one in found[:_PAGES]]
    if len(found) > _PAGES:
        pages.append(f"… and {len(found) - _PAGES} runs more, each of them in the table.")
    counts: dict[str, int] = {}
    for one in found:
        for match, count in one.counts.items():
            name = f"records_{match.value.lower()}"
            counts[name] = counts.get(name, 0) + count
    return {
        "verdict": " ".join(one.verdict for one in found[:_PAGES]) or "There is nothing to replay.",
        "report": dg.MetadataValue.md("\n".join(pages)),
        "batches": table(("batch", "outcome", "request", "records", "problem"), _rows(found)),
        "runs": len(found),
        "batch_count": sum(len(one.batches) for one in found),
        **counts,
    }


def _rows(found: list[Replay]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for one in found:
        for batch in one.batches[: _ROWS - len(rows)]:
            counts = (batch.counts or {}).items()
            differs = [check.name for check in batch.checks if not check.is_equal]
            rows.append(
                (
                    f"{batch.run_id}/{batch.batch_no}",
                    batch.outcome.value,
                    "differs" if "request" in differs else "equal",
                    ", ".join(f"{count} {match.value.lower()}" for match, count in counts),
                    batch.problem or ", ".join(differs),
                )
            )
    return rows


@dg.job(executor_def=dg.in_process_executor)
def replay_job() -> None:
    """Tell batches once more, from stored bytes or live, and hold them against the ledger.

    It writes nothing, and fails when something differs: the failed step shows the report.
    """
    replay_batches()
