"""The cluster's metadata: the controller's records, and the image that results from applying them.

Controller and brokers apply the same records. An image never changes: `apply_records` copies what the records touch and
shares the rest, so that the cost is what they touch plus one shallow copy of the table of topics.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from rackspan.acks import RackBits, rack_bits
from rackspan.cluster.core.ids import TopicId
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.model import MIN_INSYNC_RACKS, MIN_INSYNC_REPLICAS, Broker, BrokerId, RackId, TopicPartition

NO_LEADER: Final = BrokerId(-1)


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition as the controller committed it.

    `leader_epoch` rises with every election, `partition_epoch` with every change. Members of `elr` (KIP-966) may lead
    cleanly though they are not in the ISR. `adding` and `removing` are those of a reassignment under way, and are in `replicas`. `left_isr` holds
    (broker, partition epoch in which it was last a member of the ISR) of every replica outside it: a manual
    recovery takes the survivor with the greatest.
    """

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    leader: BrokerId
    leader_epoch: int = 0
    partition_epoch: int = 0
    elr: tuple[BrokerId, ...] = ()
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
    left_isr: tuple[tuple[BrokerId, int], ...] = ()

    @property
    def preferred_leader(self) -> BrokerId:
        return self.replicas[0]

    @property
    def reassigning(self) -> bool:
        return bool(self.adding or self.removing)


QuotaEntity: TypeAlias = frozenset[tuple[str, str | None]]
"""Name by type of entity (user, client-id, ip); the name None is the default of its type (KIP-546)."""


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """A topic by name, a broker by id, with the empty name the default of all brokers, or a consumer group by id."""

    type: ConfigResourceType
    name: str


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """A broker registered. It is fenced until it has caught up with the metadata. `incarnation` distinguishes its processes."""

    broker: BrokerId
    broker_epoch: int
    incarnation: int
    rack: RackId | None
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class BrokerChanged:
    """The new values of both flags."""

    broker: BrokerId
    broker_epoch: int
    fenced: bool
    in_controlled_shutdown: bool


@dataclass(frozen=True, slots=True)
class BrokerUnregistered:
    broker: BrokerId
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class TopicCreated:
    topic: str
    topic_id: TopicId


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """A topic was deleted, with its partitions and configs."""

    topic: str
    topic_id: TopicId


@dataclass(frozen=True, slots=True)
class PartitionSet:
    """A partition is new or has changed."""

    partition: TopicPartition
    state: PartitionState


@dataclass(frozen=True, slots=True)
class ConfigSet:
    """The new value of one key; None removes it."""

    resource: ConfigResource
    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class ScramCredentialSet:
    """A user's SCRAM credential; `mechanism` is Kafka's number, `iterations` None removes it.

    Nobody logs in to this cluster, so that no salt and no key is kept.
    """

    user: str
    mechanism: int
    iterations: int | None


@dataclass(frozen=True, slots=True)
class ClientQuotaSet:
    """The new value of one quota of an entity; None removes it."""

    entity: QuotaEntity
    key: str
    value: float | None


@dataclass(frozen=True, slots=True)
class ProducerIdsAllocated:
    """Producer ids below `next_producer_id` have been allocated."""

    next_producer_id: int


Record: TypeAlias = (
    BrokerRegistered
    | BrokerChanged
    | BrokerUnregistered
    | TopicCreated
    | TopicDeleted
    | PartitionSet
    | ConfigSet
    | ScramCredentialSet
    | ClientQuotaSet
    | ProducerIdsAllocated
)


THRESHOLD_KEYS: Final = frozenset({MIN_INSYNC_REPLICAS, MIN_INSYNC_RACKS})


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """One registered broker. `broker_epoch` is the offset of its registration: it distinguishes its incarnations."""

    id: BrokerId
    broker_epoch: int
    incarnation: int
    rack: RackId | None
    host: str
    port: int
    fenced: bool = True
    in_controlled_shutdown: bool = False

    @property
    def active(self) -> bool:
        """Whether it may lead and join an ISR."""
        return not (self.fenced or self.in_controlled_shutdown)


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic and its partitions, the index being the partition."""

    name: str
    topic_id: TopicId
    partitions: tuple[PartitionState, ...] = ()


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """`offset` is the number of records applied. `thresholds_version` is the offset just past the last change of min.insync.*."""

    offset: int = 0
    brokers: Mapping[BrokerId, BrokerImage] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topic_names: Mapping[TopicId, str] = field(default_factory=dict)
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    racks: RackBits = field(default_factory=lambda: rack_bits(()))
    next_producer_id: int = 0
    thresholds_version: int = 0
    scram_iterations: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """By user and mechanism."""
    client_quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)

    def partition(self, partition: TopicPartition) -> PartitionState | None:
        topic = self.topics.get(partition.topic)
        if topic is None or not 0 <= partition.partition < len(topic.partitions):
            return None
        return topic.partitions[partition.partition]

    def config_of(self, resource: ConfigResource) -> Mapping[str, str]:
        """The configs that were set, without defaults."""
        return self.configs.get(resource, _NOTHING)

    def model_brokers(self) -> tuple[Broker, ...]:
        """The brokers as the model's values, in order of id."""
        return tuple(
            Broker(broker.id, broker.rack, not broker.active, broker.host, broker.port)
            for broker in sorted(self.brokers.values(), key=lambda broker: broker.id)
        )


_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
EMPTY_IMAGE: Final = MetadataImage()


def apply_records(image: MetadataImage, records: Iterable[Record]) -> MetadataImage:
    """`image` with more records."""
    draft = _Draft(image)
    for record in records:
        draft.offset += 1
        _APPLY[type(record)](draft, record)
    return draft.image()


class _Draft:
    """An image under construction: a topic's table is copied when it is first written to."""

    def __init__(self, image: MetadataImage) -> None:
        self.before = image
        self.offset = image.offset
        self.brokers = dict(image.brokers)
        self.topics = dict(image.topics)
        self.topic_names = dict(image.topic_names)
        self.configs = dict(image.configs)
        self.partitions: dict[str, list[PartitionState]] = {}
        self.next_producer_id = image.next_producer_id
        self.thresholds_version = image.thresholds_version
        self.scram_iterations = dict(image.scram_iterations)
        self.client_quotas = dict(image.client_quotas)

    def image(self) -> MetadataImage:
        for topic, partitions in self.partitions.items():
            self.topics[topic] = replace(self.topics[topic], partitions=tuple(partitions))
        return MetadataImage(
            self.offset,
            self.brokers,
            self.topics,
            self.topic_names,
            self.configs,
            self._racks(),
            self.next_producer_id,
            self.thresholds_version,
            self.scram_iterations,
            self.client_quotas,
        )

    def _racks(self) -> RackBits:
        if self.brokers == self.before.brokers:
            return self.before.racks
        return rack_bits(Broker(broker.id, broker.rack) for broker in self.brokers.values())


def _registered(draft: _Draft, record: BrokerRegistered) -> None:
    draft.brokers[record.broker] = BrokerImage(
        record.broker, record.broker_epoch, record.incarnation, record.rack, record.host, record.port
    )


def _changed(draft: _Draft, record: BrokerChanged) -> None:
    draft.brokers[record.broker] = replace(
        draft.brokers[record.broker], fenced=record.fenced, in_controlled_shutdown=record.in_controlled_shutdown
    )


def _unregistered(draft: _Draft, record: BrokerUnregistered) -> None:
    del draft.brokers[record.broker]


def _topic_created(draft: _Draft, record: TopicCreated) -> None:
    draft.topics[record.topic] = TopicImage(record.topic, record.topic_id)
    draft.topic_names[record.topic_id] = record.topic


def _topic_deleted(draft: _Draft, record: TopicDeleted) -> None:
    del draft.topics[record.topic]
    del draft.topic_names[record.topic_id]
    draft.partitions.pop(record.topic, None)
    draft.configs.pop(ConfigResource(ConfigResourceType.TOPIC, record.topic), None)


def _partition_set(draft: _Draft, record: PartitionSet) -> None:
    topic, partition = record.partition
    partitions = draft.partitions.get(topic)
    if partitions is None:
        partitions = draft.partitions[topic] = list(draft.topics[topic].partitions)
    partitions[partition : partition + 1] = [record.state]


def _config_set(draft: _Draft, record: ConfigSet) -> None:
    values = dict(draft.configs.get(record.resource, _NOTHING))
    if record.value is None:
        values.pop(record.key, None)
    else:
        values[record.key] = record.value
    draft.configs[record.resource] = values
    if record.key in THRESHOLD_KEYS:
        draft.thresholds_version = draft.offset


def _scram_credential_set(draft: _Draft, record: ScramCredentialSet) -> None:
    if record.iterations is None:
        draft.scram_iterations.pop((record.user, record.mechanism), None)
    else:
        draft.scram_iterations[record.user, record.mechanism] = record.iterations


def _client_quota_set(draft: _Draft, record: ClientQuotaSet) -> None:
    quotas = dict(draft.client_quotas.pop(record.entity, {}))
    quotas.pop(record.key, None)
    if record.value is not None:
        quotas[record.key] = record.value
    if quotas:
        draft.client_quotas[record.entity] = quotas


def _producer_ids(draft: _Draft, record: ProducerIdsAllocated) -> None:
    draft.next_producer_id = record.next_producer_id


_APPLY: Final[Mapping[type[Record], Callable[[_Draft, Any], None]]] = {
    BrokerRegistered: _registered,
    BrokerChanged: _changed,
    BrokerUnregistered: _unregistered,
    TopicCreated: _topic_created,
    TopicDeleted: _topic_deleted,
    PartitionSet: _partition_set,
    ConfigSet: _config_set,
    ScramCredentialSet: _scram_credential_set,
    ClientQuotaSet: _client_quota_set,
    ProducerIdsAllocated: _producer_ids,
}
