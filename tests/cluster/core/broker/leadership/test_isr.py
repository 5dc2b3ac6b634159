"""AlterPartition requests: one in flight, the newest number counts, and what gets no response is sent again."""

from uuid import UUID

from rackspan.cluster.core.broker.leadership.isr import AlterPartitionRequests
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.messages import AlterPartition, AlterPartitionResponse, IsrChange
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
    return AlterPartitionResponse(EPOCH, attempt, KafkaError.NONE, thresholds_version=0)


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
