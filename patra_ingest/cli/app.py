"""The commands, and the one place where an error becomes a sentence and an exit code."""

import sys

import typer

from patra_ingest.cli import (
    budget,
    coverage,
    cursor,
    fixture,
    harvest,
    look,
    operate,
    outbox,
    setup,
    shelf,
    stage,
)
from patra_ingest.cli import dry_read as trial
from patra_ingest.cli import registry as packs
from patra_ingest.cli import replay as evidence
from patra_ingest.cli import signal as hints
from patra_ingest.cli import sources as catalogue
from patra_ingest.errors import IngestError

app = typer.Typer(
    name="patra",
    help="Harvest literature metadata from HTTP APIs by description, and prove it is complete.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
registry = typer.Typer(help="Packs in and out of the Registry.", no_args_is_help=True)

app.command("init")(setup.init)
registry.command("packs")(shelf.packs)
registry.command("apply")(packs.apply)
registry.command("diff")(packs.diff)
registry.command("show")(packs.show)
registry.command("check")(packs.check)
registry.command("query")(packs.query)
registry.command("schema")(packs.schema)
app.add_typer(registry, name="registry")
app.command("sources")(catalogue.sources)
app.command("test-read")(trial.read)
app.command("plan")(harvest.plan)
app.command("work")(harvest.work)
app.command("run")(harvest.run)
app.command("status")(look.status)
app.command("coverage")(coverage.coverage)
app.command("budget")(budget.budget)
cursors = typer.Typer(help="How far we are, and how we came there.", no_args_is_help=True)
cursors.command("list")(cursor.list_)
cursors.command("timeline")(cursor.timeline)
cursors.command("verify")(cursor.verify)
cursors.command("rebuild")(cursor.rebuild)
cursors.command("force")(cursor.force)
app.add_typer(cursors, name="cursor")
app.command("hold")(operate.hold)
app.command("resume")(operate.resume)
app.command("cancel")(operate.cancel)
signals = typer.Typer(help="Records to be asked for again.", no_args_is_help=True)
signals.command("add")(hints.add)
signals.command("list")(hints.list_)
app.add_typer(signals, name="signal")
messages = typer.Typer(help="What changed, told to others.", no_args_is_help=True)
messages.command("publish")(outbox.publish)
messages.command("status")(outbox.status)
messages.command("retry")(outbox.retry)
app.add_typer(messages, name="outbox")
app.command("replay")(evidence.replay)
app.command("blackbox")(evidence.blackbox)
app.command("fixture")(fixture.fixture)
app.command("sandbox")(stage.sandbox)
app.command("demo")(stage.demo)


def main() -> None:
    """Run the command line; no traceback ever reaches a person for something we foresaw."""
    try:
        app()
    except IngestError as error:
        sys.stderr.write(f"patra: {error}\n")
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        sys.stderr.write("patra: interrupted\n")
        raise SystemExit(130) from None
