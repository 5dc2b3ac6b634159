"""GuardedKafkaProducer: kafka-python's KafkaProducer, whose futures end after the racks were counted."""

import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from rackspan.gateway.guard.judge import (
    KEPT_SECONDS,
    RETRIES,
    SETTLE_SECONDS,
    RackJudge,
    TopicIsr,
    refuse_weak_acks,
    topic_isr,
    unverified,
)

_CONNECTION: Final = ("bootstrap_servers", "client_id", "security_protocol", "request_timeout_ms")


class GuardedKafkaProducer:
    """`config` is kafka-python's; `min_insync_racks` gives the racks required by topic."""

    def __init__(
        self, min_insync_racks: Mapping[str, int], *, settle_seconds: float = SETTLE_SECONDS, **config: Any
    ) -> None:
        """Errors: UsageError for acks other than all."""
        refuse_weak_acks(config, "acks")
        self._judge = RackJudge(min_insync_racks)
        self._producer = KafkaProducer(**{**config, "acks": "all"})
        of_admin = {
            key: value for key, value in config.items() if key.startswith(("ssl_", "sasl_")) or key in _CONNECTION
        }
        self._admin = KafkaAdminClient(**of_admin)
        self._settle = settle_seconds
        self._kept: dict[str, tuple[float, TopicIsr]] = {}
        # One thread: the admin client is used by one at a time.
        self._verifier = ThreadPoolExecutor(1, "rackspan-guard")

    def send(
        self, topic: str, value: bytes | None = None, key: bytes | None = None, partition: int | None = None
    ) -> "Future[Any]":
        """The record's metadata, once it is verified. Errors: NotEnoughRacks at once; the future's: those of the client and NotEnoughRacksAfterAppend."""
        if self._judge.requires(topic):
            isr = self._verifier.submit(self._recent, topic).result()
            error = self._judge.before(topic, partition, isr)
            if error is not None:
                raise error
        result: Future[Any] = Future()
        sent = self._producer.send(topic, value=value, key=key, partition=partition)
        sent.add_errback(result.set_exception)
        sent.add_callback(lambda metadata: self._acknowledged(result, metadata))
        return result

    def _acknowledged(self, result: "Future[Any]", metadata: Any) -> None:
        if not self._judge.requires(metadata.topic):
            result.set_result(metadata)
            return
        try:
            self._verifier.submit(self._verify, result, metadata, time.monotonic())
        except RuntimeError as closed:
            result.set_exception(unverified(metadata.topic, metadata.partition, closed))

    def _verify(self, result: "Future[Any]", metadata: Any, acknowledged_at: float) -> None:
        error: Exception | None
        try:
            isr = self._read_after(metadata.topic, acknowledged_at + self._settle)
            error = self._judge.after(metadata.topic, metadata.partition, isr)
        except Exception as failure:
            # Whatever it is: without a result the caller would never finish.
            error = unverified(metadata.topic, metadata.partition, failure)
        if error is None:
            result.set_result(metadata)
        else:
            result.set_exception(error)

    def _read_after(self, topic: str, not_before: float) -> TopicIsr:
        """Metadata that was requested at that time or later; one request serves all that wait for it."""
        known = self._kept.get(topic)
        if known is not None and known[0] >= not_before:
            return known[1]
        time.sleep(max(0.0, not_before - time.monotonic()))
        for _ in range(RETRIES):
            try:
                return self._read(topic)
            except KafkaError:
                # The broker that was read last may be gone with its rack.
                time.sleep(self._settle)
        return self._read(topic)

    def _recent(self, topic: str) -> TopicIsr:
        known = self._kept.get(topic)
        return known[1] if known is not None and time.monotonic() - known[0] <= KEPT_SECONDS else self._read(topic)

    def _read(self, topic: str) -> TopicIsr:
        requested_at = time.monotonic()
        (described,) = self._admin.describe_topics([topic])
        racks = {broker["broker_id"]: broker["rack"] for broker in self._admin.describe_cluster()["brokers"]}
        partitions = {one["partition_index"]: one["isr_nodes"] for one in described["partitions"]}
        isr = topic_isr(racks, partitions)
        self._kept[topic] = (requested_at, isr)
        return isr

    def flush(self, seconds: float = 60.0) -> None:
        self._producer.flush(seconds)

    def close(self) -> None:
        """Returns when every record that was sent has been verified."""
        self._producer.flush(60)
        self._verifier.shutdown(wait=True)
        self._producer.close()
        self._admin.close()
