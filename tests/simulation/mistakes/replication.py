"""Mistakes, each one method of a rule overridden. The product holds none of them; planted.py says where each is found."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from rackspan.acks import ProduceVerdict, RackBits, Thresholds
from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker import BrokerRules
from rackspan.cluster.core.broker.replica_state import FollowerState, Isr
from rackspan.cluster.core.controller import Conditions, ControllerRules, PartitionChange
from rackspan.cluster.core.log import Duplicate, PartitionLog
from rackspan.cluster.core.messages import AlterPartition, BrokerRegistration, IsrChange
from rackspan.cluster.core.metadata import NO_LEADER, BrokerImage, MetadataImage, PartitionState
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, RackId

# How racks are counted.


class ProposalAsWritten(BrokerRules):
    """Racks are counted before the append and never again."""

    def watermark_may_advance(self, isr: Collection[BrokerId], racks: RackBits, thresholds: Thresholds) -> bool:
        return super().watermark_may_advance(isr, racks, Thresholds(thresholds.min_insync_replicas, 1))

    def before_acknowledgement(
        self, isr: Collection[BrokerId], racks: RackBits, thresholds: Thresholds
    ) -> ProduceVerdict:
        return super().before_acknowledgement(isr, racks, Thresholds(thresholds.min_insync_replicas, 1))


class OnlyTheCheckAfter(BrokerRules):
    """Producers get correct responses, and readers see what one rack holds: the watermark does not count racks."""

    def watermark_may_advance(self, isr: Collection[BrokerId], racks: RackBits, thresholds: Thresholds) -> bool:
        return super().watermark_may_advance(isr, racks, Thresholds(thresholds.min_insync_replicas, 1))


class CountsThePending(BrokerRules):
    """A member that is only about to join counts for its rack."""

    def counted(self, isr: Isr) -> tuple[BrokerId, ...]:
        return isr.maximal


class CountsOtherwise(BrokerRules):
    """Racks are counted by a map that is not the image's."""

    def counted_racks(self, racks: RackBits) -> RackBits:
        raise NotImplementedError

    def before_append(self, isr: Collection[BrokerId], racks: RackBits, thresholds: Thresholds) -> ProduceVerdict:
        return super().before_append(isr, self.counted_racks(racks), thresholds)

    def watermark_may_advance(self, isr: Collection[BrokerId], racks: RackBits, thresholds: Thresholds) -> bool:
        return super().watermark_may_advance(isr, self.counted_racks(racks), thresholds)

    def before_acknowledgement(
        self, isr: Collection[BrokerId], racks: RackBits, thresholds: Thresholds
    ) -> ProduceVerdict:
        return super().before_acknowledgement(isr, self.counted_racks(racks), thresholds)


class CountsBrokers(CountsOtherwise):
    """Every broker is a rack of its own."""

    def counted_racks(self, racks: RackBits) -> RackBits:
        return _own_racks(racks, list(racks.bit_of))


class CountsUnnamedAsSeveral(CountsOtherwise):
    """Every broker without a rack is a rack of its own."""

    def counted_racks(self, racks: RackBits) -> RackBits:
        return _own_racks(racks, [broker for broker, bit in racks.bit_of.items() if bit == 1])


class KeepsFirstRackMap(CountsOtherwise):
    """A broker is always counted for the first rack it was in."""

    def __init__(self) -> None:
        self._first: dict[BrokerId, RackId] = {}

    def counted_racks(self, racks: RackBits) -> RackBits:
        for broker in racks.bit_of:
            self._first.setdefault(broker, racks.names((broker,))[0])
        names = sorted(set(self._first.values()))
        return RackBits({broker: 1 << names.index(rack) for broker, rack in self._first.items()}, tuple(names))


def _own_racks(racks: RackBits, brokers: list[BrokerId]) -> RackBits:
    own = {broker: 1 << len(racks.racks) + index for index, broker in enumerate(brokers)}
    return RackBits(MappingProxyType({**racks.bit_of, **own}), (*racks.racks, *map(RackId, map(str, brokers))))


# How the watermark moves and who is acknowledged.


class AcknowledgesBeforeWatermark(BrokerRules):
    """The watermark is the leader's own end: nobody is waited for."""

    def watermark(
        self, end_offset: int, maximal_isr: Collection[BrokerId], followers: Mapping[BrokerId, FollowerState]
    ) -> int:
        return end_offset


class IgnoresSlowestMember(BrokerRules):
    """The watermark waits for all members but one."""

    def watermark(
        self, end_offset: int, maximal_isr: Collection[BrokerId], followers: Mapping[BrokerId, FollowerState]
    ) -> int:
        ends = sorted(followers[one].end_offset for one in maximal_isr if one in followers)
        return min([end_offset, *ends[1:]])


class ShrinksBeforeAgreed(BrokerRules):
    """The leader stops waiting for a slow follower as soon as it has sent AlterPartition."""

    def maximal(self, isr: Isr) -> tuple[BrokerId, ...]:
        return isr.committed if isr.pending is None else isr.pending


class IgnoresPendingMember(BrokerRules):
    """The watermark does not wait for who is about to join, though the controller may have let it in."""

    def maximal(self, isr: Isr) -> tuple[BrokerId, ...]:
        return isr.committed


class AcknowledgesDuplicatesAtOnce(BrokerRules):
    """A retry of a batch the log holds is acknowledged without waiting for anybody."""

    def duplicate_waits(self) -> bool:
        return False


class AppendsRetries(BrokerRules):
    """A retry of an idempotent batch is appended a second time."""

    def sequence_check(self, log: PartitionLog, batch: RecordBatch) -> ErrorCode | Duplicate:
        return ErrorCode.NONE


class ForgetsProducers(BrokerRules):
    """The state of producers does not outlive a leadership."""

    def sequence_check(self, log: PartitionLog, batch: RecordBatch) -> ErrorCode | Duplicate:
        check = super().sequence_check(log, batch)
        begun, _ = log.end_offset_for_epoch(log.last_epoch)
        known = isinstance(check, Duplicate) and log.epoch_at(check.last_offset + 1) == begun
        return check if known or check is ErrorCode.NONE else ErrorCode.NONE


class AcknowledgesOnResigning(BrokerRules):
    """Who waits for a leader is acknowledged when the leadership ends."""

    def on_resigning(self) -> ErrorCode:
        return ErrorCode.NONE


# Who is in sync.


class JoinsEarly(BrokerRules):
    """A follower two records short of the watermark is called in sync."""

    def has_caught_up(self, follower: FollowerState, high_watermark: int, epoch_start: int) -> bool:
        return follower.end_offset >= high_watermark - 2


class JoinsAtWatermark(BrokerRules):
    """At the new leader's watermark, though that may be behind what its epoch inherited (KAFKA-7128)."""

    def has_caught_up(self, follower: FollowerState, high_watermark: int, epoch_start: int) -> bool:
        return follower.end_offset >= high_watermark


class RevertsOnError(BrokerRules):
    """Whatever error the controller returns, the leader goes back to the ISR it had."""

    def is_dead(self, error: ErrorCode) -> bool:
        return True


class AppliesOutrunResponses(BrokerRules):
    """An ISR counted under thresholds that the leader's image does not have yet is applied at once."""

    def outruns(self, response_version: int, image_version: int) -> bool:
        return False


class CountsAnyProcess(BrokerRules):
    """A fetch counts for the rack of its broker's last registration, whichever process sent it."""

    def counts(self, broker_epoch: int, registered_epoch: int) -> bool:
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
    """Any process with the broker's id may join the ISR, even another one than the process that caught up (KIP-903)."""

    def may_join(self, image: MetadataImage, broker: BrokerId, broker_epoch: int) -> bool:
        registered = image.brokers.get(broker)
        return registered is not None and registered.active


# Logs.


class NeverTruncates(BrokerRules):
    """A follower whose log has parted from the leader's goes on as it is."""

    def kept_when_diverging(self, log: PartitionLog, leader_epoch: int, leader_end: int) -> int:
        return log.end_offset


class TruncatesToWatermark(BrokerRules):
    """A follower cuts its log to its own watermark when it follows another leader (before KIP-101)."""

    def kept_when_following(self, log: PartitionLog) -> int:
        return log.high_watermark


# Elections.


class ElectsAnybody(ControllerRules):
    """The first replica that is alive leads, in the ISR or not."""

    def changed(self, before: PartitionState, change: PartitionChange, conditions: Conditions) -> PartitionState:
        after = super().changed(before, change, conditions)
        alive = next((one for one in after.replicas if conditions.may_lead(one)), NO_LEADER)
        if after.leader == before.leader or alive == NO_LEADER:
            return after
        isr = after.isr if alive in after.isr else (*after.isr, alive)
        return replace(after, leader=alive, isr=isr)


class ForgetsUnclean(ControllerRules):
    """A broker back from a power loss is elected as if it had kept everything (Kafka without KIP-966)."""

    def shut_down_cleanly(self, before: BrokerImage, registration: BrokerRegistration) -> bool:
        return True


class EmptiesElrOfNobody(ControllerRules):
    """A changed threshold empties the ELR of a partition whose ISR is empty: nobody can lead it any more."""

    def changed(self, before: PartitionState, change: PartitionChange, conditions: Conditions) -> PartitionState:
        after = super().changed(before, change, conditions)
        judged_anew = change == PartitionChange() and not before.isr and after.leader == NO_LEADER
        return replace(after, elr=(), partition_epoch=before.partition_epoch + 1) if judged_anew else after


class ActsBeforeKnown(BrokerRules):
    """A restarted broker takes the roles of an image that does not hold its registration yet."""

    def acts_on(self, registered_epoch: int | None, broker_epoch: int) -> bool:
        return True
