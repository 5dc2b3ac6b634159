"""A broker's decisions, each a method: a test that plants a mistake overrides one."""

from collections.abc import Collection, Mapping

from rackspan.acks.min_insync_racks import before_acknowledgement, before_append, watermark_may_advance
from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker.replica_state import FollowerState, Isr
from rackspan.cluster.core.ids import NO_EPOCH, NO_OFFSET
from rackspan.cluster.core.log import Duplicate, PartitionLog
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId


class BrokerRules:
    """The decisions of a broker as leader and as follower. Without state.

    At all three checks the committed ISR counts against the thresholds. The high watermark waits for the maximal ISR, which
    includes the members about to join.
    """

    # The functions themselves and no wrappers: they are called three times at every produce, racks or not.
    before_append = staticmethod(before_append)
    watermark_may_advance = staticmethod(watermark_may_advance)
    before_acknowledgement = staticmethod(before_acknowledgement)

    def watermark(
        self, end_offset: int, maximal_isr: Collection[BrokerId], followers: Mapping[BrokerId, FollowerState]
    ) -> int:
        """The offset up to which every member of the maximal ISR has the log; `end_offset` is the leader's own."""
        lowest = end_offset
        for member in maximal_isr:
            follower = followers.get(member)
            if follower is not None and follower.end_offset < lowest:
                lowest = follower.end_offset
        return lowest

    def counted(self, isr: Isr) -> tuple[BrokerId, ...]:
        """The members that count against the thresholds."""
        return isr.committed

    def maximal(self, isr: Isr) -> tuple[BrokerId, ...]:
        """The members that the high watermark waits for."""
        return isr.maximal

    def is_dead(self, error: ErrorCode) -> bool:
        """Whether a change refused with this error can never be accepted any more, and so may be withdrawn."""
        return error is ErrorCode.INELIGIBLE_REPLICA

    def has_caught_up(self, follower: FollowerState, high_watermark: int, epoch_start: int) -> bool:
        """Reaching the high watermark is not enough: a new leader's may be below its epoch's start (KAFKA-7128)."""
        return follower.end_offset >= high_watermark and follower.end_offset >= epoch_start

    def is_out_of_sync(self, follower: FollowerState, end_offset: int, now: int, lag_max_ms: int) -> bool:
        """Whether the follower is behind, and not caught up at any time in the last `replica.lag.time.max.ms`."""
        return follower.end_offset < end_offset and now - follower.caught_up_at > lag_max_ms

    def counts(self, broker_epoch: int, registered_epoch: int) -> bool:
        """Whether a fetch is from the process that the image has: a broker that moved to another rack is a new process."""
        return broker_epoch == registered_epoch

    def duplicate_waits(self) -> bool:
        """A retry is acknowledged by the same rule as the original."""
        return True

    def on_resigning(self) -> ErrorCode:
        """The error for produces that wait when the leadership ends. The next leader decides whether their records stay."""
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def sequence_check(self, log: PartitionLog, batch: RecordBatch) -> ErrorCode | Duplicate:
        """NONE if the batch is its producer's next, the error if not, or where the log has it already."""
        return log.check(batch) if batch.producer_id >= 0 else ErrorCode.NONE

    def kept_when_following(self, log: PartitionLog) -> int:
        """The offset below which a follower of a new leadership keeps its log: its end. Truncation waits for a divergence."""
        return log.end_offset

    def kept_when_diverging(self, log: PartitionLog, leader_epoch: int, leader_end: int) -> int:
        """The offset below which the logs may agree, given that the leader's `leader_epoch` ends at `leader_end`.

        If this log has that epoch, the smaller of its two ends; else the end of the largest epoch below (KIP-101, KIP-279).
        """
        own_epoch, own_end = log.end_offset_for_epoch(leader_epoch)
        if own_end == NO_OFFSET or own_epoch == NO_EPOCH:
            return min(leader_end, log.end_offset)
        return min(leader_end, own_end) if own_epoch == leader_epoch else own_end

    def outruns(self, response_version: int, image_version: int) -> bool:
        """Whether an AlterPartition response was counted by thresholds that this broker's image does not have yet.

        Such a response is not applied: the image will bring the thresholds and the ISR together. Else the high watermark
        would move under the old thresholds.
        """
        return response_version > image_version

    def acts_on(self, registered_epoch: int | None, broker_epoch: int) -> bool:
        """Whether an image has this very process's registration. The roles in an older one are for an earlier process."""
        return registered_epoch == broker_epoch
