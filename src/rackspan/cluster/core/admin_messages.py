"""Clients and the controller: administration.

The response to a request of several items is a tuple of `AdminResponse`s, one an item and in the order of the items,
unless the request says otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from rackspan.cluster.core.ids import CorrelationId, TopicId
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True)
class NewTopic:
    """`assignments`, one a partition from 0 on, or counts; -1 is the cluster's default."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, tuple[BrokerId, ...]] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateTopics:
    """`automatic`: caused by a produce or metadata request; a partial rack map is no obstacle then (KIP-36)."""

    correlation_id: CorrelationId
    topics: tuple[NewTopic, ...]
    validate_only: bool = False
    automatic: bool = False


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    """By name or id."""

    correlation_id: CorrelationId
    topics: tuple[str | TopicId, ...]


@dataclass(frozen=True, slots=True)
class MorePartitions:
    """Raise a topic to `total`; `assignments` for the new ones, in order, or None for the placer's."""

    topic: str
    total: int
    assignments: tuple[tuple[BrokerId, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    """Raise the number of partitions of topics."""

    correlation_id: CorrelationId
    topics: tuple[MorePartitions, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class ConfigOp:
    """One step of IncrementalAlterConfigs; `op` is Kafka's number: 0 set, 1 delete, 2 append, 3 subtract."""

    key: str
    op: int
    value: str | None


@dataclass(frozen=True, slots=True)
class AlterResource:
    """The steps for one resource; `resource_type` is Kafka's number."""

    resource_type: int
    name: str
    ops: tuple[ConfigOp, ...]


@dataclass(frozen=True, slots=True)
class AlterConfigs:
    """`replace` removes every config that is not set (the old AlterConfigs)."""

    correlation_id: CorrelationId
    resources: tuple[AlterResource, ...]
    validate_only: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True)
class ScramDeletion:
    """Remove a user's credential; `mechanism` is Kafka's number."""

    user: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class ScramUpsertion:
    """Add or replace a user's credential. Whether it has a password: the password itself stays outside the core."""

    user: str
    mechanism: int
    iterations: int
    has_password: bool = True


@dataclass(frozen=True, slots=True)
class AlterScramCredentials:
    """Deletions and upsertions, in the order in which Kafka validates them (KIP-554). One response a user."""

    correlation_id: CorrelationId
    changes: tuple[ScramDeletion | ScramUpsertion, ...]


@dataclass(frozen=True, slots=True)
class QuotaAlteration:
    """New values of quotas by key, None to remove one, of the entity with these types and names (KIP-546)."""

    entity: tuple[tuple[str, str | None], ...]
    values: tuple[tuple[str, float | None], ...]


@dataclass(frozen=True, slots=True)
class AlterClientQuotas:
    """One response an entity."""

    correlation_id: CorrelationId
    alterations: tuple[QuotaAlteration, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """Preferred or, where nothing else may lead, unclean election; None is every partition."""

    correlation_id: CorrelationId
    partitions: tuple[TopicPartition, ...] | None
    unclean: bool = False


@dataclass(frozen=True, slots=True)
class ReassignablePartition:
    """New replicas of one partition, preferred leader first; None cancels its reassignment."""

    partition: TopicPartition
    replicas: tuple[BrokerId, ...] | None


@dataclass(frozen=True, slots=True)
class AlterPartitionReassignments:
    """Start, replace or cancel reassignments."""

    correlation_id: CorrelationId
    reassignments: tuple[ReassignablePartition, ...]
    allow_replication_factor_change: bool = True


@dataclass(frozen=True, slots=True)
class AllocateProducerIds:
    """A block of producer ids for a broker. The response is a `ProducerIdBlock`."""

    correlation_id: CorrelationId
    broker: BrokerId


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """The ids `first` to `first + length - 1`."""

    first: int
    length: int


@dataclass(frozen=True, slots=True)
class UnregisterBroker:
    """Remove the registration of a broker that is gone for good (KIP-185)."""

    correlation_id: CorrelationId
    broker: BrokerId


@dataclass(frozen=True, slots=True)
class DescribeQuorum:
    """The controller's log and its readers. The response is a `DescribeQuorumResponse`."""

    correlation_id: CorrelationId


@dataclass(frozen=True, slots=True)
class Observer:
    """A broker as of its last heartbeat (ms). `offset` is how far it has read the metadata, -1 before it reported any."""

    broker: BrokerId
    offset: int
    last_heartbeat_ms: int


@dataclass(frozen=True, slots=True)
class DescribeQuorumResponse:
    """The one controller's log, `offset` long at `now` (ms), and its readers."""

    offset: int
    now: int
    observers: tuple[Observer, ...]


@dataclass(frozen=True, slots=True)
class AdminResponse:
    """The response for one item. `key` is its topic, partition, resource or broker, as the request had it."""

    key: object
    error: ErrorCode
    message: str | None = None


@dataclass(frozen=True, slots=True)
class CreateTopicResponse(AdminResponse):
    """A topic that was created, or that would be."""

    topic_id: TopicId | None = None
    partitions: int = -1
    replication_factor: int = -1
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AlterConfigResponse(AdminResponse):
    """`warnings` go to the log: Kafka's response has no field for them."""

    warnings: tuple[str, ...] = ()


AdminRequest: TypeAlias = (
    CreateTopics
    | DeleteTopics
    | CreatePartitions
    | AlterConfigs
    | AlterScramCredentials
    | AlterClientQuotas
    | ElectLeaders
    | AlterPartitionReassignments
    | AllocateProducerIds
    | UnregisterBroker
    | DescribeQuorum
)
