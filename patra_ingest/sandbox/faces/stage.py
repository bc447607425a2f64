"""What a face is asked, and what it has at hand to answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import orjson

from patra_ingest.sandbox.answers import Answer
from patra_ingest.sandbox.behaviour import Behaviour
from patra_ingest.sandbox.habits.losses import Loss
from patra_ingest.sandbox.habits.stamps import Entry
from patra_ingest.sandbox.habits.table import Habits
from patra_ingest.sandbox.memory import Memory
from patra_ingest.sandbox.shelf import Shelf
from patra_ingest.sandbox.world import World

UTC_ZONE = ZoneInfo("UTC")
# Both have days of 25 hours: New York the second of November 2025, Cairo the thirtieth of October.
_ZONES = {"zoned-days": ZoneInfo("America/New_York"), "eastern-days": ZoneInfo("Africa/Cairo")}
MAX_PAGE = 1000


class BadAsk(ValueError):
    """A request that the face would answer with 400."""


@dataclass(frozen=True)
class Ask:
    """One request to a face: `path` is what follows the name of the face."""

    host: str
    path: str
    params: Mapping[str, str]  # of the query, or of a form
    body: Any = None

    def need(self, name: str) -> str:
        """Return a parameter that must be there."""
        if name not in self.params:
            raise BadAsk(f"the parameter {name} is missing")
        return self.params[name]

    def number(self, name: str, default: int, most: int = 10**9) -> int:
        """Return a parameter that is a number, not above `most`."""
        text = self.params.get(name, str(default))
        if not text.isdecimal() or int(text) > most:
            raise BadAsk(f"{name} is {text}, but must be a number up to {most}")
        return int(text)

    def link(self, path: str, params: Mapping[str, str]) -> str:
        """Return an address on this very server."""
        return f"http://{self.host}{path}?{urlencode(params)}"


@dataclass(frozen=True)
class Stage:
    """The shelf, the habits, and what was said before."""

    shelf: Shelf
    behaviour: Behaviour
    memory: Memory
    now: float
    newest: int | None = None  # the last second that has come, in a living world

    @property
    def habits(self) -> Habits:
        """The habits that are switched on."""
        return self.behaviour.habits

    @property
    def world(self) -> World:
        """The works there are."""
        return self.shelf.world

    @property
    def cap(self) -> int:
        """The most results of one question, for faces that have a cap."""
        return self.behaviour.cap

    @property
    def zone(self) -> ZoneInfo:
        """Whose days a face counts that filters by day."""
        return next((zone for habit, zone in _ZONES.items() if habit in self.habits), UTC_ZONE)

    def is_dead(self, token: str) -> bool:
        """Say whether a token is too old."""
        old = self.memory.age(token, self.now) * 1000 > self.behaviour.token_life_ms
        return "dying-token" in self.habits and old


def never_lost(_index: int, _habits: Habits) -> Loss | None:
    """Every id of a face without details brings its record."""
    return None


def by_second(_stage: Stage, entry: Entry) -> int | None:
    """A face that tells the very second of a stamp."""
    return entry.second


@dataclass(frozen=True)
class Face:
    """How one source answers, what it calls its records, and what it tells of their times."""

    answer: Callable[[Stage, Ask], Answer]
    name: Callable[[World, int], str]
    tells: Callable[[Stage, Entry], int | None] = field(default=by_second)
    loses: Callable[[int, Habits], Loss | None] = field(default=never_lost)
    deletes: bool = False


def title_of(entry: Entry) -> str:
    """Return the title of a work; it tells its version."""
    return f"Observation {entry.index} of P<0.05 & H2O, version {entry.version}"


def answer_json(value: Any, status: int = 200, page: str = "") -> Answer:
    """Return a value as JSON; `page` names what was sent."""
    return Answer(status, "application/json", orjson.dumps(value), page=page)
