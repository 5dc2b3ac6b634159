"""min.insync.racks: when a produce with acks=all is answered, and how. One rule, asked at three moments.

    before the append          on the leader; a refusal writes nothing
    before the watermark moves an ISR that misses a threshold lets no reader past what it holds
    before the acknowledgement the ISR that let the watermark pass must meet both thresholds still

At all three the ISR is the one committed by the controller as the leader knows it: a pending addition does not count.
A duplicate of an idempotent batch is no exception; it waits for the watermark like the original. acks=0 and acks=1 are
never checked. Source: min.insync.racks, Produce Acknowledgement Logic; the second and third moment are ours, since a
request that waits in the leader is otherwise acknowledged when the ISR shrinks under it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Final

from rackspan.errors import UsageError
from rackspan.model.broker import Broker
from rackspan.model.ids import UNNAMED_RACK, BrokerId, RackId

ACKS_ALL: Final = -1


class ProduceVerdict(Enum):
    """What becomes of a produce to one partition. A refusal is normal here, never an exception."""

    ACCEPT = "accept"
    NOT_ENOUGH_REPLICAS = "not-enough-replicas"
    NOT_ENOUGH_RACKS = "not-enough-racks"
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = "not-enough-replicas-after-append"
    NOT_ENOUGH_RACKS_AFTER_APPEND = "not-enough-racks-after-append"


class Threshold(Enum):
    """Which of the two an ISR misses."""

    REPLICAS = "min.insync.replicas"
    RACKS = "min.insync.racks"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a partition asks of its ISR. Both are at least 1; 1 for racks is the default and asks nothing."""

    min_insync_replicas: int = 1
    min_insync_racks: int = 1

    def __post_init__(self) -> None:
        for key, value in (("replicas", self.min_insync_replicas), ("racks", self.min_insync_racks)):
            if value < 1:
                raise UsageError(f"min.insync.{key} is {value}, but it is a whole number of at least 1; correct it")

    def of_partition(self, replication_factor: int) -> "Thresholds":
        """What a partition with so many replicas is held to: more of them in sync than there are is never asked.

        Source: Kafka's Partition.effectiveMinIsr and PartitionChangeBuilder; Kafka 3.9 and 4.1 acknowledge acks=all with
        one replica and min.insync.replicas=2. Racks are not lowered: a value that cannot be met is the operator's to mend.
        """
        if self.min_insync_replicas <= replication_factor:
            return self
        return replace(self, min_insync_replicas=replication_factor)


@dataclass(frozen=True, slots=True)
class RackBits:
    """Each broker's rack as one bit, made once for a metadata image and asked at every produce.

    `racks[i]` is the rack of bit i. Bit 0 is the unnamed rack, which all brokers without `broker.rack` share. A broker
    the image does not list adds no rack: what is not known to be elsewhere may be anywhere.
    """

    bit_of: Mapping[BrokerId, int]
    racks: tuple[RackId, ...]

    def count(self, isr: Iterable[BrokerId]) -> int:
        """Distinct racks of an ISR: O(|ISR|), one integer, no set."""
        return self._bits(isr).bit_count()

    def names(self, isr: Iterable[BrokerId]) -> tuple[RackId, ...]:
        """Those racks by name, for a message."""
        bits = self._bits(isr)
        return tuple(rack for place, rack in enumerate(self.racks) if bits >> place & 1)

    def _bits(self, isr: Iterable[BrokerId]) -> int:
        bits, bit_of = 0, self.bit_of
        for broker in isr:
            bits |= bit_of.get(broker, 0)
        return bits


def rack_bits(brokers: Iterable[Broker]) -> RackBits:
    rack_of = {broker.id: broker.rack or UNNAMED_RACK for broker in brokers}
    racks = (UNNAMED_RACK, *sorted(set(rack_of.values()) - {UNNAMED_RACK}))
    place = {rack: index for index, rack in enumerate(racks)}
    return RackBits(MappingProxyType({broker: 1 << place[rack] for broker, rack in rack_of.items()}), racks)


def is_checked(acks: int) -> bool:
    """Whether a produce is subject to either threshold, as with min.insync.replicas."""
    return acks == ACKS_ALL


def missed(isr: Collection[BrokerId], racks: RackBits, asked: Thresholds) -> Threshold | None:
    """The first threshold an ISR misses, replicas before racks; None where both are met.

    Racks are not counted where the value is 1: without the feature, produce costs what it did.
    """
    if len(isr) < asked.min_insync_replicas:
        return Threshold.REPLICAS
    if asked.min_insync_racks > 1 and racks.count(isr) < asked.min_insync_racks:
        return Threshold.RACKS
    return None


def before_append(isr: Collection[BrokerId], racks: RackBits, asked: Thresholds) -> ProduceVerdict:
    """On the leader, before anything is written."""
    return _BEFORE_APPEND[missed(isr, racks, asked)]


def watermark_may_advance(isr: Collection[BrokerId], racks: RackBits, asked: Thresholds) -> bool:
    """Whether the high watermark may pass what this ISR holds (for replicas Kafka asks this since KIP-966).

    While it may not, a waiting produce waits, and ends in REQUEST_TIMED_OUT or in what `before_acknowledgement` says.
    """
    return missed(isr, racks, asked) is None


def before_acknowledgement(isr: Collection[BrokerId], racks: RackBits, asked: Thresholds) -> ProduceVerdict:
    """Before the answer leaves; `isr` is the one that let the watermark pass the record."""
    return _BEFORE_ACKNOWLEDGEMENT[missed(isr, racks, asked)]


_BEFORE_APPEND: Final[Mapping[Threshold | None, ProduceVerdict]] = {
    None: ProduceVerdict.ACCEPT,
    Threshold.REPLICAS: ProduceVerdict.NOT_ENOUGH_REPLICAS,
    Threshold.RACKS: ProduceVerdict.NOT_ENOUGH_RACKS,
}
_BEFORE_ACKNOWLEDGEMENT: Final[Mapping[Threshold | None, ProduceVerdict]] = {
    None: ProduceVerdict.ACCEPT,
    Threshold.REPLICAS: ProduceVerdict.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    Threshold.RACKS: ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND,
}
