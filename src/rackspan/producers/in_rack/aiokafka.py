"""InRackAIOKafkaProducer: aiokafka's producer, whose records without a key stay in its rack.

A subclass: aiokafka calls its partitioners without the topic.
"""

from random import Random
from typing import Any

from aiokafka import AIOKafkaProducer

from rackspan.producers.in_rack.partitioner import InRackPartitioner, LeaderRacks


class InRackAIOKafkaProducer(AIOKafkaProducer):  # type: ignore[misc] # aiokafka publishes no types
    """`config` is aiokafka's; records with a key go where its partitioner sends them."""

    def __init__(self, client_rack: str, *, skew_max: float | None = None, **config: Any) -> None:
        """Errors: UsageError."""
        self._in_rack = InRackPartitioner(client_rack, Random(), skew_max=skew_max)
        super().__init__(**config)

    def _partition(
        self,
        topic: str,
        partition: int | None,
        key: Any,
        value: Any,
        serialized_key: bytes | None,
        serialized_value: bytes | None,
    ) -> int:
        if partition is None and serialized_key is None:
            size_bytes = len(serialized_value or b"")
            partition = self._in_rack.partition(topic, size_bytes, lambda: self._leader_racks(topic))
        chosen: int = super()._partition(topic, partition, key, value, serialized_key, serialized_value)
        return chosen

    def _leader_racks(self, topic: str) -> LeaderRacks:
        racks = {broker.nodeId: broker.rack for broker in self._metadata.brokers()}
        return {
            partition.partition: racks[partition.leader]
            for partition in self._metadata._partitions.get(topic, {}).values()
            if partition.leader in racks
        }
