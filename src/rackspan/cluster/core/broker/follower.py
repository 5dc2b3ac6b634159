"""One partition as a follower has it: copies batches, truncates where its log and the leader's part.

Truncation is by leader epoch, never to the watermark (KIP-101): a watermark lags behind what was acknowledged.
"""

from enum import Enum

from rackspan.cluster.core.broker.rules import BrokerRules
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.log import PartitionLog
from rackspan.cluster.core.messages import FetchedPartition, FetchPosition
from rackspan.model.ids import BrokerId, TopicPartition


class Heeded(Enum):
    """What became of a leader's news."""

    STALE = "stale"
    """For another position or epoch: nothing was done, the position is to be declared again."""
    COPIED = "copied"
    WATERMARK = "watermark"
    """Nothing to copy."""
    TRUNCATED = "truncated"
    REFUSED = "refused"
    """The leader cannot serve this now; ask again after a while."""


class Follower:
    """One follower of one leadership. `leader` is NO_LEADER where there is none to follow."""

    __slots__ = ("_rules", "leader", "leader_epoch", "log", "partition")

    def __init__(
        self, partition: TopicPartition, log: PartitionLog, leader: BrokerId, leader_epoch: int, rules: BrokerRules
    ) -> None:
        self.partition, self.log, self.leader, self.leader_epoch = partition, log, leader, leader_epoch
        self._rules = rules
        kept = rules.kept_when_following(log)
        if kept < log.end_offset:
            log.truncate_to(kept)

    def position(self) -> FetchPosition:
        log = self.log
        return FetchPosition(
            self.partition, log.topic_id, self.leader_epoch, log.end_offset, log.last_epoch, log.high_watermark
        )

    def heed(self, fetched: FetchedPartition) -> Heeded:
        log = self.log
        if fetched.leader_epoch != self.leader_epoch:
            return Heeded.STALE
        if fetched.offset != log.end_offset or fetched.last_fetched_epoch != log.last_epoch:
            return Heeded.STALE
        if fetched.error is not KafkaError.NONE:
            return self._refused(fetched)
        if fetched.diverging is not None:
            self.truncate(*fetched.diverging)
            return Heeded.TRUNCATED
        return self._copied(fetched)

    def _copied(self, fetched: FetchedPartition) -> Heeded:
        log = self.log
        for batch in fetched.batches:
            log.append(batch)
        # Never back within a leadership: an answer that was overtaken says less.
        log.high_watermark = max(log.high_watermark, min(fetched.high_watermark, log.end_offset))
        log.delete_below(min(fetched.log_start, log.end_offset))
        return Heeded.COPIED if fetched.batches else Heeded.WATERMARK

    def _refused(self, fetched: FetchedPartition) -> Heeded:
        if fetched.error is not KafkaError.OFFSET_OUT_OF_RANGE:
            return Heeded.REFUSED
        self.log.restart_at(fetched.log_start)
        return Heeded.TRUNCATED

    def truncate(self, leader_epoch: int, leader_end: int) -> None:
        """Cut back to where the logs may still agree; the next fetch tells whether they do."""
        self.log.truncate_to(self._rules.kept_when_diverging(self.log, leader_epoch, leader_end))
