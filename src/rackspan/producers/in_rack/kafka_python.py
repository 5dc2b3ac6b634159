"""The partitioner of kafka-python 3: `KafkaProducer(…, **in_rack("eu-1a"))`."""

from collections.abc import Mapping
from random import Random
from typing import Any

from kafka.cluster import ClusterMetadata
from kafka.partitioner import DefaultPartitioner, Partitioner

from rackspan.producers.in_rack.partitioner import InRackPartitioner, LeaderRacks


class KafkaPythonPartitioner(Partitioner):  # type: ignore[misc] # kafka-python publishes no types
    """Records without a key go to partitions led in the rack; `others` decides about those with one. For one producer."""

    def __init__(self, client_rack: str, *, skew_max: float | None = None, others: Any = None) -> None:
        """Errors: UsageError."""
        self._in_rack = InRackPartitioner(client_rack, Random(), skew_max=skew_max)
        self._others = DefaultPartitioner() if others is None else others

    def partition(
        self,
        topic: str,
        key: Any,
        serialized_key: bytes | None,
        value: Any,
        serialized_value: bytes | None,
        cluster: ClusterMetadata,
    ) -> int:
        chosen = None
        if serialized_key is None:
            chosen = self._in_rack.partition(topic, len(serialized_value or b""), lambda: _leader_racks(cluster, topic))
        if chosen is not None:
            return chosen
        others: int = self._others.partition(topic, key, serialized_key, value, serialized_value, cluster)
        return others


def in_rack(client_rack: str, *, skew_max: float | None = None) -> Mapping[str, Any]:
    """Keyword arguments of one KafkaProducer. Call it again for every producer. Errors: UsageError."""
    return {"partitioner": KafkaPythonPartitioner(client_rack, skew_max=skew_max)}


def _leader_racks(cluster: ClusterMetadata, topic: str) -> LeaderRacks:
    racks = {broker.node_id: broker.rack for broker in cluster.brokers()}
    return {
        partition.partition_index: racks[partition.leader_id]
        for partition in cluster._partitions.get(topic, {}).values()
        if partition.leader_id in racks
    }
