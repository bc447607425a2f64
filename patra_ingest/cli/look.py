"""`patra status`: how things stand."""

from patra_ingest.cli.show import Json, print_json, print_table, say


def status(as_json: Json = False) -> None:
    """Show every endpoint: records, queue, cursor and holds."""
    from patra_ingest.views.overview import list_states
    from patra_ingest.wiring import open_reader

    with open_reader() as live:
        now = live.clock.now()
        with live.db.read() as tx:
            states = list_states(tx)
    if as_json:
        print_json(states)
        return
    if not states:
        say("Nothing was planned yet. Begin with `patra run SOURCE --from DATE`.")
        return
    from rich.table import Table

    table = Table(
        "source", "endpoint", "operation", "records", "tasks", "plan", "cursor", "behind", "hold"
    )
    for state in states:
        lag = state.lag_seconds(now)
        table.add_row(
            state.provenance,
            state.endpoint,
            state.operation,
            str(state.records),
            ", ".join(f"{count} {name}" for name, count in sorted(state.tasks.items())),
            str(state.last_plan or "—"),
            state.cursor.strftime("%Y-%m-%d %H:%M:%SZ") if state.cursor else "—",
            _duration(lag) if lag is not None else "—",
            state.held or "",
        )
    print_table(table)


def _duration(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
