"""The responses that a snapshot is assembled from, as values of our own, without a client's classes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rackspan.model import Broker, TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """One partition in a Metadata response."""

    partition: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """One topic in a Metadata response. `topic_id` as Kafka's tools print it, None from a Kafka without topic ids."""

    name: str
    topic_id: str | None
    internal: bool
    partitions: tuple[PartitionMetadata, ...]


@dataclass(frozen=True, slots=True)
class OngoingReassignment:
    """A reassignment under way. `replicas`: the target replicas first, then those being removed."""

    adding: tuple[int, ...]
    removing: tuple[int, ...]
    replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class QuorumMember:
    """A voter or observer of the metadata log. `hosts`: the hosts of its controller listeners, from Kafka 3.9 on.

    `alive`: whether it follows the leader of the quorum; None from a Kafka before 3.3, which reports no times.
    """

    id: int
    voter: bool
    hosts: tuple[str, ...] = ()
    alive: bool | None = None


@dataclass(frozen=True, slots=True)
class LogDirs:
    """Log sizes in bytes by broker; the brokers that did not respond, and why; those that refused this user."""

    sizes: Mapping[int, Mapping[TopicPartition, int]] = field(default_factory=dict)
    unreachable: Mapping[int, str] = field(default_factory=dict)
    unauthorized: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ClusterResponses:
    """All responses of one snapshot. `notes` name what could not be read, and the missing right or broker."""

    cluster_id: str | None
    brokers: tuple[Broker, ...]
    """Those alive and, where `lists_fenced`, all others that are registered."""
    topics: tuple[TopicMetadata, ...]
    configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reassignments: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    quorum: tuple[QuorumMember, ...] = ()
    log_dirs: LogDirs = field(default_factory=LogDirs)
    sizes_requested: bool = True
    lists_fenced: bool = False
    notes: tuple[str, ...] = ()
