"""All the partitions that one broker leads: produces, its followers' fetches, the ISR, the clock."""

from rackspan.cluster.core.broker.broker_state import BrokerState
from rackspan.cluster.core.broker.leadership.fetch_sessions import (
    FetchSession,
    next_fetched,
    not_led,
    position_error,
    session_error,
)
from rackspan.cluster.core.broker.leadership.isr import IsrMaintenance
from rackspan.cluster.core.broker.leadership.leader import Leader
from rackspan.cluster.core.coordination import INTERNAL_TOPICS
from rackspan.cluster.core.ids import TopicId
from rackspan.cluster.core.messages import (
    AlterPartitionResponse,
    DeleteRecords,
    DeleteRecordsResponse,
    FetchedPartition,
    FetchPosition,
    LeadershipChanged,
    Produce,
    ProduceResponse,
    ReplicaFetch,
    ReplicaFetchResponse,
    Respond,
    Send,
    Warned,
    WatermarkMoved,
)
from rackspan.cluster.core.metadata import PartitionState
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition


class Leaderships:
    """An idle partition costs nothing: the ordered sets below hold those that need work."""

    def __init__(self, shared: BrokerState) -> None:
        self._shared = shared
        self.leaders: dict[TopicPartition, Leader] = {}
        self._sessions: dict[BrokerId, FetchSession] = {}
        self._woken: dict[BrokerId, None] = {}
        """Followers whose parked fetch may get a response."""
        self._lagging: dict[TopicPartition, None] = {}
        """Partitions where a member of the ISR is behind, or was recently."""
        self._delayed: dict[TopicPartition, None] = {}
        """Partitions where a produce waits for the high watermark, or did recently."""
        self._isrs = IsrMaintenance(shared)
        self._next_lag_check = 0
        self._next_retention_check: int | None = None
        self._warned_of_bound: set[tuple[TopicPartition, TopicId]] = set()

    # Leaderships.

    def lead(self, now: int, partition: TopicPartition, topic_id: TopicId, state: PartitionState) -> None:
        """Begin a leadership, or take a newer state of the same one."""
        leader = self.leaders.get(partition)
        if leader is None or leader.leader_epoch != state.leader_epoch or leader.topic_id != topic_id:
            self._begin(now, partition, topic_id, state)
        elif leader.update(state, now):
            self._isrs.drop(partition)
            self._settle(leader)
            self._isrs.propose_joiners(now, leader)

    def _begin(self, now: int, partition: TopicPartition, topic_id: TopicId, state: PartitionState) -> None:
        self.resign(partition)
        shared = self._shared
        leader = self.leaders[partition] = Leader(
            shared.id,
            partition,
            shared.log(partition, topic_id),
            state,
            shared.leader_config(partition.topic),
            shared.rules,
            shared.counters,
            now,
        )
        self._lagging[partition] = None
        self._shared.effects.append(LeadershipChanged(partition, True, state.leader_epoch))
        self._settle(leader)

    def resign(self, partition: TopicPartition) -> None:
        """End a leadership. Produces that wait get an error; followers declare their positions to the next leader."""
        leader = self.leaders.pop(partition, None)
        if leader is None:
            return
        self._isrs.drop(partition)
        for session in self._sessions.values():
            session.forget(partition)
        self._shared.effects.extend(leader.resigned())
        self._shared.effects.append(LeadershipChanged(partition, False, leader.leader_epoch))

    def reload_configs(self) -> None:
        """Read configs, racks and brokers from the new metadata, and move no high watermark yet.

        The same records may change a partition's thresholds and its ISR. Applied one after the other, they would form a pair
        that was never in force, and the high watermark would move under it.
        """
        self._shared.forget_configs()
        for leader in self.leaders.values():
            leader.config = self._shared.leader_config(leader.partition.topic)

    def settle_all(self, now: int) -> None:
        """Apply the new configs: move high watermarks, acknowledge, propose joiners."""
        for leader in self.leaders.values():
            self._settle(leader)
            self._isrs.propose_joiners(now, leader)
        self._count_uncounted(now)

    def start_over(self) -> None:
        """Drop requests under way, under a new broker epoch."""
        self._isrs.start_over()

    # Produces.

    def produce(self, now: int, message: Produce) -> None:
        leader = self.leaders.get(message.partition)
        if leader is None:
            self._shared.effects.append(
                Respond(message.correlation_id, ProduceResponse(self._not_led_error(message.partition)))
            )
            return
        end = leader.log.end_offset
        response = leader.produce(now, message)
        if response is not None:
            self._shared.effects.append(Respond(message.correlation_id, response))
        else:
            self._delayed[message.partition] = None
        if leader.log.end_offset != end:
            self._appended(leader)
        self._settle(leader)

    def _not_led_error(self, partition: TopicPartition) -> ErrorCode:
        known = self._shared.image.partition(partition) is not None
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _appended(self, leader: Leader) -> None:
        if leader.followers:
            self._lagging[leader.partition] = None
            self._wake(leader)
        retained = leader.config.retained_bytes
        if retained is not None and leader.log.trim(retained) and leader.config.bounded_by_cluster:
            self._warn_of_bound(leader)

    def _warn_of_bound(self, leader: Leader) -> None:
        """Once a partition and topic id."""
        if (leader.partition, leader.topic_id) in self._warned_of_bound:
            return
        self._warned_of_bound.add((leader.partition, leader.topic_id))
        topic, partition = leader.partition
        line = (
            f"{topic}-{partition} loses its oldest records: its log is larger than {self._shared.settings.log_max_bytes} "
            "bytes, the bound of this cluster, which is in memory; set retention.bytes or raise log_max_bytes"
        )
        self._shared.effects.append(Warned(line))

    def delete_records(self, message: DeleteRecords) -> None:
        self._shared.effects.append(Respond(message.correlation_id, self._deleted(message)))

    def _deleted(self, message: DeleteRecords) -> DeleteRecordsResponse:
        """Source: Kafka's ReplicaManager.deleteRecordsOnLocalLog, Partition.deleteRecordsOnLeader."""
        topic = message.partition.topic
        if topic in INTERNAL_TOPICS:
            return DeleteRecordsResponse(ErrorCode.INVALID_TOPIC_EXCEPTION)
        leader = self.leaders.get(message.partition)
        if leader is None:
            return DeleteRecordsResponse(self._not_led_error(message.partition))
        if self._shared.is_kept_whole(topic):
            return DeleteRecordsResponse(ErrorCode.POLICY_VIOLATION)
        log = leader.log
        offset = log.high_watermark if message.offset == -1 else message.offset
        if not 0 <= offset <= log.high_watermark:
            return DeleteRecordsResponse(ErrorCode.OFFSET_OUT_OF_RANGE)
        log.delete_below(offset)
        return DeleteRecordsResponse(ErrorCode.NONE, log.start_offset)

    def _settle(self, leader: Leader) -> None:
        """Move the high watermark if it may move, notify parked fetches, acknowledge produces."""
        if leader.advance_watermark():
            self._shared.effects.append(WatermarkMoved(leader.partition))
            self._wake(leader)
        if leader.delayed_produces.has_reached(leader.log.high_watermark):
            self._shared.effects.extend(leader.acknowledged())

    # Followers' fetches.

    def fetch(self, now: int, message: ReplicaFetch) -> None:
        error = session_error(self._sessions, message)
        if error is None:
            return
        if error is not ErrorCode.NONE:
            self._sessions.pop(message.broker, None)
            self._send(message.broker, ReplicaFetchResponse(message.broker_epoch, message.sequence, error))
            return
        session = self._session(message)
        session.parked_until = now + self._shared.settings.fetch_max_wait_ms
        for partition in message.forgotten:
            session.forget(partition)
        for position in message.positions:
            self._declare(now, session, position)
        if session.has_updates:
            self._woken[message.broker] = None

    def _session(self, message: ReplicaFetch) -> FetchSession:
        session = self._sessions.get(message.broker)
        if session is None or message.full:
            session = FetchSession(message.broker, message.broker_epoch, message.sequence)
            self._sessions[message.broker] = session
        session.sequence = message.sequence
        return session

    def _declare(self, now: int, session: FetchSession, position: FetchPosition) -> None:
        leader = self.leaders.get(position.partition)
        if leader is None:
            session.refuse(not_led(position))
            return
        refused = position_error(leader, session.broker, position)
        if refused is not None:
            session.refuse(refused)
            return
        session.declare(position)
        if self._counts(session):
            self._count(now, leader, session, position)
        else:
            session.uncounted[position.partition] = None

    def _count(self, now: int, leader: Leader, session: FetchSession, position: FetchPosition) -> None:
        leader.fetched(now, session.broker, session.broker_epoch, position.offset)
        self._settle(leader)
        if session.broker not in leader.isr.committed:
            self._isrs.propose_joiners(now, leader)

    def _count_uncounted(self, now: int) -> None:
        """Count followers that fetched before the image had their registration, and have been idle since."""
        for session in self._sessions.values():
            if session.uncounted and self._counts(session):
                uncounted, session.uncounted = session.uncounted, {}
                for partition in uncounted:
                    self._count(now, self.leaders[partition], session, session.positions[partition])

    def _counts(self, session: FetchSession) -> bool:
        registered = self._shared.image.brokers.get(session.broker)
        return registered is not None and self._shared.rules.counts(session.broker_epoch, registered.broker_epoch)

    def _wake(self, leader: Leader) -> None:
        partition = leader.partition
        for broker in leader.followers:
            session = self._sessions.get(broker)
            if session is not None and partition in session.positions:
                session.ready[partition] = None
                if session.parked_until is not None:
                    self._woken[broker] = None

    def respond_woken(self) -> None:
        """Respond to each parked fetch that has an update; called once a message, after all that it changed."""
        if not self._woken:
            return
        woken, self._woken = self._woken, {}
        for broker in woken:
            session = self._sessions.get(broker)
            if session is not None and session.parked_until is not None:
                self._respond(session, even_if_empty=False)

    def _respond(self, session: FetchSession, even_if_empty: bool) -> None:
        partitions = self._updates(session)
        if partitions or even_if_empty:
            session.parked_until = None
            response = ReplicaFetchResponse(session.broker_epoch, session.sequence, ErrorCode.NONE, tuple(partitions))
            self._send(session.broker, response)

    def _updates(self, session: FetchSession) -> list[FetchedPartition]:
        updates, session.errors = session.errors, []
        ready, session.ready = session.ready, {}
        left = self._shared.settings.fetch_max_bytes
        for partition in ready:
            if left <= 0:
                session.ready[partition] = None
                continue
            fetched = self._next_fetched(session, partition, left)
            if fetched is not None:
                updates.append(fetched)
                left -= sum(batch.size_bytes for batch in fetched.batches)
        return updates

    def _next_fetched(self, session: FetchSession, partition: TopicPartition, left: int) -> FetchedPartition | None:
        leader, position = self.leaders[partition], session.positions[partition]
        return next_fetched(leader, session, position, min(left, self._shared.settings.fetch_max_partition_bytes))

    def _send(self, broker: BrokerId, response: ReplicaFetchResponse) -> None:
        self._shared.effects.append(Send(broker, response))

    # The ISR.

    def altered(self, now: int, response: AlterPartitionResponse) -> None:
        for leader, may_propose in self._isrs.altered(self.leaders, response):
            self._settle(leader)
            if may_propose:
                self._isrs.propose_joiners(now, leader)

    def request_changes(self, now: int) -> None:
        """Send AlterPartition if due; called once a message and at every tick."""
        self._isrs.request_changes(now)

    # The clock.

    def tick(self, now: int) -> None:
        for session in self._sessions.values():
            if session.parked_until is not None and session.parked_until <= now:
                self._respond(session, even_if_empty=True)
        self._expire(now)
        self._expire_records(now)
        if now >= self._next_lag_check:
            # Kafka checks every half of the limit; a quarter makes "out for one and a half times the limit" a rare end.
            self._next_lag_check = now + self._shared.settings.replica_lag_time_max_ms // 4
            self._remove_stragglers(now)

    def _expire_records(self, now: int) -> None:
        """Delete records older than retention.ms. A follower deletes them with the next records that it copies."""
        due, interval_ms = self._next_retention_check, self._shared.settings.retention_check_interval_ms
        if due is None:
            self._next_retention_check = now + interval_ms
        elif due <= now:
            self._next_retention_check = now + interval_ms
            for leader in self.leaders.values():
                if leader.config.retention_ms is not None:
                    leader.log.expire(now - leader.config.retention_ms)

    def _expire(self, now: int) -> None:
        for partition in list(self._delayed):
            leader = self.leaders.get(partition)
            if leader is not None:
                self._shared.effects.extend(leader.timed_out(now))
            if leader is None or not leader.delayed_produces:
                del self._delayed[partition]

    def _remove_stragglers(self, now: int) -> None:
        for partition in list(self._lagging):
            leader = self.leaders.get(partition)
            if leader is None or not leader.has_members_behind:
                del self._lagging[partition]
            else:
                self._isrs.propose_without_stragglers(now, leader)
