"""Who is in sync: a leader asks the controller to let followers join and to take out who has fallen behind.

Rules kept here: one change a partition at a time; a joiner is alive in the image and the very process that fetched
(KIP-841, KIP-903); an answer that overtakes the metadata is not heeded; a refusal that is not final leaves the change
pending.
"""

from collections.abc import Iterator, Mapping

from rackspan.cluster.core.broker.isr_requests import IsrRequests
from rackspan.cluster.core.broker.leader import Leader
from rackspan.cluster.core.broker.local import Local
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.ids import CONTROLLER, NO_EPOCH
from rackspan.cluster.core.messages import AlterPartitionResponse, IsrChange, IsrChangeResponse, Send
from rackspan.model.ids import BrokerId, TopicPartition


class IsrKeeping:
    """For all that one broker leads."""

    def __init__(self, local: Local) -> None:
        self._local = local
        self._requests = IsrRequests()

    def drop(self, partition: TopicPartition) -> None:
        """The image or the end of a leadership has overtaken what was to be asked."""
        self._requests.drop(partition)

    def register_anew(self) -> None:
        self._requests.forget()

    def propose_joiners(self, now: int, leader: Leader) -> None:
        if leader.isr.pending is not None or len(leader.isr.committed) == len(leader.replicas):
            return
        lag = self._local.settings.replica_lag_time_max_ms
        joiners = [broker for broker in leader.joiners(now, lag) if self._is_eligible(leader, broker)]
        if joiners:
            self._local.counters.isr_expands += 1
            self._propose(leader, (*leader.isr.committed, *joiners))

    def _is_eligible(self, leader: Leader, broker: BrokerId) -> bool:
        registered = self._local.image.brokers.get(broker)
        fetched_as = leader.followers[broker].broker_epoch
        return registered is not None and registered.active and registered.broker_epoch == fetched_as

    def propose_without_stragglers(self, now: int, leader: Leader) -> None:
        if leader.isr.pending is not None:
            return
        gone = leader.stragglers(now, self._local.settings.replica_lag_time_max_ms)
        if gone:
            self._local.counters.isr_shrinks += 1
            self._propose(leader, tuple(member for member in leader.isr.committed if member not in gone))

    def _propose(self, leader: Leader, isr: tuple[BrokerId, ...]) -> None:
        ordered = tuple(replica for replica in leader.replicas if replica in isr)
        leader.isr.ask(ordered)
        members = tuple((member, self._epoch_of(leader, member)) for member in ordered)
        self._requests.ask(
            IsrChange(leader.partition, leader.topic_id, leader.leader_epoch, leader.isr.partition_epoch, members)
        )

    def _epoch_of(self, leader: Leader, member: BrokerId) -> int:
        if member == self._local.id:
            return self._local.broker_epoch
        if member not in leader.isr.committed:
            return leader.followers[member].broker_epoch
        registered = self._local.image.brokers.get(member)
        return NO_EPOCH if registered is None else registered.broker_epoch

    def request_changes(self, now: int) -> None:
        """Send what there is to ask of the controller, or what it has not answered."""
        local = self._local
        request = self._requests.next_request(
            now, local.id, local.broker_epoch, local.settings.alter_partition_retry_ms
        )
        if request is not None:
            local.effects.append(Send(CONTROLLER, request))

    def altered(
        self, leaders: Mapping[TopicPartition, Leader], response: AlterPartitionResponse
    ) -> Iterator[tuple[Leader, bool]]:
        """Take the controller's answer: each leader whose maximal ISR is another now, and whether to look for joiners.

        Whoever was refused is not proposed again before the image or its next fetch gives a reason; that it is another
        process by now, which has caught up while the refused one was asked for, is one.
        """
        if response.broker_epoch != self._local.broker_epoch:
            return
        asked = self._requests.answered(response)
        outrun = self._local.rules.outruns(response.thresholds_version, self._local.image.thresholds_version)
        for one in response.changes:
            change, leader = asked.get(one.partition), leaders.get(one.partition)
            if change is None or leader is None or leader.leader_epoch != change.leader_epoch:
                continue
            if one.error is not KafkaError.NONE:
                if self._takes_back(leader, change, one):
                    yield leader, self._has_another_process(leader, change)
            elif not outrun and leader.isr.commit(one.isr, one.partition_epoch):
                yield leader, True

    def _has_another_process(self, leader: Leader, change: IsrChange) -> bool:
        followers = leader.followers
        return any(member in followers and followers[member].broker_epoch != epoch for member, epoch in change.isr)

    def _takes_back(self, leader: Leader, change: IsrChange, response: IsrChangeResponse) -> bool:
        if not self._local.rules.is_dead(response.error) or leader.isr.partition_epoch != change.partition_epoch:
            return False
        leader.isr.take_back()
        return True
