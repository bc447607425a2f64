"""How many results a source says there are (15). Pure."""

from patra_ingest.sandbox.habits.table import Habits


def say_total(count: int, habits: Habits) -> int | str | None:
    """Return the total as it is told: a number, a text, two too many, or not at all."""
    if "no-total" in habits:
        return None
    if "total-off-by-two" in habits:
        count += 2
    return str(count) if "text-total" in habits else count
