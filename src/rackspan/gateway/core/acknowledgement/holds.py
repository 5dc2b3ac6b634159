"""Requests whose acknowledgements are held, what each still lacks, and the refusals that come of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from rackspan.acks.log_ends import AcknowledgedRecord
from rackspan.acks.min_insync_racks import ProduceVerdict, RackBits
from rackspan.gateway.core.acknowledgement.rules import NEVER
from rackspan.gateway.core.acknowledgement.samples import LogRead, Partition, Requirement
from rackspan.model import BrokerId


class Cause(Enum):
    """Why a partition of a request was refused, for metrics and logs."""

    RACKS = "too few racks in sync"
    REPLICAS = "too few replicas in sync"
    LOGS = "too few replicas' logs show the record"
    UNKNOWN = "the ISR is unknown"
    LEADER = "the leader changed"
    ORDER = "an earlier batch of the producer was refused"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The response for one partition in place of the broker's."""

    partition: Partition
    verdict: ProduceVerdict
    cause: Cause
    message: str | None
    isr_racks: tuple[str, ...] = ()
    """The racks of the sampled ISR, by name; empty where it is unknown."""


@dataclass(frozen=True, slots=True)
class Lead:
    """A partition's leadership as sampled before a request was forwarded."""

    leader_epoch: int
    topic_id: UUID | None


class Unverified:
    """One acknowledged partition of a request until its racks are counted."""

    __slots__ = ("end_offset", "isr", "racks", "record", "sample_from", "sampled", "topic_id")

    def __init__(self, end_offset: int | None, now: float) -> None:
        self.end_offset = end_offset
        self.sample_from = now
        """The time from which a sample counts."""
        self.sampled = False
        """Whether a sample that counts met the thresholds."""
        self.isr: tuple[BrokerId, ...] = ()
        self.racks: RackBits | None = None
        self.topic_id: UUID | None = None
        self.record: AcknowledgedRecord | None = None
        """None while its leader epoch is unknown, and where logs are not read."""


class Hold:
    """A request that was forwarded: its acknowledgement, once it has come, until it is verified."""

    __slots__ = ("acknowledged_at", "broker", "leads", "refusals", "requirements", "waiting")

    def __init__(
        self, broker: int, requirements: Mapping[Partition, Requirement], leads: Mapping[Partition, Lead | None]
    ) -> None:
        self.broker = broker
        self.requirements = requirements
        self.leads = leads
        """None where it is not known."""
        self.acknowledged_at = NEVER
        self.refusals: dict[Partition, Refusal] = {}
        self.waiting: dict[Partition, Unverified] = {}

    def begin(self, end_offsets: Mapping[Partition, int | None], now: float) -> None:
        self.acknowledged_at = now
        self.waiting = {partition: Unverified(end, now) for partition, end in end_offsets.items()}

    def resolve(self, partition: Partition, refusal: Refusal | None) -> None:
        del self.waiting[partition]
        if refusal is not None:
            self.refusals[partition] = refusal


class PendingReads:
    """The log ends that holds wait for, by replica: what is to be read there, and from when."""

    def __init__(self) -> None:
        self._of: dict[BrokerId, dict[tuple[Hold, Partition], tuple[float, LogRead]]] = {}

    def plan(self, hold: Hold, partition: Partition, reads: Mapping[BrokerId, tuple[float, LogRead]]) -> None:
        """Replace the partition's reads."""
        self.drop(hold, partition)
        for replica, read in reads.items():
            self._of.setdefault(replica, {})[hold, partition] = read

    def drop(self, hold: Hold, partition: Partition) -> None:
        for replica, pending in tuple(self._of.items()):
            pending.pop((hold, partition), None)
            if not pending:
                del self._of[replica]

    def replicas(self) -> Iterable[BrokerId]:
        return tuple(self._of)

    def wanted(self, replica: BrokerId, now: float) -> frozenset[LogRead]:
        """What to read now, at most one epoch of each partition: a Fetch request names a partition once."""
        by_partition = {read.partition: read for at, read in self._of.get(replica, {}).values() if at <= now}
        return frozenset(by_partition.values())

    def wanted_at(self, replica: BrokerId) -> float | None:
        return min((at for at, _ in self._of.get(replica, {}).values()), default=None)

    def waiting_for(self, replica: BrokerId, reads: frozenset[LogRead]) -> list[tuple[Hold, Partition, LogRead]]:
        return [(*key, read) for key, (_, read) in self._of.get(replica, {}).items() if read in reads]
