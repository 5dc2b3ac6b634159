"""One cluster in a process of its own: `python -m benchmarks._cluster_servers KIND BROKERS`.

Prints its bootstrap servers and runs until its input ends. Also the handle by which a benchmark holds one.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rackspan.kafka_process import DEFAULT_VERSION
from rackspan.testing import READS_IN_RACK

EMBEDDED: Final = "rackspan"
MOCK: Final = "librdkafka's mock"
KAFKA: Final = f"Kafka {DEFAULT_VERSION}"

KAFKA_FLAGS: Final = (
    *("-Xms1g", "-Xmx1g", "-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:MaxInlineLevel=15"),
)
"""What kafka-server-start gives a broker. rackspan's own flags, for tests, compile and collect less; these undo them."""


@dataclass(frozen=True, slots=True)
class Server:
    """A cluster that runs. `process` is ours; the brokers of real Kafka are its children."""

    kind: str
    bootstrap: str
    process: int

    def processor_seconds(self) -> float:
        """Of the process and all below it, so far."""
        return sum(_ticks(pid) for pid in _with_children(self.process)) / os.sysconf("SC_CLK_TCK")


def _with_children(process: int) -> Iterator[int]:
    yield process
    for task in Path(f"/proc/{process}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from _with_children(int(child))


def _ticks(process: int) -> int:
    """User and system time, fields 14 and 15 of proc(5)'s stat; the name before them may hold anything but ')'."""
    after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(after_name[11]) + int(after_name[12])


@contextmanager
def served(kind: str, brokers: int) -> Iterator[Server]:
    """A cluster that runs meanwhile."""
    command = [sys.executable, "-m", "benchmarks._cluster_servers", kind, str(brokers)]
    environment = os.environ | ({"_JAVA_OPTIONS": " ".join(KAFKA_FLAGS)} if kind == KAFKA else {})
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert server.stdout is not None
    try:
        yield Server(kind, server.stdout.readline().strip(), server.pid)
    finally:
        server.communicate()


def _embedded(brokers: int) -> None:
    from rackspan.cluster import EmbeddedCluster

    with EmbeddedCluster(racks=3, brokers=brokers, config=READS_IN_RACK) as cluster:
        _serve(cluster.bootstrap_servers)


def _kafka(brokers: int) -> None:
    from rackspan.kafka_process import KafkaCluster

    with KafkaCluster(racks=("r1", "r2", "r3"), brokers=brokers, config=READS_IN_RACK) as cluster:
        _serve(cluster.bootstrap_servers)


def _mock(brokers: int) -> None:
    from confluent_kafka import Producer

    # The mock cluster lives in the client that creates it; others find it by its brokers' addresses.
    owner = Producer({"test.mock.num.brokers": brokers, "bootstrap.servers": "ignored", "log_level": 0})
    known = owner.list_topics(timeout=10).brokers.values()
    _serve(",".join(f"{one.host}:{one.port}" for one in known))


def _serve(bootstrap_servers: str) -> None:
    print(bootstrap_servers, flush=True)
    sys.stdin.read()


def main() -> None:
    kind, brokers = sys.argv[1:]
    {EMBEDDED: _embedded, MOCK: _mock, KAFKA: _kafka}[kind](int(brokers))


if __name__ == "__main__":
    main()
