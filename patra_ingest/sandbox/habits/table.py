"""Every habit by its name: which source has it, and what it does. Pure.

The numbers are those of the list of behaviours that an ingest engine must survive.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

Habits = frozenset[str]


@dataclass(frozen=True)
class Habit:
    """Something a real source does: its number in the list, the faces that do it, one sentence."""

    number: int
    faces: str
    sentence: str


HABITS: Mapping[str, Habit] = {
    "echo-cursor": Habit(1, "epmc", "The last page is empty and echoes the cursor it was sent."),
    "same-cursor": Habit(
        2, "works", "Every page, also the last, hands out one and the same cursor."
    ),
    "full-last-page": Habit(3, "ctgov", "A full last page has a token, an empty page follows."),
    "empty-middle": Habit(3, "ctgov", "A page in the middle is empty and has a token."),
    "small-pages": Habit(4, "biorxiv", "Pages are smaller than asked, and differ per endpoint."),
    "clamped-count": Habit(5, "pubmed", "The count is clamped to the cap; past it, 200 and ERROR."),
    "clamped-page": Habit(6, "datacite", "A page number past the cap gives the last page again."),
    "restarting-cursor": Habit(7, "datacite", "A broken cursor silently means the first page."),
    "lost-params": Habit(8, "datacite", "The next URL has lost the caller's own parameters."),
    "next-past-cap": Habit(9, "doaj", "A next page is offered beyond the cap, then comes 400."),
    "dying-token": Habit(10, "works, oai, zenodo", "A token that is too old is refused."),
    "clamped-until": Habit(11, "oai", "The newest records are held back: `until` is moved."),
    "zoned-days": Habit(12, "epmc, ctgov, biorxiv, pubmed", "Days are New York's, not UTC's."),
    "eastern-days": Habit(12, "epmc, ctgov, biorxiv, pubmed", "Days are Cairo's, not UTC's."),
    "nothing-is-404": Habit(13, "openfda", "No matches are a 404."),
    "error-code": Habit(14, "epmc", "An error comes with status 200 and an errCode."),
    "bare-envelope": Habit(14, "epmc", "An error comes as 200 with nothing but a version."),
    "error-entry": Habit(14, "arxiv", "An error comes as 200 and one entry called Error."),
    "rate-text": Habit(14, "arxiv", "Throttling comes as 200 and plain text."),
    "text-total": Habit(15, "epmc", "The total is a text."),
    "no-total": Habit(15, "epmc", "There is no total."),
    "total-off-by-two": Habit(15, "epmc", "The total promises two records that do not exist."),
    "lost-ids": Habit(16, "pubmed", "A batch of ids brings fewer records, some only at first."),
    "null-ids": Habit(16, "s2", "A batch of ids has nulls in the place of unknown ones."),
    "merged-ids": Habit(16, "s2", "A batch of ids brings other ids than were asked for."),
    "poison-id": Habit(16, "s2", "One id makes its whole batch a 500."),
    "skip-degrades": Habit(17, "openfda", "After `skip`, next links are bound by the cap."),
    "burst-429": Habit(18, "all", "Every seventh request is too fast: 429, wait a second."),
    "budget-gone": Habit(18, "all", "Nothing is left today: 429, come back in fifteen hours."),
    "reset-as-epoch": Habit(18, "all", "… said by a reset header alone, as an epoch."),
    "one-at-a-time": Habit(19, "all", "A second request in flight is rejected."),
    "restamped": Habit(20, "hal", "Records are stamped anew while they are walked over."),
    "descending": Habit(20, "hal", "The newest records come first."),
    "odd-xml": Habit(21, "oai", "Odd prefixes, mixed content, lone records, masses of entities."),
    "big-day": Habit(22, "all but works", "One day holds three fifths of all records."),
}


def read_habits(names: Iterable[str]) -> Habits:
    """Return the habits of these names; ValueError for one that nobody has."""
    habits = frozenset(filter(None, (name.strip() for name in names)))
    for name in sorted(habits - HABITS.keys()):
        near = get_close_matches(name, HABITS, 1)
        hint = f" (did you mean {near[0]}?)" if near else f"; there are {', '.join(HABITS)}"
        raise ValueError(f"no source has the habit {name!r}{hint}")
    return habits


def list_habits() -> str:
    """Return the table as text, one habit per line."""
    wide = max(map(len, HABITS))
    return "\n".join(
        f"{habit.number:2}  {name:{wide}}  {habit.sentence} [{habit.faces}]"
        for name, habit in HABITS.items()
    )
