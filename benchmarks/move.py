"""`make bench-move`: the least movement, end to end from a Parquet snapshot, beside what others move for the same.

Others are Kafka's --generate, and a rebuild by hand: every topic placed anew on the brokers that stay, as even as it can be,
by our own placer, which is what topicmappr's --force-rebuild does. Each case runs in a process of its own, so that its peak
memory is its own: read the folder, plan, order the steps. Sizes in PARTITIONS come with clusters of their own; growth is
measured on one cluster. `python -m benchmarks.move PARTITIONS...` measures some sizes only.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np

from benchmarks._measure import Figures, machine
from rackspan.errors import MissingRequirement
from rackspan.model import Broker, ClusterSnapshot
from rackspan.placement import BalancedReplicaPlacer, usable
from rackspan.plan import order_steps
from rackspan.reassign import ReassignmentRequest, plan
from rackspan.sources import snapshot_file
from tests.compat.reassign_tool import JVM_FLAGS, generated, moves
from tests.kafka_versions import KAFKA
from tests.reassign.instances import NAMES, SIZES, instance, resized

RUNS = 3
PARTITIONS = (10_000, 100_000, 1_000_000)
GROWTH = (100_000, 1_000_000)

AIMS_SECONDS = {100_000: 3.0, 1_000_000: 45.0}
RESIZED = (1.5, 2.0, 4.0, 0.5)
"""Brokers afterwards, as a multiple of those before."""

AIM_MEGABYTES = 6_000


def main(sizes: Sequence[int] = PARTITIONS) -> None:
    print(machine())
    print(f"one thread; Kafka {KAFKA}, java {' '.join(JVM_FLAGS)}, the default collector's threads besides")
    print(
        f"seconds: median (least to most) of {RUNS} runs, read + plan + steps; cpu: processor seconds of the best run, which a"
    )
    print(
        "busy machine lengthens less; MB: peak of the process. Kafka's milliseconds are its class alone, warm, without reading."
    )
    print(f"{'partitions':>10}  {'instance':<13}{'moves':>9}{'bound':>9}  {'replicas':>11} {'leaders':>10}  ", end="")
    print(f"{'seconds':<26}{'read':>6}{'plan':>7}{'steps':>7}{'cpu':>7}{'MB':>6}  ", end="")
    print("kafka-reassign-partitions --generate: moves, replicas, leaders; rebuild by hand: the same")
    medians: dict[tuple[str, int], float] = {}
    for partitions in sizes:
        for name in NAMES:
            medians[name, partitions] = _case(name, partitions)
    print("plan --balance on an even cluster whose brokers become so many times as many; fewer are drained:")
    for partitions in sizes:
        for ratio in RESIZED:
            snapshot, drained = resized(partitions, ratio)
            _measured_case(f"x {ratio:g}", snapshot, partitions, ("--balance", *map(str, drained)))
    if set(sizes) >= set(GROWTH):
        _print_growth(medians)


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
        rebuilt = _rebuilt(snapshot, staying)
        del snapshot
        runs = [_measured(folder, request) for _ in range(RUNS)]
    seconds = Figures(tuple(run["read"] + run["plan"] + run["steps"] for run in runs))
    one = min(runs, key=lambda run: run["plan"])
    print(
        f"{partitions:>10}  {name:<13}{one['moves']:>9.0f}{one['bound']:>9.0f}  "
        f"{one['fewest']:.0f}..{one['most']:.0f}  {one['fewest_led']:.0f}..{one['most_led']:.0f}  {seconds.text('s'):<26}"
        f"{one['read']:>6.2f}{one['plan']:>7.2f}{one['steps']:>7.2f}{min(run['cpu'] for run in runs):>7.2f}{max(run['megabytes'] for run in runs):>6.0f}  "
        f"{theirs}; {rebuilt}",
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


def _rebuilt(snapshot: ClusterSnapshot, staying: Sequence[Broker]) -> str:
    """What placing everything anew on the brokers that stay moves, and how level it is."""
    placer, current = BalancedReplicaPlacer(Random(1)), snapshot.partitions.replicas
    placed = placer.place(0, len(current), current.shape[1], usable(staying)).replicas
    copied = int((placed[:, :, None] != current[:, None, :]).all(axis=2).sum())
    ids = [int(broker.id) for broker in staying]
    counts = [np.bincount(some.ravel(), minlength=max(ids) + 1)[ids] for some in (placed, placed[:, 0])]
    return f"{copied} moves, {', '.join(f'{held.min()}..{held.max()}' for held in counts)}"


def _print_growth(medians: Mapping[tuple[str, int], float]) -> None:
    """Ten times the partitions on the cluster of the smaller size; the larger size of the table has more brokers."""
    small, large = GROWTH
    brokers, racks = SIZES[small]
    print(f"{small:,} and {large:,} partitions, both on {brokers} brokers in {racks} racks:")
    for name in NAMES:
        median = _measured_case(name, instance(name, large, SIZES[small]), large, ())
        print(f"{name}: ten times the partitions take {median / medians[name, small]:.1f} times as long")
    for name in NAMES:
        aims = ", ".join(
            f"{partitions}: {medians[name, partitions]:.2f} s, aim {aim:.0f} s {'met' if medians[name, partitions] < aim else 'MISSED'}"
            for partitions, aim in AIMS_SECONDS.items()
        )
        print(f"{name}: {aims}; memory aim {AIM_MEGABYTES} MB")


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
    if all(word.isdigit() for word in sys.argv[1:]):
        main([int(word) for word in sys.argv[1:]] or PARTITIONS)
    else:
        print(json.dumps(_run(Path(sys.argv[1]), *sys.argv[2:])))
