"""Where requests are signed in the tests, and the credentials they are signed with."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from patra_ingest.rate.gate import RateGate
from patra_ingest.spec.snapshot import AuthSpec
from patra_ingest.transport.auth import Authenticator
from patra_ingest.transport.client import Transport
from patra_ingest.transport.credentials import Credentials
from patra_ingest.transport.oauth import Tokens
from patra_ingest_tests.fakes import FakeClock

Secrets = dict[str, str]


@dataclass
class Desk:
    """An authenticator with all it needs; `secrets` are what the references lead to."""

    secrets: Secrets
    folder: Path
    clock: FakeClock
    gate: RateGate
    transport: Transport
    url: str = ""  # of the token endpoint, where there is one

    def __post_init__(self) -> None:
        self.credentials = Credentials(self.secrets.get, self.folder)
        self.tokens = Tokens(self.transport, self.gate, self.credentials, self.clock)
        self.auth = Authenticator(self.credentials, self.tokens, self.clock)

    def restarted(self) -> "Desk":
        """The same desk in a new process: what was only remembered is gone."""
        return replace(self)


def spec_of(
    *, required: bool = False, chosen: str | None = None, rotation: str = "FIRST", **named: Any
) -> AuthSpec:
    """Credentials by name, in the words of a pack; underscores are dashes."""
    listed = [{"name": name.replace("_", "-"), "credential": own} for name, own in named.items()]
    return AuthSpec.model_validate(
        {"required": required, "chosen": chosen, "rotation": rotation, "credentials": listed}
    )
