"""The only reader of the environment: every `PATRA_…` variable is a field here."""

import os
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


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
    contact: str = Field("", description="Mail address told to upstreams that ask for one.")

    @property
    def ledger_url(self) -> str:
        """The URL of the ledger: what was asked for, or the SQLite file under `home`."""
        return self.db_url or f"sqlite:///{self.home.absolute() / 'ledger.db'}"

    @property
    def raw_folder(self) -> Path:
        """The folder of the raw response bodies."""
        return self.home / "raw"

    def has_secret(self, reference: str) -> bool:
        """Return whether a secret is where a pack says, without looking at it."""
        kind, _, place = reference.partition(":")
        return bool(os.environ.get(place)) if kind == "env" else Path(place).is_file()


def child_environment(**extra: str) -> dict[str, str]:
    """Return this process's environment with `extra` on top, for a child process."""
    return {**os.environ, **extra}


def dagster_home(settings: Settings) -> Path:
    """Return Dagster's folder: DAGSTER_HOME if set, else one beside the ledger."""
    given = os.environ.get("DAGSTER_HOME")
    return Path(given) if given else settings.home.absolute() / "dagster"
