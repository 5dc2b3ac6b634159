"""Idempotent producers that write until they are stopped, and what was acknowledged to them."""

import threading
import time
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Producer

from tests.waiting import WITHIN_SECONDS

PRODUCER: Final = {"enable.idempotence": True, "delivery.timeout.ms": 120_000, "log_level": 0}


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """One record: when it was sent, and when it was acknowledged."""

    producer: int
    number: int
    sent_at: float
    acknowledged_at: float


class Load:
    """Each producer has a thread and one partition, and sends a record `producer:number` every `pause_seconds` until `stop`."""

    def __init__(self, servers: str, topic: str, *, producers: int, partitions: int, pause_seconds: float) -> None:
        self._servers = servers
        self._topic = topic
        self._partitions = partitions
        self._pause_seconds = pause_seconds
        self._stopped = threading.Event()
        self.acknowledged: list[Acknowledgement] = []
        self.failed = 0
        self._threads = [threading.Thread(target=self._produce, args=(one,)) for one in range(producers)]
        for thread in self._threads:
            thread.start()

    def _produce(self, producer: int) -> None:
        # No more than its requests in flight: threads of librdkafka 2.16 that hold back a record for the sixth use a whole core.
        settings = {"linger.ms": 2, "queue.buffering.max.messages": 4}
        client = Producer({"bootstrap.servers": self._servers, **PRODUCER, **settings})
        number = 0
        while not self._stopped.is_set():
            try:
                self.send(client, producer, number)
                number += 1
            except BufferError:
                client.poll(0.01)
            client.poll(0)
            time.sleep(self._pause_seconds)
        client.flush(WITHIN_SECONDS)

    def send(self, client: Producer, producer: int, number: int) -> None:
        """Errors: BufferError where the client's queue is full."""
        sent_at = time.monotonic()

        def delivered(error: object, _message: object) -> None:
            if error is None:
                self.acknowledged.append(Acknowledgement(producer, number, sent_at, time.monotonic()))
            else:
                self.failed += 1

        client.produce(
            self._topic,
            f"{producer}:{number}".encode(),
            partition=producer % self._partitions,
            on_delivery=delivered,
        )

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()
