"""`make bench`: start-up of the command, and a harvest against a bare fetch-parse-upsert loop."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.harvest import compare_harvest

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
        bare = median_seconds([sys.executable, "-c", "pass"], env)
        for name in ("--help", "status"):
            taken = median_seconds([patra, name], env)
            print(f"patra {name:<8} {taken:.3f} s  (python itself {bare:.3f} s)")


def main():
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; medians of {REPEATS}")
    start_up()
    with tempfile.TemporaryDirectory() as folder:
        compare_harvest(Path(folder), os.environ.get("PATRA_BENCH_MYSQL_URL", ""))


main()
