"""How the sandbox treats its callers, beyond answering them. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from patra_ingest.sandbox.habits.table import Habits, read_habits


@dataclass(frozen=True)
class Behaviour:
    """How real upstreams behave; each field is an option of the command. Off by default."""

    latency_ms: float = 0.0  # every answer comes this much later
    fail_every: int = 0  # every n-th request is answered with 503
    throttle_per_second: int = 0  # more requests than this in a second are answered with 429
    throttle_burst: int = 0  # … counted by a token bucket of this size; 0: in any one second
    throttle_in_flight: int = 0  # more requests than this at once are answered with 429
    retry_after: int = 1  # the seconds that such a 429 asks to wait; 0: it does not say
    tell_limits: bool = False  # in headers, as Crossref does; else they change without a word
    gzip: bool = False  # compress for clients that accept it
    habits: Habits = frozenset()  # of `habits.table`, by name
    cap: int = 200  # the most results of one question, for habits that speak of a cap
    token_life_ms: int = 300  # how old a token may become, with `dying-token`
    living: bool = False  # works come, change and go as time passes; see `living`

    def __post_init__(self) -> None:
        for name in _NEVER_NEGATIVE:
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is never negative")
        if min(self.cap, self.token_life_ms) < 1:
            raise ValueError("cap and token_life_ms are positive")
        read_habits(self.habits)

    def describe(self) -> dict[str, Any]:
        """Return every field by name, ready for JSON."""
        return asdict(self) | {"habits": sorted(self.habits)}


_NEVER_NEGATIVE = (
    *("latency_ms", "fail_every", "retry_after"),
    *("throttle_per_second", "throttle_burst", "throttle_in_flight"),
)
_SWITCH = {"1": True, "true": True, "0": False, "false": False}


def option_of(field: str) -> str:
    """Return the option of the command that sets a field."""
    return "--behave" if field == "habits" else "--" + field.replace("_", "-")


def changed(behaviour: Behaviour, written: Mapping[str, str]) -> Behaviour:
    """Return the behaviour with what is named set to what is written; the rest stays."""
    kinds = {field.name: type(field.default) for field in fields(Behaviour)}
    if unknown := sorted(written.keys() - kinds.keys()):
        raise ValueError(f"there is no {', '.join(unknown)}; there are {', '.join(kinds)}")
    return replace(behaviour, **{name: _read(kinds[name], name, written[name]) for name in written})


def _read(kind: type, name: str, written: str) -> Any:
    if kind is frozenset:
        return read_habits(written.split(","))
    if kind is bool and written not in _SWITCH:
        raise ValueError(f"{name} is {written!r}, but must be 1 or 0")
    return _SWITCH[written] if kind is bool else kind(written)
