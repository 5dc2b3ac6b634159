"""`make bench-streams`: task assignment beside Kafka's own classes, at sizes they finish and at sizes they do not.

One argument: the seconds Kafka's Java may take for the runs of one problem (default 60), after which "not finished" stands.
Times are processor time, so that other work on the machine does not count; of the JVM only the thread that assigns. Both
sides run the same problem again and again, in one process each; the ratio is of warm runs.
"""

import json
import os
import resource
import statistics
import sys
import time
from dataclasses import dataclass
from typing import Any, Final

from benchmarks._streams_problems import Document, document
from rackspan.streams import assign_problem
from rackspan.streams.assignment import AssignmentDocument
from rackspan.streams.formats import from_document
from tests.compat import ivy
from tests.compat.streams_oracle import jvm_flags, request, run_requests

LIMIT_SECONDS: Final = 60
REPEATS: Final = 5
KAFKA_RUNS: Final = {120: 40, 300: 8, 600: 2}
"""Runs of one problem in one JVM, by the most tasks: as warm as our median of five; one run above, which takes minutes."""

JVM_START_SECONDS: Final = 15
"""Compiling the harness and reading the problem do not count against Kafka."""

BESIDE_KAFKA: Final = (
    (60, 10, "min_traffic"),
    (60, 10, "balance_subtopology"),
    (600, 60, "min_traffic"),
    (600, 60, "balance_subtopology"),
    (1000, 100, "min_traffic"),
)
GROWTH: Final = {
    "tasks": [{"tasks": count, "clients": 100} for count in (1_000, 4_000, 16_000, 64_000)],
    "clients": [{"tasks": 16_000, "clients": count} for count in (50, 200, 800)],
    "racks": [{"tasks": 16_000, "clients": 200, "racks": count} for count in (2, 3, 6, 12)],
    "source partitions a task": [{"tasks": 16_000, "clients": 200, "sources": count} for count in (1, 3, 6)],
}


def main(limit_seconds: int = LIMIT_SECONDS) -> None:
    print(
        f"machine: {os.cpu_count()} cores, {_memory_gib():.0f} GiB; processor time, median of {REPEATS} runs (least to most)"
    )
    print("\nBeside Kafka Streams 4.1.0, optimisation alone (both stateful and stateless tasks)")
    print(f"one thread each; java {' '.join(jvm_flags())}")
    _beside_kafka(limit_seconds)
    print("\nA whole fleet, from the problem in memory to a proven assignment")
    _fleet(100_000, 1_000)
    print("\nGrowth, from the problem in memory to a proven assignment")
    _growth()


def _beside_kafka(limit_seconds: int) -> None:
    _row("tasks x clients", "strategy", "cost", "rackspan", "Kafka, first run", "Kafka, warm", "ratio of warm runs")
    for tasks, clients, strategy in BESIDE_KAFKA:
        group = _under(document(tasks, clients), strategy)
        ours, seconds = _ours(group)
        kafka = _kafka(tasks, group, limit_seconds)
        cost = f"{ours['cost']['stateful']} + {ours['cost']['stateless']}"
        if kafka is None:
            # No ratio: on a busy machine the limit, by the clock, says little of the processor time it took.
            _row(f"{tasks} x {clients}", strategy, cost, _spread(seconds), f"not finished in {limit_seconds} s", "", "")
            continue
        if kafka.cost != ours["cost"]:
            sys.exit(f"costs differ at {tasks} x {clients}, {strategy}: {ours['cost']}, Kafka {kafka.cost}")
        _row(
            f"{tasks} x {clients}",
            strategy,
            f"{cost}, equal",
            _spread(seconds),
            f"{kafka.cold:.3f} s",
            f"{kafka.warm:.4f} s ({len(kafka.seconds)} runs)",
            f"{kafka.warm / statistics.median(seconds):,.0f}",
        )


def _fleet(tasks: int, clients: int) -> None:
    _row("tasks x clients", "strategy", "cost", "rackspan", "most memory")
    group = document(tasks, clients)
    for strategy in ("min_traffic", "balance_subtopology"):
        ours, seconds = _ours(_under(group, strategy))
        cost = f"{ours['cost']['stateful']} + {ours['cost']['stateless']}"
        _row(
            f"{tasks} x {clients}",
            strategy,
            cost,
            _spread(seconds),
            f"{_peak_mib():.0f} MiB with Python and the problem",
        )


def _growth() -> None:
    _row("grows", "at", "min_traffic", "balance_subtopology")
    for what, sizes in GROWTH.items():
        for size in sizes:
            group = document(**size)
            spent = [_spread(_ours(_under(group, strategy))[1]) for strategy in ("min_traffic", "balance_subtopology")]
            _row(what, ", ".join(f"{value:,} {key}" for key, value in size.items()), *spent)


def _ours(group: Document) -> tuple[AssignmentDocument, list[float]]:
    """The assignment, and the processor seconds each of a few runs took."""
    problem = from_document(group)
    assignments = [assign_problem(problem, "optimize", clock=time.process_time) for _ in range(REPEATS)]
    return assignments[-1], sorted(assignment["seconds"] for assignment in assignments)


@dataclass(frozen=True, slots=True)
class KafkaRuns:
    """Kafka's runs of one problem in one JVM: its cost, and the processor seconds of the assigning thread, run by run."""

    cost: Any
    seconds: tuple[float, ...]

    @property
    def cold(self) -> float:
        """The first run, as a rebalance of an application that has just started meets it."""
        return self.seconds[0]

    @property
    def warm(self) -> float:
        """The median of the later half of the runs; of a single run, which compiles as it goes, that run."""
        return statistics.median(self.seconds[len(self.seconds) // 2 :])


def _kafka(tasks: int, group: Document, limit_seconds: int) -> KafkaRuns | None:
    """Kafka's assignment; None where the first run did not end in the time limit, which is for all runs together."""
    if ivy.java() is None:
        sys.exit(
            "this benchmark runs Kafka's Java beside ours; install a JDK 17 or newer, such as openjdk-17-jre-headless"
        )
    runs = next((runs for most, runs in KAFKA_RUNS.items() if tasks <= most), 1)
    assignments = run_requests([request("active", group)] * runs, limit_seconds + JVM_START_SECONDS)
    if assignments and "error" in assignments[0]:
        sys.exit(f"Kafka refused the problem: {json.dumps(assignments[0])}")
    seconds = tuple(assignment["cpu_ms"] / 1000 for assignment in assignments)
    return KafkaRuns(assignments[0]["cost"], seconds) if seconds and seconds[0] <= limit_seconds else None


def _under(group: Document, strategy: str) -> Document:
    return {**group, "config": {**group["config"], "strategy": strategy}}


def _spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.3f} s ({seconds[0]:.3f} to {seconds[-1]:.3f})"


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _row(*cells: str) -> None:
    print(" | ".join(cells), flush=True)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
