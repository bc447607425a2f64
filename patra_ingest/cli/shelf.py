"""`patra registry packs`: what comes with the package, and what a template wants to know."""

from typing import TYPE_CHECKING

from patra_ingest.cli.show import Json, print_json, say

if TYPE_CHECKING:
    from patra_ingest.registry.shelf import OpenValue


def packs(as_json: Json = False) -> None:
    """List the built-in packs; a template is no source before it is applied, with --param."""
    from patra_ingest.registry.shelf import list_shelf

    shelf = list(list_shelf())
    if as_json:
        print_json(shelf)
        return
    for one in shelf:
        say(f"{one.pack:12}{one.name}{' (a template)' if one.is_template else ''}")
        for value in one.parameters:
            say(f"{'':12}  --param {_asked(value):32}{value.description}")


def _asked(value: "OpenValue") -> str:
    choices = [str(value.default or "…"), *(one for one in value.one_of if one != value.default)]
    return f"{value.name}={' or '.join(choices)}"
