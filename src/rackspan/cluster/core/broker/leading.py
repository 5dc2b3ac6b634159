"""Everything a broker does as a leader: of produces, of its followers' fetches, of the ISR."""

from rackspan.cluster.core.broker.isr_keeping import IsrKeeping
from rackspan.cluster.core.broker.leader import Leader
from rackspan.cluster.core.broker.local import Local
from rackspan.cluster.core.broker.sessions import FetchSession, news, standing, trouble
from rackspan.cluster.core.errors import KafkaError
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
    WatermarkMoved,
)
from rackspan.cluster.core.metadata import PartitionState
from rackspan.model.ids import BrokerId, TopicPartition


class Leading:
    """Costs nothing for a partition that is idle: what has to be looked at is kept in the ordered sets below."""

    def __init__(self, local: Local) -> None:
        self._local = local
        self.leaders: dict[TopicPartition, Leader] = {}
        self._sessions: dict[BrokerId, FetchSession] = {}
        self._woken: dict[BrokerId, None] = {}
        """Followers whose parked question may have an answer."""
        self._behind: dict[TopicPartition, None] = {}
        """Where a member of the ISR is, or lately was, behind."""
        self._waited_on: dict[TopicPartition, None] = {}
        """Where a produce waits, or lately did."""
        self._isrs = IsrKeeping(local)
        self._next_lag_check = 0

    # Leaderships.

    def lead(self, now: int, partition: TopicPartition, topic_id: TopicId, state: PartitionState) -> None:
        """Begin a leadership, or go on with it under a newer state."""
        leader = self.leaders.get(partition)
        if leader is None or leader.leader_epoch != state.leader_epoch or leader.topic_id != topic_id:
            self._begin(now, partition, topic_id, state)
        elif leader.update(state, now):
            self._isrs.drop(partition)
            self._settle(leader)
            self._isrs.propose_joiners(now, leader)

    def _begin(self, now: int, partition: TopicPartition, topic_id: TopicId, state: PartitionState) -> None:
        self.resign(partition)
        leader = self.leaders[partition] = self._local.new_leader(partition, topic_id, state, now)
        self._behind[partition] = None
        self._local.effects.append(LeadershipChanged(partition, True, state.leader_epoch))
        self._settle(leader)

    def resign(self, partition: TopicPartition) -> None:
        """Cease to lead; who waits is told, followers declare themselves anew to whoever leads next."""
        leader = self.leaders.pop(partition, None)
        if leader is None:
            return
        self._isrs.drop(partition)
        for session in self._sessions.values():
            session.forget(partition)
        self._local.effects.extend(leader.resigned())
        self._local.effects.append(LeadershipChanged(partition, False, leader.leader_epoch))

    def renew_terms(self) -> None:
        """Configs, racks or brokers have changed.

        Nothing is settled yet: thresholds and an ISR that came together count together, or the watermark would move
        under a pair that never was in force.
        """
        self._local.forget_terms()
        for leader in self.leaders.values():
            leader.terms = self._local.terms(leader.partition.topic)

    def settle_all(self, now: int) -> None:
        """Let go whom the new terms let go."""
        for leader in self.leaders.values():
            self._settle(leader)
            self._isrs.propose_joiners(now, leader)
        self._count_late(now)

    def register_anew(self) -> None:
        self._isrs.register_anew()

    # Produces.

    def produce(self, now: int, message: Produce) -> None:
        leader = self.leaders.get(message.partition)
        if leader is None:
            self._local.effects.append(
                Respond(message.correlation_id, ProduceResponse(self._absence(message.partition)))
            )
            return
        end = leader.log.end_offset
        response = leader.produce(now, message)
        if response is not None:
            self._local.effects.append(Respond(message.correlation_id, response))
        else:
            self._waited_on[message.partition] = None
        if leader.log.end_offset != end:
            self._appended(leader)
        self._settle(leader)

    def _absence(self, partition: TopicPartition) -> KafkaError:
        known = self._local.image.partition(partition) is not None
        return KafkaError.NOT_LEADER_OR_FOLLOWER if known else KafkaError.UNKNOWN_TOPIC_OR_PARTITION

    def _appended(self, leader: Leader) -> None:
        if leader.followers:
            self._behind[leader.partition] = None
            self._wake(leader)
        if leader.terms.retained_bytes is not None:
            leader.log.trim(leader.terms.retained_bytes)

    def delete_records(self, message: DeleteRecords) -> None:
        self._local.effects.append(Respond(message.correlation_id, self._deleted(message)))

    def _deleted(self, message: DeleteRecords) -> DeleteRecordsResponse:
        leader = self.leaders.get(message.partition)
        if leader is None:
            return DeleteRecordsResponse(self._absence(message.partition))
        log = leader.log
        offset = log.high_watermark if message.offset == -1 else message.offset
        if not log.start_offset <= offset <= log.high_watermark:
            return DeleteRecordsResponse(KafkaError.OFFSET_OUT_OF_RANGE)
        log.delete_below(offset)
        return DeleteRecordsResponse(KafkaError.NONE, log.start_offset)

    def _settle(self, leader: Leader) -> None:
        """Move the watermark if it may, tell readers and followers, acknowledge."""
        if leader.advance_watermark():
            self._local.effects.append(WatermarkMoved(leader.partition))
            self._wake(leader)
        if leader.purgatory.has_reached(leader.log.high_watermark):
            self._local.effects.extend(leader.acknowledged())

    # Followers' fetches.

    def fetch(self, now: int, message: ReplicaFetch) -> None:
        verdict = standing(self._sessions, message)
        if verdict is None:
            return
        if verdict is not KafkaError.NONE:
            self._sessions.pop(message.broker, None)
            self._send(message.broker, ReplicaFetchResponse(message.broker_epoch, message.sequence, verdict))
            return
        session = self._session(message)
        session.parked_until = now + self._local.settings.fetch_max_wait_ms
        for partition in message.forgotten:
            session.forget(partition)
        for position in message.positions:
            self._declared(now, session, position)
        if session.has_news:
            self._woken[message.broker] = None

    def _session(self, message: ReplicaFetch) -> FetchSession:
        session = self._sessions.get(message.broker)
        if session is None or message.full:
            session = FetchSession(message.broker, message.broker_epoch, message.sequence)
            self._sessions[message.broker] = session
        session.sequence = message.sequence
        return session

    def _declared(self, now: int, session: FetchSession, position: FetchPosition) -> None:
        leader = self.leaders.get(position.partition)
        refused = trouble(leader, session.broker, position)
        if refused is not None or leader is None:
            session.refuse(
                refused or FetchedPartition(position.partition, -1, -1, -1, KafkaError.NOT_LEADER_OR_FOLLOWER)
            )
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

    def _count_late(self, now: int) -> None:
        """Followers that fetched before the image had their registration, and have been idle since."""
        for session in self._sessions.values():
            if session.uncounted and self._counts(session):
                uncounted, session.uncounted = session.uncounted, {}
                for partition in uncounted:
                    self._count(now, self.leaders[partition], session, session.positions[partition])

    def _counts(self, session: FetchSession) -> bool:
        registered = self._local.image.brokers.get(session.broker)
        return registered is not None and self._local.rules.counts(session.broker_epoch, registered.broker_epoch)

    def _wake(self, leader: Leader) -> None:
        partition = leader.partition
        for broker in leader.followers:
            session = self._sessions.get(broker)
            if session is not None and partition in session.positions:
                session.ready[partition] = None
                if session.parked_until is not None:
                    self._woken[broker] = None

    def respond_woken(self) -> None:
        """Answer every parked question that has news by now; called once a message, when all is settled."""
        if not self._woken:
            return
        woken, self._woken = self._woken, {}
        for broker in woken:
            session = self._sessions.get(broker)
            if session is not None and session.parked_until is not None:
                self._answer(session, even_if_empty=False)

    def _answer(self, session: FetchSession, even_if_empty: bool) -> None:
        partitions = self._news(session)
        if partitions or even_if_empty:
            session.parked_until = None
            response = ReplicaFetchResponse(session.broker_epoch, session.sequence, KafkaError.NONE, tuple(partitions))
            self._send(session.broker, response)

    def _news(self, session: FetchSession) -> list[FetchedPartition]:
        found, session.troubles = session.troubles, []
        ready, session.ready = session.ready, {}
        left = self._local.settings.fetch_max_bytes
        for partition in ready:
            if left <= 0:
                session.ready[partition] = None
                continue
            fetched = self._news_of(session, partition, left)
            if fetched is not None:
                found.append(fetched)
                left -= sum(batch.size_bytes for batch in fetched.batches)
        return found

    def _news_of(self, session: FetchSession, partition: TopicPartition, left: int) -> FetchedPartition | None:
        leader, position = self.leaders.get(partition), session.positions.get(partition)
        if leader is None or position is None:
            return None
        return news(leader, session, position, min(left, self._local.settings.fetch_max_partition_bytes))

    def _send(self, broker: BrokerId, response: ReplicaFetchResponse) -> None:
        self._local.effects.append(Send(broker, response))

    # The ISR.

    def altered(self, now: int, response: AlterPartitionResponse) -> None:
        for leader, may_ask_again in self._isrs.altered(self.leaders, response):
            self._settle(leader)
            if may_ask_again:
                self._isrs.propose_joiners(now, leader)

    def request_changes(self, now: int) -> None:
        """Called once a message and at every tick."""
        self._isrs.request_changes(now)

    # The clock.

    def tick(self, now: int) -> None:
        for session in self._sessions.values():
            if session.parked_until is not None and session.parked_until <= now:
                self._answer(session, even_if_empty=True)
        self._expire(now)
        if now >= self._next_lag_check:
            # Kafka looks every half of the limit; a quarter makes "out for one and a half times the limit" a rare end.
            self._next_lag_check = now + self._local.settings.replica_lag_time_max_ms // 4
            self._remove_stragglers(now)

    def _expire(self, now: int) -> None:
        for partition in list(self._waited_on):
            leader = self.leaders.get(partition)
            if leader is not None:
                self._local.effects.extend(leader.timed_out(now))
            if leader is None or not leader.purgatory:
                del self._waited_on[partition]

    def _remove_stragglers(self, now: int) -> None:
        for partition in list(self._behind):
            leader = self.leaders.get(partition)
            if leader is None or not leader.has_members_behind:
                del self._behind[partition]
            else:
                self._isrs.propose_without_stragglers(now, leader)
