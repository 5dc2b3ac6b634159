"""The responses that a snapshot is assembled from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rackspan.client.requests import QuorumMember
from rackspan.model import Broker, TopicPartition
from rackspan.plan.execution.observed import InFlight
from rackspan.wire.messages.metadata import MetadataResponseTopic


@dataclass(frozen=True, slots=True)
class LogDirs:
    """Log sizes in bytes by broker; the brokers that did not respond, and why; those that refused this user; those all cordoned."""

    sizes: Mapping[int, Mapping[TopicPartition, int]] = field(default_factory=dict)
    unreachable: Mapping[int, str] = field(default_factory=dict)
    unauthorized: frozenset[int] = frozenset()
    cordoned: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ClusterResponses:
    """All responses of one snapshot. `notes` name what could not be read, and the missing right or broker."""

    cluster_id: str | None
    brokers: tuple[Broker, ...]
    """Those alive and, where `lists_fenced`, all others that are registered."""
    topics: Sequence[MetadataResponseTopic]
    configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reassignments: Mapping[TopicPartition, InFlight] = field(default_factory=dict)
    quorum: tuple[QuorumMember, ...] = ()
    log_dirs: LogDirs = field(default_factory=LogDirs)
    sizes_requested: bool = True
    lists_fenced: bool = False
    notes: tuple[str, ...] = ()
