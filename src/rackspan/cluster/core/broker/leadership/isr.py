"""ISR maintenance on the leader: sends AlterPartition to expand or shrink the ISR.

Rules kept here: one change a partition at a time; a joiner is alive in the image and the very process that fetched
(KIP-841, KIP-903); a response counted by thresholds newer than this broker's metadata is not applied; a refusal that is not
final leaves the change pending.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rackspan.cluster.core.broker.broker_state import BrokerState
from rackspan.cluster.core.broker.leadership.leader import Leader
from rackspan.cluster.core.ids import CONTROLLER, NO_EPOCH
from rackspan.cluster.core.messages import AlterPartition, AlterPartitionResponse, IsrChange, IsrChangeResponse, Send
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition


@dataclass(slots=True)
class AlterPartitionRequests:
    """A broker's AlterPartition requests: at most one in flight, later changes wait for the next. Times in ms.

    Each has its own number, and only the response to the newest is applied. A request without a response is sent again under
    the next number. The metadata then shows which of the two the controller accepted.
    """

    waiting: dict[TopicPartition, IsrChange] = field(default_factory=dict)
    in_flight: dict[TopicPartition, IsrChange] = field(default_factory=dict)
    attempt: int = 0
    sent_at: int = 0

    def add(self, change: IsrChange) -> None:
        """Send this change with the next request."""
        self.waiting[change.partition] = change

    def drop(self, partition: TopicPartition) -> None:
        """Do not send a waiting change. One that is in flight cannot be called back."""
        self.waiting.pop(partition, None)

    def next_request(self, now: int, broker: BrokerId, broker_epoch: int, retry_ms: int) -> AlterPartition | None:
        """The request to send now, or None."""
        if self.in_flight and now - self.sent_at < retry_ms:
            return None
        self.in_flight |= self.waiting
        self.waiting.clear()
        if not self.in_flight:
            return None
        self.attempt += 1
        self.sent_at = now
        return AlterPartition(broker, broker_epoch, self.attempt, tuple(self.in_flight.values()))

    def complete(self, response: AlterPartitionResponse) -> dict[TopicPartition, IsrChange]:
        """The changes that this response is for; none if a newer request has been sent."""
        if response.attempt != self.attempt:
            return {}
        changes, self.in_flight = self.in_flight, {}
        return changes

    def clear(self) -> None:
        """Drop all changes, under a new broker epoch. The numbers go on."""
        self.waiting.clear()
        self.in_flight.clear()


class IsrMaintenance:
    """The ISRs of all partitions that one broker leads."""

    def __init__(self, shared: BrokerState) -> None:
        self._shared = shared
        self._requests = AlterPartitionRequests()

    def drop(self, partition: TopicPartition) -> None:
        """Do not request a waiting change: newer metadata or the end of the leadership has overtaken it."""
        self._requests.drop(partition)

    def start_over(self) -> None:
        """Drop all requests, under a new broker epoch."""
        self._requests.clear()

    def propose_joiners(self, now: int, leader: Leader) -> None:
        """Request that every follower that has caught up joins the ISR."""
        if leader.isr.pending is not None or len(leader.isr.committed) == len(leader.replicas):
            return
        lag = self._shared.settings.replica_lag_time_max_ms
        joiners = [broker for broker in leader.joiners(now, lag) if self._is_eligible(leader, broker)]
        if joiners:
            self._propose(leader, (*leader.isr.committed, *joiners))

    def _is_eligible(self, leader: Leader, broker: BrokerId) -> bool:
        registered = self._shared.image.brokers.get(broker)
        fetched_as = leader.followers[broker].broker_epoch
        return registered is not None and registered.active and registered.broker_epoch == fetched_as

    def propose_without_stragglers(self, now: int, leader: Leader) -> None:
        """Request that members that have been behind for too long leave the ISR."""
        if leader.isr.pending is not None:
            return
        stragglers = leader.stragglers(now, self._shared.settings.replica_lag_time_max_ms)
        if stragglers:
            self._propose(leader, tuple(member for member in leader.isr.committed if member not in stragglers))

    def _propose(self, leader: Leader, isr: tuple[BrokerId, ...]) -> None:
        ordered = tuple(replica for replica in leader.replicas if replica in isr)
        leader.isr.propose(ordered)
        members = tuple((member, self._epoch_of(leader, member)) for member in ordered)
        self._requests.add(
            IsrChange(leader.partition, leader.topic_id, leader.leader_epoch, leader.isr.partition_epoch, members)
        )

    def _epoch_of(self, leader: Leader, member: BrokerId) -> int:
        if member == self._shared.id:
            return self._shared.broker_epoch
        if member not in leader.isr.committed:
            return leader.followers[member].broker_epoch
        registered = self._shared.image.brokers.get(member)
        return NO_EPOCH if registered is None else registered.broker_epoch

    def request_changes(self, now: int) -> None:
        """Send waiting changes to the controller, and again those it has not responded to in time."""
        shared = self._shared
        request = self._requests.next_request(
            now, shared.id, shared.broker_epoch, shared.settings.alter_partition_retry_ms
        )
        if request is not None:
            shared.effects.append(Send(CONTROLLER, request))

    def altered(
        self, leaders: Mapping[TopicPartition, Leader], response: AlterPartitionResponse
    ) -> Iterator[tuple[Leader, bool]]:
        """Apply the controller's response: each leader whose maximal ISR has changed, and whether to propose joiners.

        A refused joiner is not proposed again until the metadata or its next fetch gives a reason. One reason is that the
        broker is another process by now, which caught up while the request for the refused one was in flight.
        """
        if response.broker_epoch != self._shared.broker_epoch:
            return
        requested = self._requests.complete(response)
        outrun = self._shared.rules.outruns(response.thresholds_version, self._shared.image.thresholds_version)
        for committed in response.changes:
            change, leader = requested.get(committed.partition), leaders.get(committed.partition)
            if change is None or leader is None or leader.leader_epoch != change.leader_epoch:
                continue
            if committed.error is not ErrorCode.NONE:
                if self._withdrawn(leader, change, committed):
                    yield leader, self._has_another_process(leader, change)
            elif not outrun and leader.isr.commit(committed.isr, committed.partition_epoch):
                yield leader, True

    def _has_another_process(self, leader: Leader, change: IsrChange) -> bool:
        followers = leader.followers
        return any(member in followers and followers[member].broker_epoch != epoch for member, epoch in change.isr)

    def _withdrawn(self, leader: Leader, change: IsrChange, response: IsrChangeResponse) -> bool:
        if not self._shared.rules.is_dead(response.error) or leader.isr.partition_epoch != change.partition_epoch:
            return False
        leader.isr.withdraw()
        return True
