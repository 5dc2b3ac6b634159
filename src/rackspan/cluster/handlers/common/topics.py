"""What several handlers say of topics and partitions."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from rackspan.cluster.context.call import Call
from rackspan.cluster.core.messages import AdminResponse
from rackspan.cluster.core.metadata import MetadataImage, PartitionState
from rackspan.model.ids import BrokerId, TopicPartition

Item = TypeVar("Item")


def offline_replicas(image: MetadataImage, state: PartitionState) -> list[BrokerId]:
    return [one for one in state.replicas if one not in image.brokers or image.brokers[one].fenced]


def topic_name(call: Call, topic: dict[str, Any], field: str = "name") -> str | None:
    """The name of a topic that is addressed by name or, in later versions, by id; None for an id unknown here."""
    named: str | None = topic.get(field)
    return named if named is not None else call.broker.image.topic_names.get(topic["topic_id"])


def named(result: AdminResponse) -> TopicPartition:
    """The partition that a result is about."""
    return cast("TopicPartition", result.key)


def by_topic(items: Iterable[Item], topic: Callable[[Item], str]) -> dict[str, list[Item]]:
    """In order of first mention."""
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(topic(item), []).append(item)
    return found
