"""Names, replicas and leaders of topics, as several responses contain them."""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar, cast
from uuid import UUID

from rackspan.cluster.context import Call
from rackspan.cluster.core.messages import AdminResponse
from rackspan.cluster.core.metadata import NO_LEADER, MetadataImage, PartitionState
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition

TOPIC_IDS_SINCE: Final = 13
"""From this version on Produce and Fetch have topic ids instead of names."""

READ_COMMITTED: Final = 1
"""The isolation level, in Fetch and ListOffsets."""

LEADER_CHANGED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
"""Produce and Fetch then name the current leader (KIP-951)."""

Item = TypeVar("Item")


def offline_replicas(image: MetadataImage, state: PartitionState) -> list[BrokerId]:
    return [broker for broker in state.replicas if broker not in image.brokers or image.brokers[broker].fenced]


def topic_name(call: Call[object], name: str, topic_id: UUID | None) -> str | None:
    """The topic of a Produce or Fetch request; None for an id unknown here."""
    if call.version < TOPIC_IDS_SINCE:
        return name
    return None if topic_id is None else call.broker.image.topic_names.get(topic_id)


def led_partition(call: Call[object], partition: TopicPartition) -> PartitionState | None:
    """None where there is no such partition, or it has no leader."""
    state = call.broker.image.partition(partition)
    return state if state is not None and state.leader != NO_LEADER else None


def partition_of(response: AdminResponse) -> TopicPartition:
    """The partition that the controller's response is about."""
    return cast("TopicPartition", response.key)


def by_topic(
    items: Iterable[Item], partition: Callable[[Item], TopicPartition] = lambda item: cast("TopicPartition", item)
) -> dict[str, list[Item]]:
    """Items grouped by the topic of their partition, topics in order of first occurrence."""
    grouped: dict[str, list[Item]] = {}
    for item in items:
        grouped.setdefault(partition(item).topic, []).append(item)
    return grouped
