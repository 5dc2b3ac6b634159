"""Applies new metadata: which partitions this broker leads, follows and gives up.

Rules kept here: a restarted broker acts on metadata only once its own registration is in it, and on a batch of records
only by the last state of each partition. Else it would lead in epochs long gone.
"""

from collections.abc import Iterable

from rackspan.cluster.core.broker.broker_state import BrokerState
from rackspan.cluster.core.broker.follower import ReplicaFetchers
from rackspan.cluster.core.broker.leadership.leaderships import Leaderships
from rackspan.cluster.core.ids import NO_EPOCH
from rackspan.cluster.core.messages import FetchMetadataResponse, MetadataUpdated
from rackspan.cluster.core.metadata import (
    BrokerChanged,
    BrokerRegistered,
    BrokerUnregistered,
    ConfigSet,
    MetadataImage,
    PartitionSet,
    Record,
    TopicDeleted,
    apply_records,
)
from rackspan.model.ids import TopicPartition

_CONFIG_RECORDS = (BrokerRegistered, BrokerChanged, BrokerUnregistered, ConfigSet)


class Roles:
    """`_acting_as` is the broker epoch under which the whole image was last acted on."""

    def __init__(self, shared: BrokerState, leaderships: Leaderships, fetchers: ReplicaFetchers) -> None:
        self._shared, self._leaderships, self._fetchers = shared, leaderships, fetchers
        self._acting_as = NO_EPOCH

    def update(self, now: int, message: FetchMetadataResponse) -> bool:
        """Apply records that follow upon the image, or replace it by a newer image. Whether the image changed."""
        before = self._shared.image
        if message.image is not None:
            self._shared.image = max(before, message.image, key=lambda image: image.offset)
        elif message.offset == before.offset and message.records:
            self._shared.image = apply_records(before, message.records)
        if self._shared.image is before:
            return False
        self._shared.effects.append(MetadataUpdated(self._shared.image.offset))
        if self._acts_as_registered() and message.image is None:
            self._act_on(now, before, message.records)
        else:
            self.act_on_all(now)
        return True

    def _acts_as_registered(self) -> bool:
        return self._acting_as == self._shared.broker_epoch != NO_EPOCH

    def act_on_all(self, now: int) -> None:
        """Take every role the image gives, once it holds this broker's own registration."""
        shared = self._shared
        registered = shared.image.brokers.get(shared.id)
        if not shared.rules.acts_on(registered.broker_epoch if registered else None, shared.broker_epoch):
            return
        self._acting_as = shared.broker_epoch
        self._drop_missing()
        self._leaderships.reload_configs()
        self._take_roles(now, _partitions(shared.image))
        self._leaderships.settle_all(now)

    def _drop_missing(self) -> None:
        """Drop replicas that were deleted or reassigned while this broker was down, or further behind than records are kept."""
        image = self._shared.image
        for partition, log in list(self._shared.disk.logs.items()):
            topic = image.topics.get(partition.topic)
            if topic is None or topic.topic_id != log.topic_id or image.partition(partition) is None:
                self._drop(partition)

    def _act_on(self, now: int, before: MetadataImage, records: Iterable[Record]) -> None:
        touched: dict[TopicPartition, None] = {}
        configs_change = False
        for record in records:
            if isinstance(record, PartitionSet):
                touched[record.partition] = None
            elif isinstance(record, TopicDeleted):
                self._drop_topic(before, record.topic)
            elif isinstance(record, _CONFIG_RECORDS):
                configs_change = True
        if configs_change:
            self._leaderships.reload_configs()
        self._take_roles(now, touched)
        if configs_change:
            self._leaderships.settle_all(now)

    def _take_roles(self, now: int, partitions: Iterable[TopicPartition]) -> None:
        image, own = self._shared.image, self._shared.id
        for partition in partitions:
            state = image.partition(partition)
            if state is None:
                continue
            topic_id = image.topics[partition.topic].topic_id
            if own not in state.replicas:
                self._drop(partition)
            elif state.leader == own:
                self._fetchers.unfollow(partition)
                self._leaderships.lead(now, partition, topic_id, state)
            else:
                self._leaderships.resign(partition)
                self._fetchers.follow(partition, topic_id, state)

    def _drop_topic(self, before: MetadataImage, topic: str) -> None:
        # A new topic of the same name has configs of its own, perhaps none, and then no record of them comes.
        self._shared.forget_config(topic)
        deleted = before.topics.get(topic)
        for index, _ in enumerate(() if deleted is None else deleted.partitions):
            self._drop(TopicPartition(topic, index))

    def _drop(self, partition: TopicPartition) -> None:
        self._leaderships.resign(partition)
        self._fetchers.unfollow(partition)
        self._shared.disk.logs.pop(partition, None)


def _partitions(image: MetadataImage) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, index) for topic in image.topics.values() for index in range(len(topic.partitions))
    ]
