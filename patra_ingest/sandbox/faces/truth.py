"""What a face really has for a span of time: ids, times, versions, and what is not there."""

from typing import Any

from patra_ingest.sandbox.faces.stage import Face, Stage, title_of
from patra_ingest.sandbox.habits.losses import Loss
from patra_ingest.sandbox.habits.stamps import Entry
from patra_ingest.sandbox.notation import iso_second


def tell_truth(face: Face, stage: Stage, first: int | None, past: int | None) -> dict[str, Any]:
    """Return the truth about the works stamped in the seconds `[first, past)`."""
    low = 0 if first is None else first
    high = 1 << 40 if past is None else past
    entries = stage.shelf.between(low, high)
    lost = {entry.index: face.loses(entry.index, stage.habits) for entry in entries}
    live = [
        entry
        for entry in entries
        if lost[entry.index] is None and not (face.deletes and entry.deleted)
    ]

    def name(entry: Entry) -> str:
        return face.name(stage.world, entry.index)

    def names(loss: Loss) -> list[str]:
        return [name(entry) for entry in entries if lost[entry.index] is loss]

    return {
        "count": len(live),
        "ids": [name(entry) for entry in live],
        "updated_at": {
            name(entry): iso_second(told)
            for entry in live
            if (told := face.tells(stage, entry)) is not None
        },
        "versions": {name(entry): entry.version for entry in live},
        "titles": {name(entry): title_of(entry) for entry in live},
        "deleted": [name(entry) for entry in entries if face.deletes and entry.deleted],
        "gone": names(Loss.GONE),
        "merged": names(Loss.MERGED),
        "bad": names(Loss.POISON),
    }
