"""Follower and leader: replica fetches."""

from dataclasses import dataclass

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.ids import NO_OFFSET, TopicId
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True)
class FetchPosition:
    """A follower's end offset in one partition, and the high watermark it last received."""

    partition: TopicPartition
    topic_id: TopicId
    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class ReplicaFetch:
    """A follower's fetch of all the partitions that it follows on one leader.

    Incremental: `positions` holds what changed since number `sequence` - 1, `forgotten` what is no longer followed; with
    `full` the leader starts a new session. Numbers rise within a broker epoch; a leader handles only the newest.
    """

    broker: BrokerId
    broker_epoch: int
    sequence: int
    full: bool
    positions: tuple[FetchPosition, ...]
    forgotten: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """Records and watermarks of one partition, for a follower whose log ends at `offset` with a record of `last_fetched_epoch`.

    A follower whose log ends elsewhere drops it: the records would leave a hole, or follow another leader's record.
    `diverging` is the (epoch, end offset) where the logs part (KIP-595): truncate and fetch again.
    """

    partition: TopicPartition
    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    error: ErrorCode
    high_watermark: int = NO_OFFSET
    log_start: int = 0
    batches: tuple[RecordBatch, ...] = ()
    diverging: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ReplicaFetchResponse:
    """An error other than NONE concerns the session: the follower starts a new one."""

    broker_epoch: int
    sequence: int
    error: ErrorCode
    partitions: tuple[FetchedPartition, ...] = ()
