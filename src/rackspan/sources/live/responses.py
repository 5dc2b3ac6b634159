"""What a cluster said about itself, question by question, free of any client's classes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rackspan.model import Broker
from rackspan.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionReply:
    partition: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicReply:
    """`topic_id` as Kafka's tools print it, None from a Kafka without them."""

    name: str
    topic_id: str | None
    internal: bool
    partitions: tuple[PartitionReply, ...]


@dataclass(frozen=True, slots=True)
class Reassignment:
    """One under way. `replicas`: those it shall have, then those it is leaving."""

    adding: tuple[int, ...]
    removing: tuple[int, ...]
    replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class QuorumMember:
    """A voter or observer of the metadata log. `hosts` are its controller listeners', where Kafka tells them (3.9)."""

    id: int
    voter: bool
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogDirs:
    """Bytes on disk, by broker that answered; why others kept silent; and which may not tell this user."""

    sizes: Mapping[int, Mapping[TopicPartition, int]] = field(default_factory=dict)
    silent: Mapping[int, str] = field(default_factory=dict)
    refusing: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ClusterReplies:
    """Everything a snapshot is made of. `notes` say what could not be read, and which right or broker is missing."""

    cluster_id: str | None
    brokers: tuple[Broker, ...]
    """Those alive and, where `lists_fenced`, all others that are registered."""
    topics: tuple[TopicReply, ...]
    configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reassignments: Mapping[TopicPartition, Reassignment] = field(default_factory=dict)
    quorum: tuple[QuorumMember, ...] = ()
    log_dirs: LogDirs = field(default_factory=LogDirs)
    asked_for_sizes: bool = True
    lists_fenced: bool = False
    notes: tuple[str, ...] = ()
