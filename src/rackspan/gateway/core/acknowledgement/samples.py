"""What the guard is given: samples of the ISR, log ends of replicas, and what a partition requires."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

from rackspan.acks.log_ends import LogEnd
from rackspan.acks.min_insync_racks import RackBits, Thresholds
from rackspan.model import BrokerId

Partition: TypeAlias = tuple[str, int]
"""Topic and partition."""


@dataclass(frozen=True, slots=True)
class PartitionIsr:
    """One partition in a sample. `leader` is -1 where there is none."""

    leader: int
    leader_epoch: int
    isr: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """The ISRs that `source` reported to a request sent at `requested_at`. Of `topics` it has every partition there is."""

    source: int
    requested_at: float
    racks: RackBits
    topics: frozenset[str]
    partitions: Mapping[Partition, PartitionIsr]
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogRead:
    """One partition to read at a replica: the end of `leader_epoch` in its log. `topic_id` is None where the cluster has none."""

    partition: Partition
    topic_id: UUID | None
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The log ends that a replica reported to a request sent at `requested_at`. A read that it refused is not among `ends`."""

    replica: BrokerId
    requested_at: float
    reads: frozenset[LogRead]
    ends: Mapping[LogRead, LogEnd | None]
    """None: the log ends in an earlier epoch."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a guarded partition requires. `fail_open`: what is unknown is accepted."""

    thresholds: Thresholds
    fail_open: bool = False
