"""How the sandbox treats its callers, beyond answering them. Pure."""

from dataclasses import dataclass

from patra_ingest.sandbox.habits.table import Habits, read_habits


@dataclass(frozen=True)
class Behaviour:
    """How real upstreams behave; each field is an option of the command. Off by default."""

    latency_ms: float = 0.0  # every answer comes this much later
    fail_every: int = 0  # every n-th request is answered with 503
    throttle_per_second: int = 0  # more requests than this in a second are answered with 429
    gzip: bool = False  # compress for clients that accept it
    habits: Habits = frozenset()  # of `habits.table`, by name
    cap: int = 200  # the most results of one question, for habits that speak of a cap
    token_life_ms: int = 300  # how old a token may become, with `dying-token`

    def __post_init__(self) -> None:
        if min(self.latency_ms, self.fail_every, self.throttle_per_second) < 0:
            raise ValueError("latency_ms, fail_every and throttle_per_second are never negative")
        if min(self.cap, self.token_life_ms) < 1:
            raise ValueError("cap and token_life_ms are positive")
        read_habits(self.habits)


def option_of(field: str) -> str:
    """Return the option of the command that sets a field."""
    return "--behave" if field == "habits" else "--" + field.replace("_", "-")
