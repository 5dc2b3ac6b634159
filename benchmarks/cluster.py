"""The embedded cluster beside librdkafka's own mock cluster and real Kafka: start, throughput, a large listing.

Each cluster and each client is a process of its own; runs go in turns, and ratios are of runs made one after the other,
so that what else the machine does weighs on all. The client is librdkafka from Python, which makes or takes one record
at a time: it is the bound of the fastest, so the processor time of the server is given as well.
"""

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from benchmarks import _cluster_listing, _produce_with_value_1, _pytest_start
from benchmarks._cluster_clients import run_client
from benchmarks._cluster_servers import EMBEDDED, KAFKA, KAFKA_FLAGS, MOCK, Server, served
from benchmarks._measure import RUNS, Figures, machine, with_bytecode

BROKERS: Final = 3
MEGABYTES: Final = 100
READ_TOPICS: Final = tuple(f"read-{number}" for number in range(6))
"""Of four partitions each: librdkafka's mock keeps 5 MB of a partition."""

KINDS: Final = (EMBEDDED, MOCK, KAFKA)


@dataclass(frozen=True, slots=True)
class Work:
    """What a client does, and with how many megabytes. The mock does not replicate, whatever the factor."""

    name: str
    verb: str
    megabytes: int
    topics: tuple[str, ...]


WORKS: Final = (
    Work("produce, replication factor 1", "produce", MEGABYTES, ("written-1",)),
    Work("produce, replication factor 3", "produce", MEGABYTES, ("written-3",)),
    # Whole megabytes of every partition: what stands there and is read is the same.
    Work("consume", "consume", MEGABYTES - MEGABYTES % (len(READ_TOPICS) * 4), READ_TOPICS),
)


@dataclass(frozen=True, slots=True)
class Run:
    """One client's work: how fast, and what it took the server's processors."""

    megabytes_per_second: float
    server_ms_per_megabyte: float


def main() -> None:
    print(machine())
    _print_start()
    _print_throughput()
    _cluster_listing.main()
    _produce_with_value_1.main()
    _pytest_start.main()


def _print_start() -> None:
    print("\nStart to first produce, one broker (with the import of rackspan; first cluster; a further one)")
    print("Kafka with the JVM flags that start it fastest: the fast compiler alone, the serial collector, 256 MB")
    with tempfile.TemporaryDirectory() as bytecode:
        for kind in (EMBEDDED, KAFKA):
            # The first compiles what an installed package has compiled.
            runs = [_first_produces(kind, bytecode) for _ in range((RUNS if kind == EMBEDDED else 2) + 1)][1:]
            _print_starts(kind, runs)


def _print_starts(kind: str, runs: Sequence[Sequence[float]]) -> None:
    figures = {
        "cold, import included": [imported + first for _, imported, first, *_ in runs],
        "its processor time": [spent for spent, *_ in runs if kind == EMBEDDED],
        "first cluster": [first for _, _, first, *_ in runs],
        "warm": [seconds for _, _, _, *more in runs for seconds in more],
    }
    for name, seconds in figures.items():
        if seconds:
            print(f"  {kind:<18} {name:<24} {Figures(tuple(one * 1000 for one in seconds)).text('ms', 0)}")


def _first_produces(kind: str, bytecode: str) -> list[float]:
    command = [sys.executable, "-m", "benchmarks._cluster_first_produce", kind]
    environment = with_bytecode(bytecode)
    output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    return [float(word) for word in output.split()]


def _print_throughput() -> None:
    print(f"\nRecords of 1 KB, acks=all, {BROKERS} brokers")
    print(
        f"Kafka: a JVM a broker, {' '.join(KAFKA_FLAGS)}; num.network.threads and num.io.threads as by default (3 and 8)"
    )
    with ExitStack() as clusters:
        servers = {kind: clusters.enter_context(served(kind, BROKERS)) for kind in KINDS}
        for server in servers.values():
            _prepare(server)
        for work in WORKS:
            _print_work(work, _in_turns(servers, work))


def _prepare(server: Server) -> None:
    if server.kind != MOCK:  # which makes topics when they are first requested, and in no other way
        run_client(server.bootstrap, "create", 1, "written-1", *READ_TOPICS)
        run_client(server.bootstrap, "create", BROKERS, "written-3")
    run_client(server.bootstrap, "fill", MEGABYTES, *READ_TOPICS)


def _in_turns(servers: Mapping[str, Server], work: Work) -> Mapping[str, Sequence[Run]]:
    """The first round is a warm-up."""
    rounds = [{kind: _run(server, work) for kind, server in servers.items()} for _ in range(RUNS + 1)]
    return {kind: [one[kind] for one in rounds[1:]] for kind in servers}


def _run(server: Server, work: Work) -> Run:
    before = server.processor_seconds()
    seconds = run_client(server.bootstrap, work.verb, work.megabytes, *work.topics)
    spent = server.processor_seconds() - before
    return Run(work.megabytes / seconds, 1000 * spent / work.megabytes)


def _print_work(work: Work, runs: Mapping[str, Sequence[Run]]) -> None:
    print(f"\n{work.name}, {work.megabytes} MB")
    speeds = {kind: Figures(tuple(run.megabytes_per_second for run in runs[kind])) for kind in runs}
    for kind, speed in speeds.items():
        spent = Figures(tuple(run.server_ms_per_megabyte for run in runs[kind]))
        ratio = "" if kind == EMBEDDED else f"   rackspan is {speeds[EMBEDDED].over(speed).text('times as fast')}"
        print(f"  {kind:<18} {speed.text('MB/s', 0):<26} server {spent.text('ms a MB')}{ratio}")


if __name__ == "__main__":
    main()
