"""`make bench-move`: the least movement, end to end from a Parquet snapshot, beside what Kafka's --generate moves.

Each case runs in a process of its own, so that its peak memory is its own: read the folder, plan, order the steps.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from benchmarks._measure import Figures, machine
from rackspan.errors import MissingRequirement
from rackspan.model import ClusterSnapshot
from rackspan.plan import order_steps
from rackspan.reassign import ReassignmentRequest, plan
from rackspan.sources import snapshot_file
from tests.compat.reassign_tool import generated, moves
from tests.reassign.instances import NAMES, instance, resized

RUNS = 3

AIMS_SECONDS = {100_000: 3.0, 1_000_000: 45.0}
RESIZED = (1.5, 2.0, 4.0, 0.5)
"""Brokers afterwards, as a multiple of those before."""

AIM_MEGABYTES = 6_000


def main() -> None:
    print(machine())
    print(
        f"seconds: median (least to most) of {RUNS} runs, read + plan + steps; cpu: processor seconds of the best run, which a"
    )
    print(
        "busy machine lengthens less; MB: peak of the process. Kafka's milliseconds are its class alone, warm, without reading."
    )
    print(f"{'partitions':>10}  {'instance':<13}{'moves':>9}{'bound':>9}  {'replicas':>11} {'leaders':>10}  ", end="")
    print(f"{'seconds':<26}{'read':>6}{'plan':>7}{'steps':>7}{'cpu':>7}{'MB':>6}  ", end="")
    print("kafka-reassign-partitions --generate: moves, replicas, leaders")
    medians: dict[tuple[str, int], float] = {}
    for partitions in (10_000, 100_000, 1_000_000):
        for name in NAMES:
            medians[name, partitions] = _case(name, partitions)
    print("plan --balance on an even cluster whose brokers become so many times as many; fewer are drained:")
    for partitions in (10_000, 100_000, 1_000_000):
        for ratio in RESIZED:
            snapshot, drained = resized(partitions, ratio)
            _measured_case(f"x {ratio:g}", snapshot, partitions, ("--balance", *map(str, drained)))
    for name in NAMES:
        _growth(name, medians)


def _case(name: str, partitions: int) -> float:
    return _measured_case(name, instance(name, partitions), partitions, ())


def _measured_case(name: str, snapshot: ClusterSnapshot, partitions: int, request: tuple[str, ...]) -> float:
    """`request`: --balance, then the brokers to drain."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "snapshot"
        snapshot_file.write(snapshot, folder)
        drained = {int(broker) for broker in request[1:]}
        staying = tuple(broker for broker in snapshot.brokers if broker.id not in drained)
        theirs = _generate(replace(snapshot, brokers=staying), Path(scratch))
        del snapshot
        runs = [_measured(folder, request) for _ in range(RUNS)]
    seconds = Figures(tuple(run["read"] + run["plan"] + run["steps"] for run in runs))
    one = min(runs, key=lambda run: run["plan"])
    print(
        f"{partitions:>10}  {name:<13}{one['moves']:>9.0f}{one['bound']:>9.0f}  "
        f"{one['fewest']:.0f}..{one['most']:.0f}  {one['fewest_led']:.0f}..{one['most_led']:.0f}  {seconds.text('s'):<26}"
        f"{one['read']:>6.2f}{one['plan']:>7.2f}{one['steps']:>7.2f}{min(run['cpu'] for run in runs):>7.2f}{max(run['megabytes'] for run in runs):>6.0f}  "
        f"{theirs}",
        flush=True,
    )
    return seconds.median


def _generate(snapshot: ClusterSnapshot, scratch: Path) -> str:
    """What Kafka's own class proposes for the same cluster."""
    try:
        proposed, milliseconds = generated(snapshot, scratch)
    except MissingRequirement as missing:
        return f"not run: {missing}"
    brokers = [int(broker.id) for broker in snapshot.brokers]
    held = Counter(broker for replicas in proposed.values() for broker in replicas)
    led = Counter(replicas[0] for replicas in proposed.values())
    spreads = [f"{min(count[b] for b in brokers)}..{max(count[b] for b in brokers)}" for count in (held, led)]
    return f"{moves(snapshot, proposed)} moves, {', '.join(spreads)}, {milliseconds} ms"


def _growth(name: str, medians: dict[tuple[str, int], float]) -> None:
    small, large = medians[name, 100_000], medians[name, 1_000_000]
    aims = ", ".join(
        f"{partitions}: {medians[name, partitions]:.2f} s, aim {aim:.0f} s {'met' if medians[name, partitions] < aim else 'MISSED'}"
        for partitions, aim in AIMS_SECONDS.items()
    )
    print(
        f"{name}: ten times the partitions take {large / small:.1f} times as long; {aims}; memory aim {AIM_MEGABYTES} MB"
    )


def _measured(folder: Path, request: tuple[str, ...]) -> dict[str, float]:
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.move", str(folder), *request], capture_output=True, check=True, text=True
    )
    figures: dict[str, float] = json.loads(run.stdout)
    return figures


def _run(folder: Path, *request: str) -> dict[str, float]:
    """One run in this process: seconds of each part and the figures of the plan."""
    started, cpu_started = time.perf_counter(), time.process_time()
    snapshot = snapshot_file.read(folder).snapshot
    read = time.perf_counter()
    drain = frozenset(map(int, request[1:]))
    planned = plan(snapshot, request=ReassignmentRequest(balance=bool(request), drain=drain, replace_missing=True))
    made = time.perf_counter()
    cost = planned.cost
    assert cost is not None
    order_steps(snapshot, planned)
    return {
        "read": read - started,
        "plan": made - read,
        "steps": time.perf_counter() - made,
        "cpu": time.process_time() - cpu_started,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "moves": planned.moves,
        "bound": cost.lower_bound,
        "fewest": cost.after.replicas.fewest,
        "most": cost.after.replicas.most,
        "fewest_led": cost.after.leaders.fewest,
        "most_led": cost.after.leaders.most,
    }


if __name__ == "__main__":
    print(json.dumps(_run(Path(sys.argv[1]), *sys.argv[2:])))
