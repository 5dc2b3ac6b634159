"""What clients see while racks come and go: one librdkafka producer with acks=all, one consumer group."""

import threading
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final

from rackspan.errors import MissingRequirement

RECORD_BYTES: Final = 200
PAUSE_SECONDS: Final = 0.02
"""Between rounds of one record a partition: traffic enough to be seen, little enough for two cores."""

GIVE_UP_MS: Final = 5_000
"""How long the producer tries one record before it counts as refused."""

START_SECONDS: Final = 30.0
"""How long new topics may take to acknowledge their first record."""


def confluent_kafka() -> Any:
    """The client module. Errors: MissingRequirement, naming the extra."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError:
        raise MissingRequirement(
            "the demo's traffic needs confluent-kafka; install it with pip install 'rackspan[clients]'"
        ) from None
    return confluent_kafka


@dataclass(slots=True)
class Tally:
    """Records per topic, in the present phase: acknowledged by acks=all, refused or timed out, read by the group."""

    acknowledged: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    consumed: Counter[str] = field(default_factory=Counter)


class Traffic:
    """Produces and consumes in the background until it is left.

    Every acknowledged record is remembered by topic, partition and offset, so that at the end nothing acknowledged can
    be missing unnoticed.
    """

    def __init__(self, bootstrap_servers: str, partitions: dict[str, int]) -> None:
        self._client = confluent_kafka()
        self._servers = bootstrap_servers
        self._partitions = partitions
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._tally = Tally()
        self._ends: dict[tuple[str, int], int] = {}
        self.acknowledged = 0
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._produce, self._consume)]

    def __enter__(self) -> "Traffic":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """No more records; returns when those on their way are acknowledged or given up."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def phase(self) -> Tally:
        """What happened since the last call."""
        with self._lock:
            tally, self._tally = self._tally, Tally()
        return tally

    def wait_until_acknowledged(self) -> None:
        """Until every partition has acknowledged a record, as new topics take a moment to; the tally begins then."""
        wanted, until = sum(self._partitions.values()), time.monotonic() + START_SECONDS
        while len(self._ends) < wanted and time.monotonic() < until:
            time.sleep(PAUSE_SECONDS)
        self.phase()

    def missing(self) -> list[str]:
        """Acknowledged records that are no longer there: partitions whose log ends before the last one acknowledged."""
        consumer = self._client.Consumer({"bootstrap.servers": self._servers, "group.id": "rackspan-demo-check"})
        try:
            return [
                f"{topic}-{partition}: acknowledged up to {last}, log ends at {end}"
                for (topic, partition), last in sorted(self._ends.items())
                if (end := self._log_end(consumer, topic, partition)) <= last
            ]
        finally:
            consumer.close()

    def _log_end(self, consumer: Any, topic: str, partition: int) -> int:
        _, end = consumer.get_watermark_offsets(self._client.TopicPartition(topic, partition), timeout=20)
        return int(end)

    def _produce(self) -> None:
        producer = self._client.Producer(
            {
                "bootstrap.servers": self._servers,
                "acks": "all",
                "linger.ms": 5,
                "message.timeout.ms": GIVE_UP_MS,
                "log_level": 0,
                "error_cb": _unheard,
            }
        )
        while not self._stop.wait(PAUSE_SECONDS):
            for topic, partition in self._targets():
                with suppress(BufferError):
                    producer.produce(topic, b"x" * RECORD_BYTES, partition=partition, on_delivery=self._delivered)
            producer.poll(0)
        producer.flush(2 * GIVE_UP_MS / 1000)

    def _targets(self) -> Iterable[tuple[str, int]]:
        return [(topic, partition) for topic, count in self._partitions.items() for partition in range(count)]

    def _delivered(self, error: Any, message: Any) -> None:
        with self._lock:
            if error is not None:
                self._tally.refused[message.topic()] += 1
                return
            self._tally.acknowledged[message.topic()] += 1
            self.acknowledged += 1
            key = (message.topic(), message.partition())
            self._ends[key] = max(message.offset(), self._ends.get(key, -1))

    def _consume(self) -> None:
        consumer = self._client.Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "rackspan-demo",
                "auto.offset.reset": "earliest",
                "log_level": 0,
                "error_cb": _unheard,
            }
        )
        consumer.subscribe(sorted(self._partitions))
        while not self._stop.is_set():
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                with self._lock:
                    self._tally.consumed[message.topic()] += 1
        consumer.close()


def _unheard(_error: Any) -> None:
    """A broker that is down is the story, not news for the log."""
