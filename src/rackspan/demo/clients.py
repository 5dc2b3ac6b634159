"""The demo's clients: one librdkafka producer with acks=all, and one consumer group."""

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from types import TracebackType
from typing import Any, Final

from rackspan.ends import END_SECONDS, Say, closing, joined_within
from rackspan.errors import required_module

RECORD_BYTES: Final = 200
PAUSE_SECONDS: Final = 0.02
"""Between rounds of one record per partition: enough records to count, few enough for two cores."""

DELIVERY_TIMEOUT_MS: Final = 5_000
"""After it the producer drops a record, which counts as refused."""

FLUSH_SECONDS: Final = 2 * DELIVERY_TIMEOUT_MS / 1000

START_SECONDS: Final = 30.0
"""How long new topics may take to acknowledge their first record."""


def confluent_kafka() -> Any:
    """The client module. Errors: MissingRequirement, naming the extra."""
    client = required_module("confluent_kafka", "the demo's traffic needs it")
    import_module("confluent_kafka.admin")
    return client


def handles() -> Any:
    """The clients of that module whose destruction holds up nobody."""
    confluent_kafka()
    return import_module("rackspan.producers.handles")


@dataclass(slots=True)
class Tally:
    """Records per topic in one phase of the demo: acknowledged by acks=all, refused or timed out, consumed by the group."""

    acknowledged: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    consumed: Counter[str] = field(default_factory=Counter)


class DemoClients:
    """Produces and consumes in background threads, as a context manager.

    The last acknowledged offset of each partition is kept, so that a missing record is found at the end.
    """

    def __init__(self, bootstrap_servers: str, partitions: dict[str, int], report: Say) -> None:
        """`report` gets a line for what does not end."""
        self._client = confluent_kafka()
        self._report = report
        self._servers = bootstrap_servers
        self._partitions = partitions
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._tally = Tally()
        self._ends: dict[tuple[str, int], int] = {}
        self.acknowledged = 0
        self._producing = threading.Thread(target=self._produce, daemon=True)
        self._consuming = threading.Thread(target=self._consume, daemon=True)
        self._sent, self._reported = 0, 0

    def __enter__(self) -> "DemoClients":
        self._producing.start()
        self._consuming.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            self.stop()
        # After an error, such as Ctrl-C, nobody waits for what the daemon threads do.
        self._stop.set()

    def stop(self) -> None:
        """Stop producing. A second call does nothing. Returns when all records are acknowledged or refused, or END_SECONDS after the time for that."""
        if self._stop.is_set():
            return
        self._stop.set()
        flushed = FLUSH_SECONDS + END_SECONDS
        joined_within(
            "the demo's producer", self._producing, flushed, unacknowledged=lambda: self._unreported, say=self._report
        )
        joined_within("the demo's consumer", self._consuming, END_SECONDS, say=self._report)

    def take_tally(self) -> Tally:
        """The records since the last call."""
        with self._lock:
            tally, self._tally = self._tally, Tally()
        return tally

    def wait_until_acknowledged(self) -> None:
        """Wait until every partition has acknowledged a record. New topics need some time; the tally begins after it."""
        partitions, deadline = sum(self._partitions.values()), time.monotonic() + START_SECONDS
        while len(self._ends) < partitions and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)
        self.take_tally()

    def missing(self) -> list[str]:
        """Lost acknowledged records: a line for each partition whose log ends before its last acknowledged offset."""
        config = {"bootstrap.servers": self._servers, "group.id": "rackspan-demo-check", **_QUIET}
        with closing(handles().Consumer(config), say=self._report) as consumer:
            return [
                f"{topic}-{partition}: acknowledged up to {last}, log ends at {end}"
                for (topic, partition), last in sorted(self._ends.items())
                if (end := self._log_end(consumer, topic, partition)) <= last
            ]

    def _log_end(self, consumer: Any, topic: str, partition: int) -> int:
        _, end = consumer.get_watermark_offsets(self._client.TopicPartition(topic, partition), timeout=20)
        return int(end)

    def _produce(self) -> None:
        producer = handles().Producer(
            {
                "bootstrap.servers": self._servers,
                "acks": "all",
                "linger.ms": 5,
                "message.timeout.ms": DELIVERY_TIMEOUT_MS,
                **_QUIET,
            }
        )
        while not self._stop.wait(PAUSE_SECONDS):
            for topic, partition in self._targets():
                with suppress(BufferError):
                    producer.produce(topic, b"x" * RECORD_BYTES, partition=partition, on_delivery=self._delivered)
                    self._sent += 1
            producer.poll(0)
        producer.flush(FLUSH_SECONDS)

    @property
    def _unreported(self) -> int:
        """Records that were sent, and neither acknowledged nor refused."""
        return self._sent - self._reported

    def _targets(self) -> Iterable[tuple[str, int]]:
        return [(topic, partition) for topic, count in self._partitions.items() for partition in range(count)]

    def _delivered(self, error: Any, message: Any) -> None:
        with self._lock:
            self._reported += 1
            if error is not None:
                self._tally.refused[message.topic()] += 1
                return
            self._tally.acknowledged[message.topic()] += 1
            self.acknowledged += 1
            key = (message.topic(), message.partition())
            self._ends[key] = max(message.offset(), self._ends.get(key, -1))

    def _consume(self) -> None:
        consumer = handles().Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "rackspan-demo",
                "auto.offset.reset": "earliest",
                **_QUIET,
            }
        )
        consumer.subscribe(sorted(self._partitions))
        while not self._stop.is_set():
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                with self._lock:
                    self._tally.consumed[message.topic()] += 1
        consumer.close()


_QUIET: Final[Mapping[str, Any]] = {"log_level": 0, "error_cb": lambda _: None}
"""A broker that is down is part of the demo and not logged."""
