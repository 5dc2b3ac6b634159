"""From metadata to roles: what a broker leads, follows and gives up when its image moves.

Rules kept here: a restarted broker acts on metadata only once its own registration is in it, and on a batch of records
only by the last state of each partition: else it would lead in epochs long gone.
"""

from collections.abc import Iterable

from rackspan.cluster.core.broker.following import Following
from rackspan.cluster.core.broker.leading import Leading
from rackspan.cluster.core.broker.local import Local
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
    folded,
)
from rackspan.model.ids import TopicPartition

_CHANGES_TERMS = (BrokerRegistered, BrokerChanged, BrokerUnregistered, ConfigSet)


class Roles:
    """`_acting_as` is the broker epoch under which the whole image was last acted on."""

    def __init__(self, local: Local, leading: Leading, following: Following) -> None:
        self._local, self._leading, self._following = local, leading, following
        self._acting_as = NO_EPOCH

    def learn(self, now: int, message: FetchMetadataResponse) -> bool:
        """Fold in records that follow upon the image, or take a newer image whole; whether there was anything new."""
        before = self._local.image
        if message.image is not None:
            self._local.image = max(before, message.image, key=lambda image: image.offset)
        elif message.offset == before.offset and message.records:
            self._local.image = folded(before, message.records)
        if self._local.image is before:
            return False
        self._local.effects.append(MetadataUpdated(self._local.image.offset))
        if self._acts_already() and message.image is None:
            self._act_on(now, before, message.records)
        else:
            self.act_on_all(now)
        return True

    def _acts_already(self) -> bool:
        return self._acting_as == self._local.broker_epoch != NO_EPOCH

    def act_on_all(self, now: int) -> None:
        """Take every role the image gives, once it holds this broker's own registration."""
        local = self._local
        registered = local.image.brokers.get(local.id)
        if not local.rules.acts_on(registered.broker_epoch if registered else None, local.broker_epoch):
            return
        self._acting_as = local.broker_epoch
        self._drop_what_is_gone()
        self._leading.renew_terms()
        self._take_roles(now, _partitions(local.image))
        self._leading.settle_all(now)

    def _drop_what_is_gone(self) -> None:
        """Whatever was deleted or reassigned while this broker was away, or further behind than records are kept."""
        image = self._local.image
        for partition, log in list(self._local.disk.logs.items()):
            topic = image.topics.get(partition.topic)
            if topic is None or topic.topic_id != log.topic_id or image.partition(partition) is None:
                self._drop(partition)

    def _act_on(self, now: int, before: MetadataImage, records: Iterable[Record]) -> None:
        touched: dict[TopicPartition, None] = {}
        terms_change = False
        for record in records:
            if isinstance(record, PartitionSet):
                touched[record.partition] = None
            elif isinstance(record, TopicDeleted):
                self._drop_topic(before, record.topic)
            elif isinstance(record, _CHANGES_TERMS):
                terms_change = True
        if terms_change:
            self._leading.renew_terms()
        self._take_roles(now, touched)
        if terms_change:
            self._leading.settle_all(now)

    def _take_roles(self, now: int, partitions: Iterable[TopicPartition]) -> None:
        image, own = self._local.image, self._local.id
        for partition in partitions:
            state = image.partition(partition)
            if state is None:
                continue
            topic_id = image.topics[partition.topic].topic_id
            if own not in state.replicas:
                self._drop(partition)
            elif state.leader == own:
                self._following.leave(partition)
                self._leading.lead(now, partition, topic_id, state)
            else:
                self._leading.resign(partition)
                self._following.follow(partition, topic_id, state)

    def _drop_topic(self, before: MetadataImage, topic: str) -> None:
        deleted = before.topics.get(topic)
        for index in range(len(deleted.partitions) if deleted is not None else 0):
            self._drop(TopicPartition(topic, index))

    def _drop(self, partition: TopicPartition) -> None:
        self._leading.resign(partition)
        self._following.leave(partition)
        self._local.disk.logs.pop(partition, None)


def _partitions(image: MetadataImage) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, index) for topic in image.topics.values() for index in range(len(topic.partitions))
    ]
