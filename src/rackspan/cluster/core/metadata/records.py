"""The controller's records. Folded in order they are the cluster; a partition's record carries its whole state."""

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from rackspan.cluster.core.ids import TopicId
from rackspan.cluster.core.metadata.partition import PartitionState
from rackspan.model.ids import BrokerId, RackId, TopicPartition


class ResourceType(IntEnum):
    """Whose config; Kafka's numbers (ConfigResource.Type)."""

    TOPIC = 2
    BROKER = 4


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """A topic by name, a broker by id, or with the empty name the default of all brokers."""

    type: ResourceType
    name: str


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """A broker came (back): fenced until it has caught up with the metadata. `incarnation` tells its processes apart."""

    broker: BrokerId
    broker_epoch: int
    incarnation: int
    rack: RackId | None
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class BrokerChanged:
    """Both flags, as they are from now on."""

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
    """Its partitions and configs go with it."""

    topic: str
    topic_id: TopicId


@dataclass(frozen=True, slots=True)
class PartitionSet:
    """A partition is new or has changed."""

    partition: TopicPartition
    state: PartitionState


@dataclass(frozen=True, slots=True)
class ConfigSet:
    """One key; None takes it away."""

    resource: ConfigResource
    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class ProducerIdsAllocated:
    """Producer ids below `next_producer_id` are given away."""

    next_producer_id: int


Record: TypeAlias = (
    BrokerRegistered
    | BrokerChanged
    | BrokerUnregistered
    | TopicCreated
    | TopicDeleted
    | PartitionSet
    | ConfigSet
    | ProducerIdsAllocated
)
