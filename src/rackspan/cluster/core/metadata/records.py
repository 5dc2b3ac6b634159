"""The controller's records. Applied in order they are the cluster's state; a partition's record holds its whole state."""

from dataclasses import dataclass
from typing import TypeAlias

from rackspan.cluster.core.ids import TopicId
from rackspan.cluster.core.metadata.partition import PartitionState
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.model.ids import BrokerId, RackId, TopicPartition

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
