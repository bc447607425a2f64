"""The only reader of the environment: every `PATRA_…` variable is a field here."""

import os
import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

_ADDRESS = re.compile(r"[!-;=?A-~]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+", re.ASCII)
# Names that are kept for documents (RFC 2606, RFC 6761), and those that documents make up.
_NOBODYS = re.compile(
    r"(?:.*\.)?(?:example\.(?:com|net|org|edu)|example|invalid|test|localhost"
    r"|(?:your|my)?-?(?:domain|company|institution|university|organi[sz]ation)\.[a-z]+)"
)
_TOOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_HEADER = re.compile(r"[!-~](?:[ -~]{0,254}[!-~])?", re.ASCII)


def _contact(text: str) -> str:
    """Require an address that somebody reads: sources write to it before they lock us out."""
    if text and not _ADDRESS.fullmatch(text):
        raise ValueError("is no mail address")
    if _NOBODYS.fullmatch(text.rpartition("@")[2].lower()):
        raise ValueError("is a placeholder; give the address at which you can be reached, or none")
    return text


def _tool(text: str) -> str:
    if not _TOOL.fullmatch(text):
        raise ValueError("is no name of a tool: letters, digits, `.`, `_` and `-`, 64 at most")
    return text


def _user_agent(text: str) -> str:
    if text and not _HEADER.fullmatch(text):
        raise ValueError("is no header: 1 to 256 printable characters of ASCII")
    return text


class Settings(BaseSettings):
    """Where the ledger is and how patient we are with it."""

    model_config = SettingsConfigDict(env_prefix="PATRA_", frozen=True)

    home: Path = Field(Path(".patra"), description="Folder for everything this machine keeps.")
    db_url: str = Field("", description="SQLAlchemy URL of the ledger; empty: SQLite in `home`.")
    db_timeout_seconds: float = Field(30.0, gt=0, description="Patience with a locked ledger.")
    lease_seconds: float = Field(60.0, gt=0, description="How long a silent worker keeps a task.")
    registry_cache_seconds: float = Field(
        60.0, ge=0, description="How long the dictionary is remembered; 0: never."
    )
    contact: Annotated[str, AfterValidator(_contact)] = Field(
        "", description="Mail address told to upstreams that ask for one."
    )
    tool: Annotated[str, AfterValidator(_tool)] = Field(
        "patra-ingest", description="Name of the tool told to upstreams that ask for one."
    )
    user_agent: Annotated[str, AfterValidator(_user_agent)] = Field(
        "", description="User-Agent of every request; empty: our name, version and contact."
    )
    max_running_per_partition: int = Field(
        16, ge=1, description="Most tasks of one endpoint and operation in work, over all workers."
    )
    max_running: int = Field(64, ge=1, description="Most tasks in work, over all workers.")
    slow_page_seconds: float = Field(
        3.0, gt=0, description="A source slower than this, on average, gets fewer tasks at once."
    )
    check_thresholds: str = Field(
        "", description="JSON object: other limits for the health checks than the usual ones."
    )
    alert_sinks: str = Field(
        "", description="Who is told of trouble: addresses, or `env:NAME` or `file:PATH` of them."
    )

    @property
    def ledger_url(self) -> str:
        """The URL of the ledger: what was asked for, or the SQLite file under `home`."""
        return self.db_url or f"sqlite:///{self.home.absolute() / 'ledger.db'}"

    @property
    def raw_folder(self) -> Path:
        """The folder of the raw response bodies."""
        return self.home / "raw"

    def has_secret(self, reference: str) -> bool:
        """Return whether there is a secret where a pack says."""
        return self.secret(reference) is not None

    @property
    def credentials_folder(self) -> Path:
        """The folder of the refresh tokens that replaced one of the environment's."""
        return self.home / "credentials"

    def secret(self, reference: str) -> str | None:
        """Return the secret where a pack says, or None: it is not there, or empty."""
        kind, _, place = reference.partition(":")
        if kind == "env":
            return os.environ.get(place, "").strip() or None
        try:
            return Path(place).read_text().strip() or None
        except (OSError, UnicodeError):
            return None


def child_environment(**extra: str) -> dict[str, str]:
    """Return this process's environment with `extra` on top, for a child process."""
    return {**os.environ, **extra}


def dagster_home(settings: Settings) -> Path:
    """Return Dagster's folder: DAGSTER_HOME if set, else one beside the ledger."""
    given = os.environ.get("DAGSTER_HOME")
    return Path(given) if given else settings.home.absolute() / "dagster"
