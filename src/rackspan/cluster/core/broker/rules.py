"""A broker's decisions, each a method: a test that plants a mistake overrides one."""

from collections.abc import Collection, Mapping

from rackspan.acks.min_insync_racks import before_acknowledgement, before_append, watermark_may_advance
from rackspan.cluster.core.batch import Batch
from rackspan.cluster.core.broker.isr import Isr
from rackspan.cluster.core.broker.replica_state import FollowerState
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.ids import NO_EPOCH, NO_OFFSET
from rackspan.cluster.core.log import Duplicate, PartitionLog
from rackspan.model.ids import BrokerId


class BrokerRules:
    """What makes one broker differ from another; it holds no state.

    The ISR that counts against thresholds is the committed one, at all three moments; the one that holds the watermark
    back is the maximal, which includes whoever is about to join.
    """

    # The rule itself and not a call of it: it is asked three times at every produce, racks or not.
    before_append = staticmethod(before_append)
    watermark_may_advance = staticmethod(watermark_may_advance)
    before_acknowledgement = staticmethod(before_acknowledgement)

    def watermark(
        self, end_offset: int, maximal_isr: Collection[BrokerId], followers: Mapping[BrokerId, FollowerState]
    ) -> int:
        """What every member of the maximal ISR holds; `end_offset` is the leader's own."""
        lowest = end_offset
        for member in maximal_isr:
            follower = followers.get(member)
            if follower is not None and follower.end_offset < lowest:
                lowest = follower.end_offset
        return lowest

    def counted(self, isr: Isr) -> tuple[BrokerId, ...]:
        """Who counts against the thresholds."""
        return isr.committed

    def maximal(self, isr: Isr) -> tuple[BrokerId, ...]:
        """Whom the watermark waits for."""
        return isr.maximal

    def is_dead(self, error: KafkaError) -> bool:
        """Whether an ISR change refused like this can never be accepted any more, and so may be taken back."""
        return error is KafkaError.INELIGIBLE_REPLICA

    def has_caught_up(self, follower: FollowerState, high_watermark: int, epoch_start: int) -> bool:
        """At the watermark is not enough: a new leader's may be behind what its epoch inherited (KAFKA-7128)."""
        return follower.end_offset >= high_watermark and follower.end_offset >= epoch_start

    def is_out_of_sync(self, follower: FollowerState, end_offset: int, now: int, lag_max_ms: int) -> bool:
        """Behind, and not once caught up for longer than `replica.lag.time.max.ms`."""
        return follower.end_offset < end_offset and now - follower.caught_up_at > lag_max_ms

    def counts(self, broker_epoch: int, registered_epoch: int) -> bool:
        """Whether a fetch is from the process the image knows: a broker that moved to another rack is a new one."""
        return broker_epoch == registered_epoch

    def duplicate_waits(self) -> bool:
        """A retry is acknowledged by the same rule as the original."""
        return True

    def on_resigning(self) -> KafkaError:
        """What who waits is told when the leadership ends: whether the record stays, another leader will say."""
        return KafkaError.NOT_LEADER_OR_FOLLOWER

    def standing(self, log: PartitionLog, batch: Batch) -> KafkaError | Duplicate:
        """Whether the batch is its producer's next: NONE, why not, or where it stands already."""
        return log.check(batch) if batch.producer_id >= 0 else KafkaError.NONE

    def kept_when_following(self, log: PartitionLog) -> int:
        """How much of its log a follower of a new leadership keeps: all, until the leader says where they part."""
        return log.end_offset

    def kept_when_diverging(self, log: PartitionLog, leader_epoch: int, leader_end: int) -> int:
        """Where the logs may still agree, as far as the leader's `leader_epoch` ends at `leader_end` (KIP-101, KIP-279).

        Where this log knows that epoch: the smaller end of it. Else the end of the largest epoch below.
        """
        own_epoch, own_end = log.end_offset_for_epoch(leader_epoch)
        if own_end == NO_OFFSET or own_epoch == NO_EPOCH:
            return min(leader_end, log.end_offset)
        return min(leader_end, own_end) if own_epoch == leader_epoch else own_end

    def outruns(self, answered_version: int, known_version: int) -> bool:
        """Whether an AlterPartition answer was counted under thresholds this broker has not heard of yet.

        Then only the image may speak: it brings them first. Else the watermark would move under the old ones.
        """
        return answered_version > known_version

    def acts_on(self, registered_epoch: int | None, broker_epoch: int) -> bool:
        """Whether an image holds this very process's registration; an older one has roles for who it was before."""
        return registered_epoch == broker_epoch
