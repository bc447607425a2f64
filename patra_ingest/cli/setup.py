"""`patra init`: the ledger's tables, its dictionary and the built-in packs."""

from typing import TYPE_CHECKING

from patra_ingest.cli.show import say

if TYPE_CHECKING:
    from patra_ingest.settings import Settings


def init() -> None:
    """Create or migrate the ledger, load the dictionary and the built-in packs. Safe to repeat."""
    from patra_ingest.wiring import read_settings

    say(prepare(read_settings()))


def prepare(settings: "Settings") -> str:
    """Bring the ledger up to date and return what was done, in one sentence."""
    from patra_ingest.ledger.migrate import migrate
    from patra_ingest.packs import builtin_packs
    from patra_ingest.registry.apply import apply_pack
    from patra_ingest.registry.dictionary import load_dictionary
    from patra_ingest.registry.pack import read_pack
    from patra_ingest.wiring import open_reader

    applied = migrate(settings.ledger_url, settings.db_timeout_seconds)
    packs = [read_pack(path) for path in builtin_packs()]
    with open_reader(settings) as live, live.db.write() as tx:
        items = load_dictionary(tx)
        now = live.db.now(tx)
        changes = [change for pack in packs for change in apply_pack(tx, pack, now)]
        shown = live.db.shown
    if not (applied or items or changes):
        return f"The ledger {shown} is up to date."
    return (
        f"The ledger {shown} is ready: {len(applied)} migrations applied,"
        f" {items} dictionary rows and {len(changes)} Registry rows written."
    )
