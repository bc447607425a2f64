"""`python -m patra_ingest.defs.launch CONFIG`: run `ingest_job` here, without a Dagster server.

CONFIG is the JSON of a TriggerConfig (`planning`). The run's id goes to stdout; exit code 0 means
success. The run is kept in DAGSTER_HOME under the code location of workspace.yaml, so that the UI
lists it with its job and can execute it again. Dagster's public API cannot say where a run
belongs: the imports below that begin with an underscore are only for that.
"""

import json
import sys

import dagster as dg
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.execution.api import execute_run
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._utils.interrupts import capture_interrupts

from patra_ingest.defs.runs import LOCATION

JOB = "ingest_job"
MODULE = "patra_ingest.definitions"
REPOSITORY = "__repository__"  # Dagster's name for what Definitions becomes


def main() -> int:
    """Return 0 when the run succeeded; SIGINT and SIGTERM end it after the current batch."""
    config = json.loads(sys.argv[1])
    repository = ReconstructableRepository.for_module(MODULE, "defs")
    job = repository.get_reconstructable_job(JOB)
    home = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin(LOCATION), REPOSITORY)
    with capture_interrupts(), dg.DagsterInstance.get() as instance:
        run = instance.create_run_for_job(
            job.get_definition(),
            run_config={"ops": {"compile_spec": {"config": config}}},
            remote_job_origin=home.get_job_origin(JOB),
            job_code_origin=job.get_python_origin(),
        )
        sys.stdout.write(f"{run.run_id}\n")
        sys.stdout.flush()
        return 0 if execute_run(job, run, instance).success else 1


if __name__ == "__main__":
    sys.exit(main())
