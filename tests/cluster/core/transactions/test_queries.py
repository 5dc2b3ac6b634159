"""What others may learn of transactions: leaders that verify, DescribeTransactions, ListTransactions; and elections."""

from collections.abc import Sequence
from typing import Any, Final

import pytest

from rackspan.cluster.core.batch import Marker
from rackspan.cluster.core.coordination import CoordinatorRecord, encode_batch
from rackspan.cluster.core.messages import Respond
from rackspan.cluster.core.transactions import TransactionCoordinator, TransactionSettings
from rackspan.cluster.core.transactions.records import TransactionLogValue, TransactionState, encode_key, encode_value
from rackspan.cluster.core.transactions.requests import (
    AddPartitions,
    AddPartitionsResponse,
    DescribeTransactionResponse,
    EndTransaction,
    InitProducerId,
    InitProducerIdResponse,
    ListedTransaction,
)
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from tests.cluster.core.transactions.world import P0, P1, World

E: Final = ErrorCode
S: Final = TransactionState


def logged(*values: tuple[str, TransactionLogValue]) -> World:
    """A coordinator that has loaded these transactions."""
    records = [CoordinatorRecord(encode_key(name), encode_value(value)) for name, value in values]
    return World(log=[encode_batch(records, 0)])


@pytest.mark.parametrize(
    ("transactional_id", "producer", "error"),
    [
        ("", (7, 3), E.INVALID_REQUEST),
        ("unknown", (7, 3), E.INVALID_PRODUCER_ID_MAPPING),
        ("open", (8, 3), E.INVALID_PRODUCER_ID_MAPPING),
        ("open", (7, 2), E.PRODUCER_FENCED),
        ("ending", (7, 3), E.CONCURRENT_TRANSACTIONS),
        ("ended", (7, 3), E.TRANSACTION_ABORTABLE),
    ],
)
def test_no_partition_is_in_the_transaction_of_another_producer_or_of_none(
    transactional_id: str, producer: tuple[int, int], error: ErrorCode
) -> None:
    """TransactionCoordinator.handleVerifyPartitionsInTransaction."""
    partitions = (("orders", (0,)),)
    world = logged(
        ("open", TransactionLogValue(7, 3, 500, S.ONGOING, partitions, 20, 10)),
        ("ending", TransactionLogValue(7, 3, 500, S.PREPARE_COMMIT, partitions, 20, 10)),
        ("ended", TransactionLogValue(7, 3, 500, S.COMPLETE_ABORT, partitions, 20, 10)),
    )
    request = AddPartitions(transactional_id, *producer, frozenset({P0, P1}))
    assert world.coordinator.verify(request) == {P0: error, P1: error}


def test_every_field_of_a_transaction_is_described() -> None:
    partitions = (("orders", (0, 2)), ("payments", (1,)))
    world = logged(("t", TransactionLogValue(7, 3, 500, S.ONGOING, partitions, 20, 10)))
    topics = {"orders": (0, 2), "payments": (1,)}
    assert world.coordinator.describe("t") == DescribeTransactionResponse(E.NONE, "t", "Ongoing", 500, 10, 7, 3, topics)
    assert world.coordinator.describe("u") == DescribeTransactionResponse(E.TRANSACTIONAL_ID_NOT_FOUND, "u")
    assert world.coordinator.describe("") == DescribeTransactionResponse(E.INVALID_REQUEST, "")
    world.coordinator.on_resigned(0, 0)
    assert world.coordinator.describe("t") == DescribeTransactionResponse(E.NOT_COORDINATOR, "t")
    assert world.coordinator.list_transactions(0) == []


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, ["a", "b", "c"]),
        ({"states": ["Ongoing"]}, ["b", "c"]),
        ({"states": ["Ongoing", "CompleteCommit"]}, ["a", "b", "c"]),
        ({"states": ["Unknown"]}, []),
        ({"producers": [1, 3]}, ["a", "c"]),
        ({"producers": [3], "states": ["CompleteCommit"]}, []),
        ({"duration_ms": 0}, ["b", "c"]),
        ({"duration_ms": 99}, ["b", "c"]),
        ({"duration_ms": 100}, ["c"]),
        ({"duration_ms": 1_000}, []),
        ({"duration_ms": -1}, ["a", "b", "c"]),
    ],
)
def test_transactions_are_listed_by_state_producer_and_duration(filters: dict[str, Any], found: Sequence[str]) -> None:
    """KIP-664, KIP-994. One that began at time 0 runs; one that has not begun runs for no time at all."""
    world = logged(
        ("c", TransactionLogValue(3, 0, 500, S.ONGOING, (), 0, 0)),
        ("a", TransactionLogValue(1, 0, 500, S.COMPLETE_COMMIT, (), 0, -1)),
        ("b", TransactionLogValue(2, 0, 500, S.ONGOING, (), 900, 900)),
    )
    listed = world.coordinator.list_transactions(1_000, **filters)
    assert [each.transactional_id for each in listed] == found


def test_a_listed_transaction_has_its_producer_and_kafkas_name_of_its_state() -> None:
    values = [(state.name, TransactionLogValue(5, 0, 500, state, (), 0, -1)) for state in (S.EMPTY, S.COMPLETE_ABORT)]
    listed = logged(*values).coordinator.list_transactions(0)
    assert listed == [ListedTransaction("COMPLETE_ABORT", 5, "CompleteAbort"), ListedTransaction("EMPTY", 5, "Empty")]


# Elections.


def test_an_election_that_is_not_newer_changes_nothing_and_a_newer_one_reads_again() -> None:
    world = World()
    who = world.init()
    for epoch in (0, 1):
        assert world.coordinator.on_elected(world.now, 0, epoch, ()) == []
    assert world.state == "Empty"
    waiting = world.send(AddPartitions("t", who.producer_id, 0, frozenset({P0})))
    world.took(world.coordinator.on_elected(world.now, 0, 2, ()))
    assert world.responses[waiting] == AddPartitionsResponse(E.NOT_COORDINATOR)
    assert world.coordinator.describe("t").error is E.TRANSACTIONAL_ID_NOT_FOUND


def test_a_topic_that_was_created_again_begins_at_epoch_zero() -> None:
    world = World()
    world.fail_over()
    world.coordinator.on_resigned(world.now, 0)
    world.coordinator.on_elected(world.now, 0, 0, ())
    assert world.init().error is E.NONE


def test_another_brokers_ids_are_not_known_here() -> None:
    coordinator = TransactionCoordinator(TransactionSettings())
    refused = InitProducerIdResponse(E.NOT_COORDINATOR)
    assert coordinator.on_request(0, 3, InitProducerId("t", 1, 2)) == [Respond(3, refused)]
    assert coordinator.on_marked(0, "t", 0, P0, E.NONE) == []
    assert {coordinator.partition_of(name) for name in "abcdefghijklmnop"} == set(range(10))


def test_a_tombstone_and_a_record_of_another_kind_are_no_transactions() -> None:
    value = encode_value(TransactionLogValue(7, 3, 500, S.EMPTY, (), 20, -1))
    records = [
        CoordinatorRecord(encode_key("gone"), value),
        CoordinatorRecord(b"\0\1\0\1x", b""),
        CoordinatorRecord(encode_key("kept"), value),
        CoordinatorRecord(encode_key("gone"), None),
    ]
    listed = World(log=[encode_batch(records, 0)]).coordinator.list_transactions(0)
    assert [each.transactional_id for each in listed] == ["kept"]


# Markers.


@pytest.mark.parametrize(
    ("error", "written"),
    [
        (E.NONE, True),
        (E.INVALID_PRODUCER_EPOCH, True),
        (E.TRANSACTION_COORDINATOR_FENCED, True),
        (E.NOT_LEADER_OR_FOLLOWER, False),
        (E.REQUEST_TIMED_OUT, False),
    ],
)
def test_a_marker_is_tried_again_unless_its_transaction_was_ended_there(error: ErrorCode, written: bool) -> None:
    world = World()
    who = world.init()
    world.add(who, P0)
    world.send(EndTransaction("t", who.producer_id, 0, commit=False))
    world.acknowledge()
    (marker,) = world.unwritten
    assert (marker.transactional_id, marker.partition, marker.batch.marker) == ("t", P0, Marker.ABORT)
    assert (marker.batch.max_timestamp, marker.batch.transactional) == (world.now, True)
    # A marker of another epoch, or of another id, concerns this transaction not.
    for name, epoch in (("t", 1), ("u", 0)):
        assert world.coordinator.on_marked(world.now, name, epoch, P0, E.NONE) == []
    world.mark(error)
    assert len(world.in_flight) == written
    assert world.coordinator.on_tick(world.now + 99) == []
    assert len(world.coordinator.on_tick(world.now + 100)) == (not written)


def test_a_transaction_is_complete_once_every_partition_has_its_marker() -> None:
    world = World()
    who = world.init()
    world.add(who, P0, P1, TopicPartition("a", 0))
    world.send(EndTransaction("t", who.producer_id, 0, commit=True))
    world.acknowledge()
    assert [one.partition for one in world.unwritten] == [TopicPartition("a", 0), P0, P1]
    for left in (2, 1, 0):
        assert not world.in_flight
        world.mark()
        assert len(world.unwritten) == left
    assert len(world.in_flight) == 1
    # A marker that is acknowledged twice completes it once.
    world.took(world.coordinator.on_marked(world.now, "t", 0, P1, E.NONE))
    assert len(world.in_flight) == 1
    world.settle()
    assert world.coordinator.on_marked(world.now, "t", 0, P1, E.NONE) == []
    assert (world.state, world.coordinator.describe("t").topics) == ("CompleteCommit", {})
