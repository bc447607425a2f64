"""What cannot be meant is refused when it is launched: one sentence, and there is no run.

Which fields there are, and their types, Dagster checks while a person types. What a value means is
looked at by the functions under `dg.configured`: Dagster calls them when the code location builds a
run's steps, before the run is kept, and again in the run's own process.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

# No public names: any other error is shown with a traceback of Dagster's own code.
from dagster._core.errors import DagsterUserCodeProcessError
from dagster_shared.error import SerializableErrorInfo

from patra_ingest.errors import PersonMustAct


@contextmanager
def refusing() -> Iterator[None]:
    """Refuse the launch, in its own words, for what a person must mend."""
    try:
        yield
    except (PersonMustAct, dg.Failure) as error:
        told = SerializableErrorInfo(f"{error}\n", [], "Refused")
        refusal = DagsterUserCodeProcessError(  # type: ignore[no-untyped-call]
            str(error), user_code_process_error_infos=[told]
        )
        raise refusal from None


def require_number(name: str, number: int, least: int, most: int | None = None) -> None:
    """Fail with one sentence when a number is out of its range; pydantic's own takes ten lines."""
    if number < least or (most is not None and number > most):
        allowed = f"from {least} to {most}" if most is not None else f"from {least} on"
        raise dg.Failure(f"{name} is {number}; give a number {allowed}.")
