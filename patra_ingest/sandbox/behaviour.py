"""How the sandbox treats its callers, beyond answering them. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Behaviour:
    """Each field is a habit of real upstreams and an option of the command; 0 and False are off."""

    latency_ms: float = 0.0  # every answer comes this much later
    fail_every: int = 0  # every n-th request is answered with 503
    throttle_per_second: int = 0  # more requests than this in a second are answered with 429
    gzip: bool = False  # compress for clients that accept it

    def __post_init__(self) -> None:
        if min(self.latency_ms, self.fail_every, self.throttle_per_second) < 0:
            raise ValueError("latency_ms, fail_every and throttle_per_second are never negative")
