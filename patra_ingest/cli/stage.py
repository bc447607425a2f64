"""`patra sandbox` and `patra demo`: a local upstream, and a whole harvest of it."""

from typing import Annotated

import typer

from patra_ingest.cli.show import say


def sandbox(  # noqa: PLR0913 - the options of a world and its habits
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 8765,
    records: Annotated[int, typer.Option(min=0, help="How many works there are.")] = 5000,
    start: Annotated[str, typer.Option(help="Index time begins here (ISO).")] = "2026-01-01",
    days: Annotated[float, typer.Option(help="… and ends so many days later.")] = 10.0,
    seed: Annotated[int, typer.Option(help="Another seed, other works.")] = 1,
    latency_ms: Annotated[float, typer.Option(help="Every answer comes this much later.")] = 0.0,
    fail_every: Annotated[int, typer.Option(help="Every n-th request gets a 503.")] = 0,
    throttle_per_second: Annotated[int, typer.Option(help="More than that get a 429.")] = 0,
    throttle_burst: Annotated[int, typer.Option(help="… by a token bucket of this size.")] = 0,
    throttle_in_flight: Annotated[int, typer.Option(help="More than that at once get a 429.")] = 0,
    retry_after: Annotated[int, typer.Option(help="What a 429 asks to wait; 0 says nothing.")] = 1,
    tell_limits: Annotated[
        bool, typer.Option("--tell-limits", help="Say them in headers.")
    ] = False,
    behave: Annotated[str, typer.Option(help="Habits of real sources, as a,b.")] = "",
    cap: Annotated[int, typer.Option(help="Most results of a question, for some habits.")] = 200,
    token_life_ms: Annotated[int, typer.Option(help="With dying-token: how long.")] = 300,
    living: Annotated[
        bool, typer.Option("--living", help="Works come, change and go as time passes.")
    ] = False,
    list_habits: Annotated[bool, typer.Option("--list-habits", help="List them and end.")] = False,
) -> None:
    """Serve a Crossref-shaped upstream, and a dozen others, on 127.0.0.1 until Ctrl-C."""
    from patra_ingest.errors import PersonMustAct
    from patra_ingest.model.window import parse_instant
    from patra_ingest.sandbox.behaviour import Behaviour
    from patra_ingest.sandbox.habits import table
    from patra_ingest.sandbox.serve import serve
    from patra_ingest.sandbox.world import World

    if list_habits:
        say(table.list_habits())
        return
    try:
        world = World(records, parse_instant(start), days, seed)
        habits = table.read_habits(behave.split(","))
        behaviour = Behaviour(
            latency_ms,
            fail_every,
            throttle_per_second,
            throttle_burst,
            throttle_in_flight,
            retry_after,
            tell_limits,
            habits=habits,
            cap=cap,
            token_life_ms=token_life_ms,
            living=living,
        )
    except ValueError as error:
        raise PersonMustAct(
            f"The sandbox cannot be built: {error}.", "Change the option."
        ) from None
    serve(port, world, behaviour, lambda url: _announce(url, records, start, days))


def _announce(url: str, records: int, start: str, days: float) -> None:
    say(f"{records} works indexed over {days:g} days from {start}.")
    say(f"  works   {url}/works?rows=2&cursor=*")
    say(f"  truth   {url}/__truth")
    say(f"  stats   {url}/__stats")
    say(f"Harvest it: patra run sandbox --from {start} --set request.base_url={url}")


def demo(
    records: Annotated[int, typer.Option(min=1, help="Works in the sandbox's world.")] = 5000,
) -> None:
    """Set up, start a sandbox, harvest it through Dagster, and show what happened."""
    from patra_ingest.cli.demo import run_demo

    if not run_demo(records):
        raise typer.Exit(1)
