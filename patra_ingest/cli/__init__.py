"""The `patra` command. Exit code 0: done; 1: the thing asked for failed; 2: wrong usage.

Nothing heavy is imported until a command needs it, and Dagster only by the process `demo` starts.
"""

import gc

# Importing makes many objects and no garbage: looking for some takes a tenth of the start-up.
gc.set_threshold(50_000, 20, 20)

from patra_ingest.cli.app import main  # noqa: E402 - after the line above, which is for it

__all__ = ["main"]
