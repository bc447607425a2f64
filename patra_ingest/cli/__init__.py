"""The `patra` command. Exit code 0: done; 1: the thing asked for failed; 2: wrong usage.

Nothing heavy is imported until a command needs it, and Dagster only by the process `demo` starts.
"""

from patra_ingest.cli.app import main

__all__ = ["main"]
