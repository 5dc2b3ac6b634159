"""`make bench-move`: the least movement, end to end from a Parquet snapshot, beside what Kafka's --generate moves.

Each case runs in a process of its own, so that its peak memory is its own: read the folder, plan, order the steps.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rackspan.plan import in_steps
from rackspan.reassign import plan
from rackspan.sources import snapshot_file
from tests.reassign.instances import NAMES, instance

RUNS = 3

AIMS_SECONDS = {100_000: 3.0, 1_000_000: 45.0}
AIM_MEGABYTES = 6_000

# Moves and milliseconds of kafka-reassign-partitions --generate on the same instances (topics of 50 partitions): facts
# measured once with the published 4.x classes, warm, planning alone; not run here.
GENERATE = {
    ("labelled", 1_000): (2271, 27),
    ("five percent", 1_000): (2242, 20),
    ("broker lost", 1_000): (2207, 26),
    ("labelled", 10_000): (28422, 51),
    ("five percent", 10_000): (28496, 45),
    ("broker lost", 10_000): (28513, 55),
    ("labelled", 100_000): (296920, 255),
    ("five percent", 100_000): (297004, 276),
    ("broker lost", 100_000): (297018, 222),
}


def main() -> None:
    print(
        "seconds: median (least to most) of", RUNS, "runs, read + plan + steps; cpu: processor seconds of the best run,"
    )
    print("which a busy machine lengthens less; MB: peak of the process")
    print(f"{'partitions':>10}  {'instance':<13}{'moves':>9}{'bound':>9}  {'replicas':>11} {'leaders':>10}  ", end="")
    print(f"{'seconds':<22}{'read':>6}{'plan':>7}{'steps':>7}{'cpu':>7}{'MB':>6}  --generate (recorded)")
    medians: dict[tuple[str, int], float] = {}
    for partitions in (10_000, 100_000, 1_000_000):
        for name in NAMES:
            medians[name, partitions] = _case(name, partitions)
    for name in NAMES:
        _growth(name, medians)


def _case(name: str, partitions: int) -> float:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "snapshot"
        snapshot_file.write(instance(name, partitions), folder)
        runs = [_measured(folder) for _ in range(RUNS)]
    seconds = [run["read"] + run["plan"] + run["steps"] for run in runs]
    one = min(runs, key=lambda run: run["plan"])
    ranged = f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"
    print(
        f"{partitions:>10}  {name:<13}{one['moves']:>9.0f}{one['bound']:>9.0f}  "
        f"{one['fewest']:.0f}..{one['most']:.0f}  {one['fewest_led']:.0f}..{one['most_led']:.0f}  {ranged:<22}"
        f"{one['read']:>6.2f}{one['plan']:>7.2f}{one['steps']:>7.2f}{min(run['cpu'] for run in runs):>7.2f}{max(run['megabytes'] for run in runs):>6.0f}  "
        f"{_generate(name, partitions, one['moves'])}",
        flush=True,
    )
    return statistics.median(seconds)


def _generate(name: str, partitions: int, moves: float) -> str:
    if (name, partitions) not in GENERATE:
        return "not recorded"
    theirs, milliseconds = GENERATE[name, partitions]
    return f"{theirs} moves, {theirs / moves:.1f} x ours, in {milliseconds} ms"


def _growth(name: str, medians: dict[tuple[str, int], float]) -> None:
    small, large = medians[name, 100_000], medians[name, 1_000_000]
    aims = ", ".join(
        f"{partitions}: {medians[name, partitions]:.2f} s, aim {aim:.0f} s {'met' if medians[name, partitions] < aim else 'MISSED'}"
        for partitions, aim in AIMS_SECONDS.items()
    )
    print(
        f"{name}: ten times the partitions take {large / small:.1f} times as long; {aims}; memory aim {AIM_MEGABYTES} MB"
    )


def _measured(folder: Path) -> dict[str, float]:
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.move", str(folder)], capture_output=True, check=True, text=True
    )
    figures: dict[str, float] = json.loads(run.stdout)
    return figures


def _run(folder: Path) -> dict[str, float]:
    """One run in this process: seconds of each part and the figures of the plan."""
    started, cpu_started = time.perf_counter(), time.process_time()
    snapshot = snapshot_file.read(folder).snapshot
    read = time.perf_counter()
    planned = plan(snapshot)
    made = time.perf_counter()
    in_steps(planned)
    return {
        "read": read - started,
        "plan": made - read,
        "steps": time.perf_counter() - made,
        "cpu": time.process_time() - cpu_started,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "moves": planned.moves,
        "bound": planned.lower_bound,
        "fewest": planned.after.replicas.fewest,
        "most": planned.after.replicas.most,
        "fewest_led": planned.after.leaders.fewest,
        "most_led": planned.after.leaders.most,
    }


if __name__ == "__main__":
    print(json.dumps(_run(Path(sys.argv[1]))))
