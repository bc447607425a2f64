"""`make bench`: start-up, harvest beside a bare loop, reading, compiling, planning,
leasing, paths, XML beside xmltodict, the shared rate gate, Dagster.

`python -m bench paths registry` measures only what is named.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.commits import measure_commits
from bench.cursors import measure_cursors
from bench.dagster_face import measure_dagster
from bench.gate import measure_permits, measure_recovery, measure_sharing
from bench.harvest import compare_harvest, measure_latency, measure_memory
from bench.leasing import measure_leasing
from bench.paths import measure_paths
from bench.planning import measure_planning
from bench.registry import measure_registry
from bench.steps import measure_steps
from bench.xml_speed import measure_xml

REPEATS = 5


def median_seconds(command, env):
    """Run a command a few times and return the median of its wall time."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def start_up():
    """Print how long the command takes to start, beside Python itself."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PATRA_HOME": folder}
        patra = str(Path(sys.executable).parent / "patra")
        subprocess.run([patra, "init"], env=env, check=True, stdout=subprocess.DEVNULL)
        print(f"Start-up, medians of {REPEATS}")
        bare = median_seconds([sys.executable, "-c", "pass"], env)
        for name in ("--help", "status"):
            taken = median_seconds([patra, name], env)
            print(f"patra {name:<8} {taken:.3f} s  (python itself {bare:.3f} s)")


def harvest():
    """Print the speed of a whole harvest."""
    with tempfile.TemporaryDirectory() as folder:
        compare_harvest(Path(folder), os.environ.get("PATRA_TEST_MYSQL_URL", ""))


def steps():
    """Print where the time of a page goes."""
    with tempfile.TemporaryDirectory() as folder:
        measure_steps(Path(folder))


def latency():
    """Print how lanes hide the latency of a source."""
    with tempfile.TemporaryDirectory() as folder:
        measure_latency(Path(folder))


def memory():
    """Print the memory of a worker over few and over many records."""
    with tempfile.TemporaryDirectory() as folder:
        measure_memory(Path(folder))


def commits():
    """Print how long it takes to commit a batch of 100 records."""
    with tempfile.TemporaryDirectory() as folder:
        measure_commits(Path(folder), os.environ.get("PATRA_TEST_MYSQL_URL", ""))


def registry():
    """Print queries and times of reading and compiling an endpoint."""
    with tempfile.TemporaryDirectory() as folder:
        measure_registry(Path(folder), os.environ.get("PATRA_TEST_MYSQL_URL", ""))


def planning():
    """Print time and memory of planning many slices."""
    with tempfile.TemporaryDirectory() as folder:
        measure_planning(Path(folder), os.environ.get("PATRA_TEST_MYSQL_URL", ""))


def leasing():
    """Print how long leasing a task takes when many are queued."""
    with tempfile.TemporaryDirectory() as folder:
        measure_leasing(Path(folder), os.environ.get("PATRA_TEST_MYSQL_URL", ""))


def gate():
    """Print whether processes share one rate, and use it up."""
    with tempfile.TemporaryDirectory() as folder:
        measure_sharing(Path(folder), os.environ.get("PATRA_TEST_MYSQL_URL", ""))


def recovery():
    """Draw how workers follow a source that halves its limit."""
    with tempfile.TemporaryDirectory() as folder:
        measure_recovery(Path(folder), os.environ.get("PATRA_TEST_MYSQL_URL", ""))


def permits():
    """Print what a permit costs."""
    with tempfile.TemporaryDirectory() as folder:
        measure_permits(Path(folder), os.environ.get("PATRA_TEST_MYSQL_URL", ""))


def cursors():
    """Print what moving a cursor costs, and telling it again from its events."""
    measure_cursors(os.environ.get("PATRA_TEST_MYSQL_URL", ""))


def dagster():
    """Print what Dagster costs: of a drain, at load, per tick."""
    with tempfile.TemporaryDirectory() as folder:
        measure_dagster(Path(folder), os.environ.get("PATRA_TEST_MYSQL_URL", ""))


PARTS = {
    "start": start_up,
    "harvest": harvest,
    "steps": steps,
    "latency": latency,
    "memory": memory,
    "commits": commits,
    "registry": registry,
    "planning": planning,
    "leasing": leasing,
    "cursors": cursors,
    "paths": measure_paths,
    "xml": measure_xml,
    "gate": gate,
    "recovery": recovery,
    "permits": permits,
    "dagster": dagster,
}


def main(names):
    """Measure the parts of these names; all of them when none is named."""
    if unknown := set(names) - PARTS.keys():
        sys.exit(f"There is no part {', '.join(unknown)} to measure. Known: {', '.join(PARTS)}.")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name in names or PARTS:
        PARTS[name]()
    print(f"\nload average {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":  # the gate's processes import this module, too
    main(sys.argv[1:])
