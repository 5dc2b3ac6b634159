"""GuardedProducer: confluent-kafka's Producer, whose delivery reports come after the racks were counted."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import KafkaException, Producer, TopicCollection
from confluent_kafka.admin import AdminClient

from rackspan.errors import RetriableProduceError
from rackspan.gateway.guard.judge import (
    KEPT_SECONDS,
    SETTLE_SECONDS,
    RackJudge,
    TopicIsr,
    refuse_weak_acks,
    topic_isr,
    unverified,
)

log = logging.getLogger(__name__)

_REQUEST_SECONDS: Final = 10.0
_PRODUCER_ONLY: Final = (
    "acks",
    "request.required.acks",
    "enable.idempotence",
    "transactional.id",
    "linger.ms",
    "retries",
)

OnDelivery = Callable[[Any, Any], None]


class GuardedProducer:
    """`config` is librdkafka's; `min_insync_racks` gives the racks required by topic.

    `on_delivery(error, message)` is called from a thread of the guard; its error is librdkafka's, or NotEnoughRacksAfterAppend.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        min_insync_racks: Mapping[str, int],
        *,
        settle_seconds: float = SETTLE_SECONDS,
    ) -> None:
        """Errors: UsageError for acks other than all."""
        refuse_weak_acks(config, "acks", "request.required.acks")
        self._judge = RackJudge(min_insync_racks)
        self._producer = Producer({**config, "acks": "all"})
        self._admin = AdminClient({key: value for key, value in config.items() if key not in _PRODUCER_ONLY})
        self._settle = settle_seconds
        self._kept: dict[str, tuple[float, TopicIsr]] = {}
        self._acknowledged: queue.Queue[tuple[Any, OnDelivery | None] | None] = queue.Queue()
        self._verifier = threading.Thread(target=self._verify, name="rackspan-guard", daemon=True)
        self._verifier.start()

    def produce(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        *,
        partition: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> None:
        """Errors: NotEnoughRacks before anything is sent; BufferError, KafkaException."""
        if self._judge.requires(topic):
            error = self._judge.before(topic, partition, self._recent(topic))
            if error is not None:
                raise error
        where: dict[str, Any] = {} if partition is None else {"partition": partition}
        self._producer.produce(topic, value, key, on_delivery=self._delivered(on_delivery), **where)

    def poll(self, seconds: float = 0.0) -> int:
        """Serves librdkafka's reports. Those of acknowledged records are passed on when their racks were counted."""
        return self._producer.poll(seconds)

    def flush(self, seconds: float = 60.0) -> int:
        """Returns when every record was delivered and verified: how many were not, after so many seconds."""
        until = time.monotonic() + seconds
        left = self._producer.flush(seconds)
        while self._acknowledged.unfinished_tasks and time.monotonic() < until:
            time.sleep(0.005)
        return left + self._acknowledged.unfinished_tasks

    def close(self) -> None:
        self.flush()
        self._acknowledged.put(None)
        self._verifier.join()

    def _delivered(self, on_delivery: OnDelivery | None) -> OnDelivery:
        def delivered(error: Any, message: Any) -> None:
            if error is None and self._judge.requires(message.topic()):
                self._acknowledged.put((message, on_delivery))
            elif on_delivery is not None:
                on_delivery(error, message)

        return delivered

    def _recent(self, topic: str) -> TopicIsr:
        known = self._kept.get(topic)
        if known is None or time.monotonic() - known[0] > KEPT_SECONDS:
            known = self._kept[topic] = (time.monotonic(), self._read(topic))
        return known[1]

    def _read(self, topic: str) -> TopicIsr:
        described = self._admin.describe_topics(TopicCollection([topic]), request_timeout=_REQUEST_SECONDS)[
            topic
        ].result()
        members = {node.id: node.rack for partition in described.partitions for node in partition.isr}
        return topic_isr(members, {one.id: [node.id for node in one.isr] for one in described.partitions})

    def _verify(self) -> None:
        while True:
            batch = [self._acknowledged.get()]
            # What is acknowledged while metadata settles has to be older than the metadata, so the batch ends here.
            while not self._acknowledged.empty():
                batch.append(self._acknowledged.get_nowait())
            time.sleep(self._settle)
            read: dict[str, Any] = {}
            for entry in batch:
                if entry is not None:
                    self._reported(read, *entry)
                self._acknowledged.task_done()
            if None in batch:
                return

    def _reported(self, read: dict[str, Any], message: Any, on_delivery: OnDelivery | None) -> None:
        """One record is reported whatever happens: an exception would end the thread, and nothing be reported any more."""
        try:
            self._report(read, message, on_delivery)
        except Exception as failure:
            log.exception("%s-%d: a delivery could not be reported", message.topic(), message.partition())
            if on_delivery is not None and message.topic() not in read:
                on_delivery(unverified(message.topic(), message.partition(), failure), message)

    def _report(self, read: dict[str, Any], message: Any, on_delivery: OnDelivery | None) -> None:
        topic, partition = message.topic(), message.partition()
        if topic not in read:
            requested_at = time.monotonic()
            try:
                read[topic] = self._read(topic)
            except KafkaException as failure:
                read[topic] = failure
            else:
                self._kept[topic] = (requested_at, read[topic])
        error: RetriableProduceError | None
        if isinstance(read[topic], KafkaException):
            error = unverified(topic, partition, read[topic])
        else:
            error = self._judge.after(topic, partition, read[topic])
        if on_delivery is not None:
            on_delivery(error, message)
