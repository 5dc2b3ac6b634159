"""Observations of a cluster by which a record is verified: samples of the ISR, and log ends of replicas."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from uuid import UUID

from rackspan.acks.min_insync_racks import RackBits
from rackspan.model import BrokerId

BEYOND_END: Final = 2**62
"""The offset of a Fetch that reads a log end. No log is that long, so that every response names the diverging epoch."""

Partition: TypeAlias = tuple[str, int]
"""Topic and partition."""


@dataclass(frozen=True, slots=True)
class SampledPartition:
    """One partition in a sample. `leader` is -1 if it has none."""

    leader: int
    leader_epoch: int
    isr: tuple[BrokerId, ...]
    replication_factor: int | None = None
    """How many replicas it has; None if that is unknown."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The ISRs that `source` reported to a request sent at `requested_at`, with every existing partition of `topics`."""

    source: int
    requested_at: float
    racks: RackBits
    topics: frozenset[str]
    partitions: Mapping[Partition, SampledPartition]
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    undescribed: frozenset[str] = frozenset()
    """Topics that `source` did not describe though they may exist, as without the right to."""


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The largest leader epoch of a replica's log up to the requested one, and the offset after its last record.

    A Fetch at `BEYOND_END` reads it from a leader or a follower: it is the response's diverging epoch. OFFSET_OUT_OF_RANGE says that
    the log ends in an older epoch.
    """

    leader_epoch: int
    end_offset: int
    log_start_offset: int = 0
    is_by_id: bool = True
    """False: the log was named by its topic's name, and may be that of an earlier topic."""


@dataclass(frozen=True, slots=True)
class LogRead:
    """One partition to read at a replica: the end of `leader_epoch` in its log. `topic_id` is None if the cluster has no topic ids."""

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


def newest_leader_sample(partition: Partition, samples: Iterable[Sample]) -> Sample | None:
    """The sample of the partition's leader, by the newest leader epoch in any sample; None if that leader's own is not among them."""
    states = [(sample, sample.partitions[partition]) for sample in samples if partition in sample.partitions]
    newest = max((state.leader_epoch for _, state in states), default=-1)
    return next(
        (sample for sample, state in states if state.leader_epoch == newest and state.leader == sample.source), None
    )
