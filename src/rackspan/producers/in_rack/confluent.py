"""InRackProducer: confluent-kafka's Producer, whose records without a key stay in its rack.

A subclass: librdkafka calls no partitioner in Python. Its partitions are named here, by metadata of an admin client of its own,
since librdkafka's producers do not give brokers' racks.
"""

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future
from random import Random
from typing import Any, Final

from confluent_kafka import KafkaException, TopicCollection

from rackspan.producers.handles import AdminClient, Producer
from rackspan.producers.in_rack.partitioner import InRackPartitioner, LeaderRacks

log = logging.getLogger(__name__)

FIRST_SECONDS: Final = 10.0
"""How long the first record of a topic waits for the racks of its leaders. Later readings wait for nothing."""

REFRESH_SECONDS: Final = 30.0
"""Age of a topic's leaders at which they are read again. In between a leader that has moved gets records across racks."""

_CONNECTION_SETTINGS: Final = ("bootstrap.servers", "metadata.broker.list", "security.protocol", "client.id")
_CONNECTION_PREFIXES: Final = ("sasl.", "ssl.", "socket.", "broker.address.", "enable.ssl.", "https.")


class InRackProducer(Producer):
    """`config` is librdkafka's; records with a key go where its `partitioner` sends them. `client.rack` is not a producer's setting."""

    def __init__(self, config: Mapping[str, Any], client_rack: str, *, skew_max: float | None = None) -> None:
        """Errors: UsageError; KafkaException."""
        self._in_rack = InRackPartitioner(client_rack, Random(), skew_max=skew_max)
        self._leaders = _Leaders(config)
        super().__init__(dict(config))

    def produce(self, topic: str, value: Any = None, key: Any = None, partition: int = -1, **options: Any) -> None:  # type: ignore[override] # callbacks are keyword arguments here
        """As of confluent-kafka. Errors: BufferError, KafkaException."""
        if partition < 0 and key is None:
            chosen = self._in_rack.partition(topic, len(value or b""), lambda: self._leaders.racks(topic))
            partition = partition if chosen is None else chosen
        super().produce(topic, value, key, partition, **options)


class _Leaders:
    """The racks of topics' leaders, at most REFRESH_SECONDS old or as old as the last response."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._admin = AdminClient(
            {
                name: value
                for name, value in config.items()
                if name in _CONNECTION_SETTINGS or name.startswith(_CONNECTION_PREFIXES)
            }
        )
        self._known: dict[str, LeaderRacks] = {}
        self._read_at: dict[str, float] = {}
        self._reading: dict[str, Future[Any]] = {}

    def racks(self, topic: str) -> LeaderRacks:
        now = time.monotonic()
        if topic not in self._reading and now - self._read_at.get(topic, -REFRESH_SECONDS) >= REFRESH_SECONDS:
            self._read_at[topic] = now
            described = self._admin.describe_topics(TopicCollection([topic]), request_timeout=FIRST_SECONDS)
            self._reading[topic] = described[topic]
        reading = self._reading.get(topic)
        if reading is not None and (topic not in self._known or reading.done()):
            del self._reading[topic]
            self._known[topic] = self._described(topic, reading)
        return self._known[topic]

    def _described(self, topic: str, reading: "Future[Any]") -> LeaderRacks:
        try:
            partitions = reading.result(FIRST_SECONDS).partitions
        except (KafkaException, TimeoutError) as error:
            # A topic that does not exist yet is created by the record itself, if the brokers allow it.
            log.warning(
                "the leaders of %s could not be read, and its records are not kept in the rack: %s", topic, error
            )
            return self._known.get(topic, {})
        return {partition.id: partition.leader.rack or None for partition in partitions if partition.leader is not None}
