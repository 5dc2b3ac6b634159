"""What passes between a broker's replicas and its coordinators: verification, markers, deleted topics."""

import pytest

from rackspan.cluster.core.admin_messages import DeleteTopics
from rackspan.cluster.core.batch import Marker
from rackspan.cluster.core.groups.requests import (
    CommittedOffset,
    FetchedOffset,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetFetch,
    TxnOffsetCommit,
)
from rackspan.cluster.core.messages import ProduceResponse, SendRequest, TransactionSupport
from rackspan.cluster.core.transactions.requests import AddPartitions, AddPartitionsResponse, InitProducerIdResponse
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from tests.cluster.core.process.world import OFFSETS, STATE, ProcessWorld

ORDERS = TopicPartition("orders", 0)
ADDS, VERIFIES = TransactionSupport.ADDS, TransactionSupport.VERIFIES


def ready() -> ProcessWorld:
    """Broker 1 leads orders-0, broker 2 both coordinators' partitions."""
    w = ProcessWorld({1: "a", 2: "b"})
    w.run(500)
    w.create("orders", [1, 2])
    w.create(OFFSETS.topic, [2, 1])
    w.create(STATE.topic, [2, 1])
    w.settle()
    w.run(100)
    return w


def produced(w: ProcessWorld, correlation_id: int) -> ProduceResponse:
    return w.response(correlation_id, ProduceResponse)


def markers(w: ProcessWorld, partition: TopicPartition) -> list[Marker]:
    log = w.broker(w.state(partition).leader).disk.logs[partition]
    return [batch.marker for batch in log.batches if batch.marker is not None]


def sent(w: ProcessWorld) -> list[SendRequest]:
    return [effect for _, effect in w.effects if isinstance(effect, SendRequest)]


def is_complete(w: ProcessWorld) -> bool:
    return w.process(2).transactions.describe("t").state.startswith("Complete")


def test_a_write_adds_its_partition_and_the_commit_marks_it() -> None:
    w = ready()
    producer = w.init()
    assert produced(w, w.write(ORDERS, producer, ADDS)).error is ErrorCode.NONE
    assert w.end(producer) is ErrorCode.NONE
    w.run_until(lambda: is_complete(w))
    assert markers(w, ORDERS) == [Marker.COMMIT]


def test_a_write_to_a_partition_that_was_not_added_is_refused() -> None:
    w = ready()
    response = produced(w, w.write(ORDERS, w.init(), VERIFIES))
    assert response.error is ErrorCode.INVALID_TXN_STATE
    assert response.message == "Partition was not added to the transaction"
    assert w.broker(1).disk.logs[ORDERS].end_offset == 0


def test_only_the_first_write_of_a_transaction_is_verified() -> None:
    w = ready()
    producer = w.init()
    for sequence in range(3):
        assert produced(w, w.write(ORDERS, producer, ADDS, sequence)).error is ErrorCode.NONE
    assert len(sent(w)) == 1


def test_a_transactional_write_needs_a_transactional_id() -> None:
    w = ready()
    response = produced(w, w.write(ORDERS, w.init(), ADDS, transactional_id=None))
    assert response.error is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_a_coordinator_that_does_not_respond_is_a_passing_error() -> None:
    w = ready()
    producer = w.init()
    w.cut.add((2, 1))
    before, timeout_ms = w.now, w.process(1).request_timeout_ms
    assert produced(w, w.write(ORDERS, producer, ADDS)).error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert timeout_ms <= w.now - before <= timeout_ms + w.settings.tick_interval_ms


@pytest.mark.parametrize("exists", [False, True])
def test_a_coordinator_whose_partition_has_no_leader_or_does_not_exist_yet_is_a_passing_error(exists: bool) -> None:
    w = ProcessWorld({1: "a", 2: "b"})
    w.run(500)
    w.create("orders", [1, 2])
    if exists:
        w.create(STATE.topic, [2])
    w.settle()
    w.kill(2)
    w.run(5_000)
    response = produced(w, w.write(ORDERS, InitProducerIdResponse(ErrorCode.NONE, 7, 0), ADDS))
    assert response.error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert response.message == "Unable to verify the partition has been added to the transaction"
    assert sent(w) == []


def test_only_the_first_response_to_a_request_counts() -> None:
    w = ready()
    process = w.process(1)
    correlation_id = w.write(ORDERS, w.init(), ADDS)
    (request,) = sent(w)
    w._take(1, process.on_response(w.now, request.request_id, ErrorCode.COORDINATOR_NOT_AVAILABLE))
    assert process.on_response(w.now, request.request_id, ErrorCode.NONE) == []
    assert produced(w, correlation_id).error is ErrorCode.NOT_ENOUGH_REPLICAS


def test_a_transaction_that_ended_while_it_was_verified_takes_no_late_write() -> None:
    w = ready()
    producer = w.init()
    added = AddPartitions("t", producer.producer_id, producer.producer_epoch, frozenset({ORDERS}))
    assert w.request(2, added, AddPartitionsResponse).error is ErrorCode.NONE
    correlation_id = w.write(ORDERS, producer, VERIFIES)
    (request,) = sent(w)
    w.hold_responses()
    assert w.end(producer) is ErrorCode.NONE
    w.run_until(lambda: markers(w, ORDERS) == [Marker.COMMIT])
    w._take(1, w.process(1).on_response(w.now, request.request_id, ErrorCode.NONE))
    assert produced(w, correlation_id).error is ErrorCode.INVALID_TXN_STATE
    assert w.broker(1).disk.logs[ORDERS].end_offset == 1


def test_a_marker_is_sent_again_until_the_partition_has_a_leader() -> None:
    w = ready()
    producer = w.init()
    assert produced(w, w.write(ORDERS, producer, ADDS)).error is ErrorCode.NONE
    w.kill(1)
    assert w.end(producer) is ErrorCode.NONE
    w.run_until(lambda: is_complete(w))
    assert w.state(ORDERS).leader == 2
    assert markers(w, ORDERS) == [Marker.COMMIT]


def test_a_partition_that_was_deleted_needs_no_marker() -> None:
    w = ready()
    producer = w.init()
    assert produced(w, w.write(ORDERS, producer, ADDS)).error is ErrorCode.NONE
    w.admin(lambda correlation_id: DeleteTopics(correlation_id, ("orders",)))
    w.run(200)
    before = len(sent(w))
    w.end(producer)
    w.run_until(lambda: is_complete(w))
    assert len(sent(w)) == before


def committed(w: ProcessWorld) -> FetchedOffset:
    return w.process(2).groups.fetch_offsets(OffsetFetch("g", (ORDERS,))).offsets[ORDERS]


def commit_in_transaction(w: ProcessWorld, producer: InitProducerIdResponse, support: TransactionSupport) -> ErrorCode:
    request = TxnOffsetCommit(
        *("g", producer.producer_id, producer.producer_epoch, {ORDERS: CommittedOffset(5, -1, "")}),
        transactional_id="t",
        support=support,
    )
    return w.request(2, request, OffsetCommitResponse).errors[ORDERS]


@pytest.mark.parametrize(("commit", "offset"), [(True, 5), (False, -1)])
def test_a_committed_marker_ends_the_offsets_of_the_transaction(commit: bool, offset: int) -> None:
    w = ready()
    producer = w.init()
    assert commit_in_transaction(w, producer, ADDS) is ErrorCode.NONE
    assert committed(w).offset == -1
    w.end(producer, commit=commit)
    w.run_until(lambda: is_complete(w))
    assert committed(w).offset == offset


def test_offsets_outside_a_transaction_that_holds_them_are_refused() -> None:
    w = ready()
    assert commit_in_transaction(w, w.init(), VERIFIES) is ErrorCode.INVALID_TXN_STATE
    assert committed(w).offset == -1


def test_offsets_are_deleted_with_their_topic_and_not_kept_for_its_namesake() -> None:
    w = ready()
    commit = OffsetCommit("g", {ORDERS: CommittedOffset(5, -1, "")})
    assert w.request(2, commit, OffsetCommitResponse).errors[ORDERS] is ErrorCode.NONE
    assert committed(w).offset == 5
    w.admin(lambda correlation_id: DeleteTopics(correlation_id, ("orders",)))
    w.create("orders", [1, 2])
    w.run(500)
    assert committed(w).offset == -1
