"""librdkafka at work against any cluster, in a process of its own: prints seconds of the work alone.

python -m benchmarks._cluster_clients BOOTSTRAP create RF TOPIC...
python -m benchmarks._cluster_clients BOOTSTRAP produce MEGABYTES TOPIC
python -m benchmarks._cluster_clients BOOTSTRAP fill MEGABYTES TOPIC...
python -m benchmarks._cluster_clients BOOTSTRAP consume MEGABYTES TOPIC...
python -m benchmarks._cluster_clients BOOTSTRAP latency SECONDS TOPIC RATE QUANTILE...

`latency` prints quantiles of the time to an acknowledgement, in seconds, from the time at which a record was due: RATE of them a second,
without linger, however late those before are.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

RECORD: Final = bytes(range(250)) * 4
PER_MEGABYTE: Final = 1_000
"""Records of 1,000 bytes, so that a megabyte is 10^6 bytes of values."""
PARTITIONS: Final = 4
"""A topic's, everywhere: it is what librdkafka's mock gives every topic."""

SECONDS: Final = 120.0


def run_client(bootstrap: str, work: str, *words: object) -> float:
    """Seconds, as the client measured them."""
    command = [sys.executable, "-m", "benchmarks._cluster_clients", bootstrap, work, *map(str, words)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS * 2).stdout)


def create(bootstrap: str, replication_factor: str, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = [NewTopic(topic, PARTITIONS, int(replication_factor)) for topic in topics]
    for created in admin.create_topics(new).values():
        created.result(SECONDS)


def produce(bootstrap: str, megabytes: str, topic: str) -> None:
    """In turns to all partitions, until the last record is acknowledged."""
    partitions = cycle(range(PARTITIONS))
    _produce(bootstrap, ((topic, next(partitions)) for _ in range(int(megabytes) * PER_MEGABYTE)))


def fill(bootstrap: str, megabytes: str, *topics: str) -> None:
    """One partition after another, so that batches are as large as they get."""
    places = [(topic, partition) for topic in topics for partition in range(PARTITIONS)]
    each = int(megabytes) * PER_MEGABYTE // len(places)
    _produce(bootstrap, (place for place in places for _ in range(each)))


def _produce(bootstrap: str, places: Iterator[tuple[str, int]]) -> None:
    troubles: list[object] = []
    settings = {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 5, "delivery.report.only.error": True}
    producer = Producer({**settings, "on_delivery": lambda error, _message: troubles.append(error)})
    for topic, partition in places:
        while not _accepted(producer, topic, partition):
            producer.poll(0.01)
    left = producer.flush(SECONDS)
    assert not troubles, troubles[:3]
    assert left == 0, left


def _accepted(producer: Producer, topic: str, partition: int) -> bool:
    """False where librdkafka's own queue is full."""
    try:
        producer.produce(topic, RECORD, partition=partition)
    except BufferError:
        return False
    return True


def consume(bootstrap: str, megabytes: str, *topics: str) -> None:
    """Everything from the beginning."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "bench", "auto.offset.reset": "earliest"}
    # A partition whose queue is full is fetched again after so long: by default after a second, which is longer than all else.
    consumer = Consumer({**settings, "fetch.queue.backoff.ms": 10})
    consumer.assign([TopicPartition(topic, partition, 0) for topic in topics for partition in range(PARTITIONS)])
    wanted, until = int(megabytes) * PER_MEGABYTE, time.monotonic() + SECONDS
    while wanted > 0:
        assert time.monotonic() < until, wanted
        wanted -= len(_without_errors(consumer.consume(10_000, 0.2)))
    consumer.close()


def latency(bootstrap: str, seconds: str, topic: str, rate: str, *quantiles: str) -> str:
    """The first second warms up."""
    waited: list[float] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, "enable.idempotence": True})
    for partition in range(PARTITIONS):
        producer.produce(topic, RECORD, partition=partition)
    assert producer.flush(SECONDS) == 0
    per_second, begin = int(rate), time.perf_counter()
    for number in range(int(seconds) * per_second):
        due = begin + number / per_second
        while (left := due - time.perf_counter()) > 0:
            producer.poll(left)
        producer.produce(topic, RECORD, partition=number % PARTITIONS, on_delivery=partial(_acknowledged, waited, due))
    assert producer.flush(SECONDS) == 0
    ordered = sorted(waited[per_second:])
    return " ".join(str(ordered[int(float(quantile) * len(ordered))]) for quantile in quantiles)


def _acknowledged(waited: list[float], due: float, error: object, _message: object) -> None:
    assert error is None, error
    waited.append(time.perf_counter() - due)


def _without_errors(messages: Sequence[Any]) -> Sequence[Any]:
    errors = [message.error() for message in messages if message.error() is not None]
    assert not errors, errors[:3]
    return messages


WORK: Final[Mapping[str, Callable[..., str | None]]] = {
    "create": create,
    "produce": produce,
    "fill": fill,
    "consume": consume,
    "latency": latency,
}


def main() -> None:
    bootstrap, work, *words = sys.argv[1:]
    started = time.perf_counter()
    measured = WORK[work](bootstrap, *words)
    print(time.perf_counter() - started if measured is None else measured)


if __name__ == "__main__":
    main()
