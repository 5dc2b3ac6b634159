"""Fetch sessions on the leader: one a follower. A fetch is parked until one of its partitions has an update.

The cost of a response grows with what has changed, not with what is followed: a partition is checked when it was declared
or appended to, or when its high watermark moved.
"""

from dataclasses import dataclass, field

from rackspan.cluster.core.broker.leadership.leader import Leader
from rackspan.cluster.core.ids import NO_EPOCH, NO_OFFSET
from rackspan.cluster.core.messages import FetchedPartition, FetchPosition, ReplicaFetch
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition


@dataclass(slots=True)
class FetchSession:
    """The session of one follower: its positions, the partitions that may have an update, the watermarks sent to it.

    `parked_until` in ms, None while no fetch is parked. The ordered sets are dicts: equal runs must give equal responses.
    """

    broker: BrokerId
    broker_epoch: int
    sequence: int
    positions: dict[TopicPartition, FetchPosition] = field(default_factory=dict)
    ready: dict[TopicPartition, None] = field(default_factory=dict)
    sent: dict[TopicPartition, int] = field(default_factory=dict)
    uncounted: dict[TopicPartition, None] = field(default_factory=dict)
    """Declared by a process that was not in the image yet. They count once it is."""
    errors: list[FetchedPartition] = field(default_factory=list)
    parked_until: int | None = None

    def declare(self, position: FetchPosition) -> None:
        self.positions[position.partition] = position
        self.sent[position.partition] = position.high_watermark
        self.ready[position.partition] = None

    def forget(self, partition: TopicPartition) -> None:
        self.positions.pop(partition, None)
        self.ready.pop(partition, None)
        self.sent.pop(partition, None)
        self.uncounted.pop(partition, None)

    def refuse(self, error: FetchedPartition) -> None:
        """Send the error with the next response. The follower then declares the partition again."""
        self.forget(error.partition)
        self.errors.append(error)

    @property
    def has_updates(self) -> bool:
        return bool(self.ready or self.errors)


def session_error(sessions: dict[BrokerId, FetchSession], message: ReplicaFetch) -> ErrorCode | None:
    """NONE if this is the session's next fetch or a full one. None if it is an old one, which gets no response."""
    session = sessions.get(message.broker)
    if session is not None and (message.broker_epoch, message.sequence) <= (session.broker_epoch, session.sequence):
        return None
    is_next = session is not None and (message.broker_epoch, message.sequence) == (
        session.broker_epoch,
        session.sequence + 1,
    )
    return ErrorCode.NONE if message.full or is_next else ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def not_led(position: FetchPosition) -> FetchedPartition:
    """The refusal of a partition that is led elsewhere."""
    return _error(position, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def position_error(leader: Leader, follower: BrokerId, position: FetchPosition) -> FetchedPartition | None:
    """Why a follower cannot be served at its position; None if it can.

    A follower that is not among the replicas in the leader's image has to fetch again: an append would not wake its
    session, and its progress would not count.
    """
    if leader.topic_id != position.topic_id:
        return _error(position, ErrorCode.INCONSISTENT_TOPIC_ID)
    if leader.leader_epoch != position.leader_epoch:
        older = position.leader_epoch < leader.leader_epoch
        return _error(position, ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)
    if follower not in leader.followers:
        return _error(position, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return _divergence(leader, position)


def _divergence(leader: Leader, position: FetchPosition) -> FetchedPartition | None:
    """Where the logs part, or that the position is outside the leader's (KIP-595)."""
    log = leader.log
    if position.offset < log.start_offset:
        return _error(position, ErrorCode.OFFSET_OUT_OF_RANGE, log.start_offset)
    if position.last_fetched_epoch == NO_EPOCH:
        beyond = position.offset > log.end_offset
        return _error(position, ErrorCode.OFFSET_OUT_OF_RANGE, log.start_offset) if beyond else None
    epoch, end = log.end_offset_for_epoch(position.last_fetched_epoch)
    if epoch == position.last_fetched_epoch and position.offset <= end:
        return None
    if end == NO_OFFSET:
        # The epoch is not in this log: the follower compares from the leader's last one.
        epoch, end = log.last_epoch, log.end_offset
    return _fetched(position, ErrorCode.NONE, NO_OFFSET, log.start_offset, diverging=(epoch, end))


def _error(position: FetchPosition, error: ErrorCode, log_start: int = 0) -> FetchedPartition:
    return _fetched(position, error, NO_OFFSET, log_start)


def _fetched(
    position: FetchPosition,
    error: ErrorCode,
    high_watermark: int,
    log_start: int,
    diverging: tuple[int, int] | None = None,
) -> FetchedPartition:
    return FetchedPartition(
        position.partition,
        position.leader_epoch,
        position.offset,
        position.last_fetched_epoch,
        error,
        high_watermark,
        log_start,
        diverging=diverging,
    )


def next_fetched(
    leader: Leader, session: FetchSession, position: FetchPosition, max_bytes: int
) -> FetchedPartition | None:
    """The records and the high watermark that the follower does not have yet. None if there are none."""
    log = leader.log
    if position.offset < log.start_offset:
        return _error(position, ErrorCode.OFFSET_OUT_OF_RANGE, log.start_offset)
    batches = () if position.offset >= log.end_offset else log.read(position.offset, log.end_offset, max_bytes)
    if not batches and session.sent[position.partition] == log.high_watermark:
        return None
    session.sent[position.partition] = log.high_watermark
    return FetchedPartition(
        position.partition,
        position.leader_epoch,
        position.offset,
        position.last_fetched_epoch,
        ErrorCode.NONE,
        log.high_watermark,
        log.start_offset,
        batches,
    )
