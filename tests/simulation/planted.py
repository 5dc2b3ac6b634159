"""Mistakes, each one method of a rule overridden, that the simulation must catch. The product holds none of them.

`seeds` is five times the mean number of seeds a mistake was found in: missing it in so many is 1 chance in 150.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from rackspan.acks import ProduceVerdict, RackBits, Thresholds
from rackspan.acks.min_insync_racks import before_append
from rackspan.cluster.core.broker import BrokerRules
from rackspan.cluster.core.broker.replica_state import FollowerState
from rackspan.cluster.core.controller import ControllerRules
from rackspan.cluster.core.messages import AlterPartition, IsrChange
from rackspan.cluster.core.metadata import MetadataImage, PartitionState
from rackspan.model.ids import BrokerId
from tests.simulation.world import Build


class ProposalAsWritten(BrokerRules):
    """Racks are counted before the append and never again."""

    def watermark_may_advance(self, isr: Collection[BrokerId], racks: RackBits, asked: Thresholds) -> bool:
        return super().watermark_may_advance(isr, racks, Thresholds(asked.min_insync_replicas, 1))

    def before_acknowledgement(self, isr: Collection[BrokerId], racks: RackBits, asked: Thresholds) -> ProduceVerdict:
        return super().before_acknowledgement(isr, racks, Thresholds(asked.min_insync_replicas, 1))


class AcknowledgesBeforeWatermark(BrokerRules):
    """The watermark is the leader's own end: nobody is waited for."""

    def watermark(
        self, end_offset: int, maximal_isr: Collection[BrokerId], followers: Mapping[BrokerId, FollowerState]
    ) -> int:
        return end_offset


class JoinsEarly(BrokerRules):
    """A follower two records short of the watermark is called in sync."""

    def has_caught_up(self, follower: FollowerState, high_watermark: int, epoch_start: int) -> bool:
        return follower.end_offset >= high_watermark - 2


class JoinsAtWatermark(BrokerRules):
    """At the new leader's watermark, though that may be behind what its epoch inherited (KAFKA-7128)."""

    def has_caught_up(self, follower: FollowerState, high_watermark: int, epoch_start: int) -> bool:
        return follower.end_offset >= high_watermark


class CountsBrokers(BrokerRules):
    """Brokers are counted where racks should be."""

    def before_append(self, isr: Collection[BrokerId], racks: RackBits, asked: Thresholds) -> ProduceVerdict:
        return before_append(isr, racks, _in_brokers(asked))

    def watermark_may_advance(self, isr: Collection[BrokerId], racks: RackBits, asked: Thresholds) -> bool:
        return super().watermark_may_advance(isr, racks, _in_brokers(asked))

    def before_acknowledgement(self, isr: Collection[BrokerId], racks: RackBits, asked: Thresholds) -> ProduceVerdict:
        return super().before_acknowledgement(isr, racks, _in_brokers(asked))


def _in_brokers(asked: Thresholds) -> Thresholds:
    return Thresholds(max(asked.min_insync_replicas, asked.min_insync_racks), 1)


class DuplicateAnsweredAtOnce(BrokerRules):
    """A retry of a batch the log holds is acknowledged without waiting for anybody."""

    def duplicate_waits(self) -> bool:
        return False


class KeepsPurgatory(BrokerRules):
    """Who waited for a leader is still acknowledged by it after it resigned."""

    def keeps_purgatory(self) -> bool:
        return True


class ForgetsUnclean(ControllerRules):
    """A broker back from a power loss is elected as if it had kept everything (Kafka without KIP-966)."""

    def shut_down_cleanly(self, before: object, registration: object) -> bool:
        return True


class IgnoresPartitionEpoch(ControllerRules):
    """An AlterPartition is accepted upon whatever state there is."""

    def is_current(self, state: PartitionState, change: IsrChange) -> bool:
        return True


class TakesOldAttempts(ControllerRules):
    """A rejected AlterPartition whose copy arrives late is accepted."""

    def is_new_attempt(self, last: int, request: AlterPartition) -> bool:
        return True


class IgnoresBrokerEpoch(ControllerRules):
    """Whoever bears the name may join the ISR, be it another process than the one that caught up (KIP-903)."""

    def may_join(self, image: MetadataImage, broker: BrokerId, broker_epoch: int) -> bool:
        registered = image.brokers.get(broker)
        return registered is not None and registered.active


@dataclass(frozen=True, slots=True)
class Planted:
    """`world` is the kind in which it is looked for, `rules` those that may speak."""

    build: Build
    world: str
    seeds: int
    rules: frozenset[str]


PLANTED: Final[Mapping[str, Planted]] = {
    "the proposal as written": Planted(Build(ProposalAsWritten), "clean", 15, frozenset({"I1", "I5"})),
    "acknowledged before the watermark": Planted(
        Build(AcknowledgesBeforeWatermark), "clean", 10, frozenset({"I1", "I2", "I5"})
    ),
}
