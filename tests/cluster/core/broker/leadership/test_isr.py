"""AlterPartition requests: one in flight, the newest number counts, and what gets no response is sent again."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from rackspan.cluster.core.broker.leadership.isr import AlterPartitionRequests, IsrMaintenance
from rackspan.cluster.core.broker.replica_state import FollowerState, Isr
from rackspan.cluster.core.messages import AlterPartition, AlterPartitionResponse, IsrChange
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition
from tests.cluster.core.brokers import ids

ME = BrokerId(1)
EPOCH = 40
RETRY_MS = 1_000


def change(partition: int, *members: int) -> IsrChange:
    isr = tuple((member, 10 + member) for member in ids(*members))
    return IsrChange(TopicPartition("orders", partition), UUID(int=1), 3, 9, isr)


def sent(requests: AlterPartitionRequests, now: int) -> AlterPartition | None:
    return requests.next_request(now, ME, EPOCH, RETRY_MS)


def response(attempt: int) -> AlterPartitionResponse:
    return AlterPartitionResponse(EPOCH, attempt, ErrorCode.NONE, thresholds_version=0)


def test_waiting_changes_leave_together_and_only_once() -> None:
    requests = AlterPartitionRequests()
    assert sent(requests, 0) is None
    requests.add(change(0, 1))
    requests.add(change(1, 1, 2))
    requests.add(change(0, 1, 3))
    first = sent(requests, 5)
    assert first == AlterPartition(ME, EPOCH, 1, (change(0, 1, 3), change(1, 1, 2)))
    assert sent(requests, 5 + RETRY_MS - 1) is None


def test_a_request_without_a_response_is_sent_again_under_the_next_number_with_what_came_since() -> None:
    requests = AlterPartitionRequests()
    requests.add(change(0, 1))
    sent(requests, 5)
    requests.add(change(1, 1))
    again = sent(requests, 5 + RETRY_MS)
    assert again == AlterPartition(ME, EPOCH, 2, (change(0, 1), change(1, 1)))
    assert requests.complete(response(1)) == {}, "the response to an older number"
    assert sent(requests, 6 + RETRY_MS) is None
    assert requests.complete(response(2)) == {one.partition: one for one in (change(0, 1), change(1, 1))}
    assert sent(requests, 99_000) is None


def test_a_response_frees_the_way_for_what_waits_at_once() -> None:
    requests = AlterPartitionRequests()
    requests.add(change(0, 1))
    sent(requests, 5)
    requests.add(change(1, 1))
    requests.complete(response(1))
    assert sent(requests, 6) == AlterPartition(ME, EPOCH, 2, (change(1, 1),))


def test_a_dropped_change_is_not_sent_and_one_in_flight_stays() -> None:
    requests = AlterPartitionRequests()
    requests.add(change(0, 1))
    requests.drop(TopicPartition("orders", 0))
    requests.drop(TopicPartition("orders", 7))
    assert sent(requests, 5) is None
    requests.add(change(1, 1))
    sent(requests, 5)
    requests.drop(TopicPartition("orders", 1))
    assert requests.complete(response(1)).keys() == {TopicPartition("orders", 1)}


def test_a_new_broker_epoch_drops_everything_and_the_numbers_go_on() -> None:
    requests = AlterPartitionRequests()
    requests.add(change(0, 1))
    sent(requests, 5)
    requests.add(change(1, 1))
    requests.clear()
    assert sent(requests, 99_000) is None
    requests.add(change(2, 1))
    assert sent(requests, 99_000) == AlterPartition(ME, EPOCH, 2, (change(2, 1),))


class Leading:
    """Broker 1 leads a partition of brokers 1 to 3, of which 1 and 2 are in sync. Its image has them as epochs 11 to 13."""

    def __init__(self) -> None:
        self.registered = {one: SimpleNamespace(active=True, broker_epoch=10 + one) for one in ids(1, 2, 3)}
        self.shared: Any = SimpleNamespace(
            id=ME,
            broker_epoch=EPOCH,
            settings=SimpleNamespace(replica_lag_time_max_ms=100, alter_partition_retry_ms=RETRY_MS),
            image=SimpleNamespace(brokers=self.registered),
            effects=[],
        )
        self.followers = {one: FollowerState(0, broker_epoch=10 + one) for one in ids(2, 3)}
        self.leader: Any = SimpleNamespace(
            isr=Isr(ids(1, 2), 9),
            replicas=ids(1, 2, 3),
            followers=self.followers,
            partition=TopicPartition("orders", 0),
            topic_id=UUID(int=1),
            leader_epoch=3,
            joiners=lambda _now, _lag: iter(ids(3)),
            stragglers=lambda _now, _lag: ids(2),
        )

    def proposed(self, *, shrink: bool = False) -> list[tuple[int, int]]:
        """The members of the ISR that is requested, each with its broker epoch."""
        maintenance = IsrMaintenance(self.shared)
        (maintenance.propose_without_stragglers if shrink else maintenance.propose_joiners)(0, self.leader)
        maintenance.request_changes(0)
        return [member for effect in self.shared.effects for one in effect.message.changes for member in one.isr]


def test_members_stay_under_the_epoch_that_the_metadata_has_and_join_under_that_of_their_fetch() -> None:
    leading = Leading()
    # Broker 2 is a new process by the metadata, which has not fetched yet.
    leading.registered[BrokerId(2)].broker_epoch = 52
    assert leading.proposed() == [(1, EPOCH), (2, 52), (3, 13)]
    assert leading.leader.isr.maximal == (1, 2, 3)
    gone = Leading()
    del gone.registered[BrokerId(2)]
    assert gone.proposed() == [(1, EPOCH), (2, -1), (3, 13)]


def test_only_the_process_that_the_metadata_has_may_join_and_only_when_it_is_active() -> None:
    other, inactive, unknown = Leading(), Leading(), Leading()
    other.followers[BrokerId(3)].broker_epoch = 99
    inactive.registered[BrokerId(3)].active = False
    del unknown.registered[BrokerId(3)]
    assert [one.proposed() for one in (other, inactive, unknown)] == [[], [], []]


def test_nothing_is_proposed_while_a_change_is_pending_or_where_nobody_is_out() -> None:
    pending, full = Leading(), Leading()
    pending.leader.isr.propose(ids(1))
    full.leader.isr = Isr(ids(1, 2, 3), 9)
    assert [pending.proposed(), pending.proposed(shrink=True), full.proposed()] == [[], [], []]


def test_members_that_are_behind_leave_the_isr() -> None:
    leading = Leading()
    assert leading.proposed(shrink=True) == [(1, EPOCH)]
