"""One cluster in a process of its own: `python -m benchmarks._cluster_servers KIND BROKERS`.

Prints its bootstrap servers and runs until its input ends. Also the handle by which a benchmark holds one.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

EMBEDDED: Final = "rackspan"
MOCK: Final = "librdkafka's mock"
KAFKA: Final = "Kafka 4.1"


@contextmanager
def served(kind: str, brokers: int) -> Iterator[str]:
    """Bootstrap servers of a cluster that runs meanwhile."""
    command = [sys.executable, "-m", "benchmarks._cluster_servers", kind, str(brokers)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip()
    finally:
        server.communicate()


def _embedded(brokers: int) -> None:
    from rackspan.cluster import EmbeddedCluster

    with EmbeddedCluster(racks=3, brokers=brokers) as cluster:
        _serve(cluster.bootstrap_servers)


def _kafka(brokers: int) -> None:
    from rackspan.kafka_process import KafkaCluster

    with KafkaCluster(racks=("r1", "r2", "r3"), brokers=brokers) as cluster:
        _serve(cluster.bootstrap_servers)


def _mock(brokers: int) -> None:
    from confluent_kafka import Producer

    # The mock cluster lives in the client that asks for it; others find it by its brokers' addresses.
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
