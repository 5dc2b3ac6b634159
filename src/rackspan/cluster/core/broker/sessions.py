"""A leader's side of its followers' fetches: one session a follower, parked until there is news.

An answer costs what has changed, not what is followed: a partition is looked at when it was declared, appended to, or
its watermark moved.
"""

from dataclasses import dataclass, field

from rackspan.cluster.core.broker.leader import Leader
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.ids import NO_EPOCH, NO_OFFSET
from rackspan.cluster.core.messages import FetchedPartition, FetchPosition, ReplicaFetch
from rackspan.model.ids import BrokerId, TopicPartition


@dataclass(slots=True)
class FetchSession:
    """One follower. `positions` is where it stands, `ready` where there may be news, `sent` the watermarks it knows.

    `parked_until` in ms, None while no question waits. The ordered sets are dicts: equal runs must give equal answers.
    """

    broker: BrokerId
    broker_epoch: int
    sequence: int
    positions: dict[TopicPartition, FetchPosition] = field(default_factory=dict)
    ready: dict[TopicPartition, None] = field(default_factory=dict)
    sent: dict[TopicPartition, int] = field(default_factory=dict)
    uncounted: dict[TopicPartition, None] = field(default_factory=dict)
    """Declared by a process that the image did not know then: to be counted when it does."""
    troubles: list[FetchedPartition] = field(default_factory=list)
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

    def refuse(self, trouble: FetchedPartition) -> None:
        """Say so in the next answer, and wait for the follower to declare the partition again."""
        self.forget(trouble.partition)
        self.troubles.append(trouble)

    @property
    def has_news(self) -> bool:
        return bool(self.ready or self.troubles)


def standing(sessions: dict[BrokerId, FetchSession], message: ReplicaFetch) -> KafkaError | None:
    """NONE where the question is the next one, None where it is an old one, which nobody waits for any more."""
    session = sessions.get(message.broker)
    if session is not None and (message.broker_epoch, message.sequence) <= (session.broker_epoch, session.sequence):
        return None
    next_one = session is not None and (message.broker_epoch, message.sequence) == (
        session.broker_epoch,
        session.sequence + 1,
    )
    return KafkaError.NONE if message.full or next_one else KafkaError.FETCH_SESSION_ID_NOT_FOUND


def trouble(leader: Leader | None, follower: BrokerId, position: FetchPosition) -> FetchedPartition | None:
    """Why a follower cannot be served at its position; None if it can.

    One that the leader's image does not count among the replicas yet asks again: nobody would wake its session, nor
    count what it holds.
    """
    if leader is None:
        return _error(position, KafkaError.NOT_LEADER_OR_FOLLOWER)
    if leader.topic_id != position.topic_id:
        return _error(position, KafkaError.INCONSISTENT_TOPIC_ID)
    if leader.leader_epoch != position.leader_epoch:
        older = position.leader_epoch < leader.leader_epoch
        return _error(position, KafkaError.FENCED_LEADER_EPOCH if older else KafkaError.UNKNOWN_LEADER_EPOCH)
    if follower not in leader.followers:
        return _error(position, KafkaError.NOT_LEADER_OR_FOLLOWER)
    return _divergence(leader, position)


def _divergence(leader: Leader, position: FetchPosition) -> FetchedPartition | None:
    """Where the logs part, or that the position is outside the leader's (KIP-595)."""
    log = leader.log
    if position.offset < log.start_offset:
        return _error(position, KafkaError.OFFSET_OUT_OF_RANGE, log.start_offset)
    if position.last_fetched_epoch == NO_EPOCH:
        beyond = position.offset > log.end_offset
        return _error(position, KafkaError.OFFSET_OUT_OF_RANGE, log.start_offset) if beyond else None
    epoch, end = log.end_offset_for_epoch(position.last_fetched_epoch)
    if epoch == position.last_fetched_epoch and position.offset <= end:
        return None
    if end == NO_OFFSET:
        # A record of an epoch this log has never seen; its follower compares from the leader's last one.
        epoch, end = log.last_epoch, log.end_offset
    return _answer(position, KafkaError.NONE, NO_OFFSET, log.start_offset, diverging=(epoch, end))


def _error(position: FetchPosition, error: KafkaError, log_start: int = 0) -> FetchedPartition:
    return _answer(position, error, NO_OFFSET, log_start)


def _answer(
    position: FetchPosition,
    error: KafkaError,
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


def news(leader: Leader, session: FetchSession, position: FetchPosition, max_bytes: int) -> FetchedPartition | None:
    """What the follower does not know yet: records, or a watermark. None if nothing."""
    log = leader.log
    if position.offset < log.start_offset:
        return _error(position, KafkaError.OFFSET_OUT_OF_RANGE, log.start_offset)
    batches = () if position.offset >= log.end_offset else log.read(position.offset, log.end_offset, max_bytes)
    if not batches and session.sent[position.partition] == log.high_watermark:
        return None
    session.sent[position.partition] = log.high_watermark
    return FetchedPartition(
        position.partition,
        position.leader_epoch,
        position.offset,
        position.last_fetched_epoch,
        KafkaError.NONE,
        log.high_watermark,
        log.start_offset,
        batches,
    )
