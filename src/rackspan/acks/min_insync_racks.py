"""min.insync.racks: when a produce with acks=all is accepted, acknowledged or refused. One rule, applied at three points.

    before the append          on the leader; a refusal writes nothing
    before the watermark moves an ISR that misses a threshold does not advance the high watermark
    before the acknowledgement the ISR that advanced the watermark must still meet both thresholds

At all three the ISR is the one that the controller has committed, in the leader's copy of the metadata: a pending addition
does not count. A duplicate of an idempotent batch is checked as well; it waits for the watermark like the original. acks=0
and acks=1 are never checked. Source: min.insync.racks, Produce Acknowledgement Logic. The second and third point are an addition:
without them a waiting request is acknowledged when the ISR shrinks meanwhile.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from rackspan.errors import UsageError
from rackspan.model import UNNAMED_RACK, Broker, BrokerId, RackId

ACKS_ALL: Final = -1


class ProduceVerdict(Enum):
    """The outcome of a produce to one partition. A refusal is an expected outcome, so it is a value and no exception."""

    ACCEPT = auto()
    NOT_ENOUGH_REPLICAS = auto()
    NOT_ENOUGH_RACKS = auto()
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = auto()
    NOT_ENOUGH_RACKS_AFTER_APPEND = auto()


class Threshold(Enum):
    """The config that an ISR misses."""

    REPLICAS = auto()
    RACKS = auto()


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The thresholds of a partition's ISR. Both are at least 1; 1 for racks, the default, requires nothing."""

    min_insync_replicas: int = 1
    min_insync_racks: int = 1

    def __post_init__(self) -> None:
        for key, value in (("replicas", self.min_insync_replicas), ("racks", self.min_insync_racks)):
            if value < 1:
                raise UsageError(f"min.insync.{key} is {value}, expected a whole number of at least 1")

    def of_partition(self, replication_factor: int) -> "Thresholds":
        """The thresholds of a partition with so many replicas: min.insync.replicas is at most their number.

        Source: Kafka's Partition.effectiveMinIsr and PartitionChangeBuilder; Kafka 3.9 and 4.1 acknowledge acks=all with
        one replica and min.insync.replicas=2. Racks are not lowered: the operator has to fix a value that is impossible.
        """
        if self.min_insync_replicas <= replication_factor:
            return self
        return replace(self, min_insync_replicas=replication_factor)


@dataclass(frozen=True, slots=True)
class RackBits:
    """Each broker's rack as one bit: computed once per metadata image, used at every produce.

    `racks[i]` is the rack of bit i. Bit 0 is the unnamed rack, which all brokers without `broker.rack` share. A broker
    that the image does not list adds no rack, since its rack is unknown.
    """

    bit_of: Mapping[BrokerId, int]
    racks: tuple[RackId, ...]

    def count(self, isr: Iterable[BrokerId]) -> int:
        """Distinct racks of an ISR: O(|ISR|), one integer, no set."""
        return self._bits(isr).bit_count()

    def names(self, isr: Iterable[BrokerId]) -> tuple[RackId, ...]:
        """The racks of an ISR by name, for a message."""
        bits = self._bits(isr)
        return tuple(rack for bit, rack in enumerate(self.racks) if bits >> bit & 1)

    def _bits(self, isr: Iterable[BrokerId]) -> int:
        bits, bit_of = 0, self.bit_of
        for broker in isr:
            bits |= bit_of.get(broker, 0)
        return bits


def rack_bits(brokers: Iterable[Broker]) -> RackBits:
    rack_of = {broker.id: broker.rack or UNNAMED_RACK for broker in brokers}
    racks = (UNNAMED_RACK, *sorted(set(rack_of.values()) - {UNNAMED_RACK}))
    bit_of_rack = {rack: bit for bit, rack in enumerate(racks)}
    return RackBits(MappingProxyType({broker: 1 << bit_of_rack[rack] for broker, rack in rack_of.items()}), racks)


def is_checked(acks: int) -> bool:
    """Whether a produce with these acks is checked against the thresholds, as with min.insync.replicas."""
    return acks == ACKS_ALL


def missed_threshold(isr: Collection[BrokerId], racks: RackBits, thresholds: Thresholds) -> Threshold | None:
    """The first threshold an ISR misses, replicas before racks; None if both are met.

    Racks are not counted if the value is 1: without the feature, produce costs what it did.
    """
    if len(isr) < thresholds.min_insync_replicas:
        return Threshold.REPLICAS
    if thresholds.min_insync_racks > 1 and racks.count(isr) < thresholds.min_insync_racks:
        return Threshold.RACKS
    return None


def before_append(isr: Collection[BrokerId], racks: RackBits, thresholds: Thresholds) -> ProduceVerdict:
    """The verdict on the leader, before anything is written."""
    return _BEFORE_APPEND[missed_threshold(isr, racks, thresholds)]


def watermark_may_advance(isr: Collection[BrokerId], racks: RackBits, thresholds: Thresholds) -> bool:
    """Whether the high watermark may pass what this ISR holds (for replicas Kafka checks this since KIP-966).

    While it may not, a produce waits. It ends with REQUEST_TIMED_OUT or with the verdict of `before_acknowledgement`.
    """
    return missed_threshold(isr, racks, thresholds) is None


def before_acknowledgement(isr: Collection[BrokerId], racks: RackBits, thresholds: Thresholds) -> ProduceVerdict:
    """The verdict before the response is sent; `isr` is the one that advanced the watermark past the record."""
    return _BEFORE_ACKNOWLEDGEMENT[missed_threshold(isr, racks, thresholds)]


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
