"""A ClusterSnapshot of the embedded cluster: what `rackspan audit` would read from it through a client."""

from collections.abc import Mapping
from datetime import UTC, datetime

from rackspan.cluster.context import CONTROLLER_ID
from rackspan.cluster.core.configs import topic_values
from rackspan.cluster.core.coordination import INTERNAL_TOPICS
from rackspan.cluster.core.log import PartitionLog
from rackspan.cluster.core.metadata import MetadataImage, TopicImage
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.model import Broker, BrokerId, ClusterSnapshot, Controller, Topic, TopicName, TopicPartition, columns

Disks = Mapping[BrokerId, Mapping[TopicPartition, PartitionLog]]


def snapshot(
    image: MetadataImage, settings: ClusterSettings, disks: Disks, cluster_id: str, now: int
) -> ClusterSnapshot:
    """The controller's metadata as a snapshot. `now` is in ms since 1970. A partition's size is that of its largest replica."""
    topics = sorted(image.topics.values(), key=lambda topic: topic.name)
    rows = [
        (code, index, state, _size(disks, TopicPartition(topic.name, index)))
        for code, topic in enumerate(topics)
        for index, state in enumerate(topic.partitions)
    ]
    return ClusterSnapshot(
        brokers=tuple(
            Broker(broker.id, broker.rack, broker.fenced, broker.host, broker.port) for broker in image.brokers.values()
        ),
        topics=tuple(_topic(image, settings, topic) for topic in topics),
        partitions=columns(
            topic=[code for code, _, _, _ in rows],
            partition=[index for _, index, _, _ in rows],
            leader=[state.leader for _, _, state, _ in rows],
            replicas=[state.replicas for _, _, state, _ in rows],
            isr=[state.isr for _, _, state, _ in rows],
            adding_replicas=[state.adding for _, _, state, _ in rows],
            removing_replicas=[state.removing for _, _, state, _ in rows],
            size_bytes=[size for _, _, _, size in rows],
        ),
        cluster_id=cluster_id,
        # The controller has no rack.
        controllers=(Controller(CONTROLLER_ID, alive=True, active=True),),
        taken_at=datetime.fromtimestamp(now / 1000, UTC),
    )  # fmt: skip


def _topic(image: MetadataImage, settings: ClusterSettings, topic: TopicImage) -> Topic:
    values = topic_values(image, settings, topic.name, None)
    config = {value.key: value.value for value in values if value.value is not None}
    return Topic(TopicName(topic.name), str(topic.topic_id), topic.name in INTERNAL_TOPICS, config)


def _size(disks: Disks, partition: TopicPartition) -> int:
    return max((logs[partition].size_bytes for logs in disks.values() if partition in logs), default=0)
