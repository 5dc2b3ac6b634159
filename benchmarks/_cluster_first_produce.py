"""From nothing to the first acknowledged record, in a process of its own: `python -m benchmarks._cluster_first_produce KIND`.

Prints seconds: of the processor until the first record is acknowledged, the import's included; of the import; of a first
cluster; and of further ones in the same process. A cluster is measured from
its constructor to the acknowledgement, by a librdkafka producer that is imported beforehand and made meanwhile.
"""

import sys
import time
from contextlib import AbstractContextManager
from typing import Any, Final

from benchmarks._cluster_servers import EMBEDDED, KAFKA

TOPIC: Final = "first"
_MORE: Final = {EMBEDDED: 3, KAFKA: 0}


def main() -> None:
    (kind,) = sys.argv[1:]
    started, spent = time.perf_counter(), time.process_time()
    make = {EMBEDDED: _embedded, KAFKA: _kafka}[kind]()
    imported = time.perf_counter() - started
    first = _first_produce(make())
    print(time.process_time() - spent, imported, first, *(_first_produce(make()) for _ in range(_MORE[kind])))


def _embedded() -> Any:
    from rackspan.cluster import EmbeddedCluster

    return lambda: EmbeddedCluster(racks=1, brokers=1)


def _kafka() -> Any:
    from rackspan.kafka_process import KafkaCluster

    return lambda: KafkaCluster(racks=("r1",), brokers=1, config={"auto.create.topics.enable": "true"})


def _first_produce(cluster: AbstractContextManager[Any]) -> float:
    from confluent_kafka import Producer

    started = time.perf_counter()
    with cluster as running:
        settings = {"bootstrap.servers": running.bootstrap_servers, "acks": "all", "linger.ms": 0, "log_level": 0}
        acknowledged: list[Any] = []
        producer = Producer({**settings, "on_delivery": lambda error, _: acknowledged.append(error)})
        producer.produce(TOPIC, b"hello")
        producer.flush(60)
        seconds = time.perf_counter() - started
    assert acknowledged == [None], acknowledged
    return seconds


if __name__ == "__main__":
    main()
