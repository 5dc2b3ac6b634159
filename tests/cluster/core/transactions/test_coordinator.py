"""What Kafka documents of its transaction coordinator, case by case."""

import pytest

from rackspan.cluster.core.batch import Marker
from rackspan.cluster.core.coordination import CoordinatorRecord, encode_batch
from rackspan.cluster.core.transactions.records import TransactionLogValue, TransactionState, encode_key, encode_value
from rackspan.cluster.core.transactions.requests import (
    AddPartitions,
    EndTransaction,
    InitProducerId,
    InitProducerIdResponse,
)
from rackspan.cluster.core.transactions.transaction import LAST_EPOCH
from rackspan.kafka_bytes.error_codes import ErrorCode
from tests.cluster.core.transactions.world import P0, P1, World


def as_producer(producer_id: int, epoch: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(ErrorCode.NONE, producer_id, epoch)


def at_the_last_epoch() -> World:
    """A world in which producer 7 has been given every epoch there is."""
    value = TransactionLogValue(7, LAST_EPOCH, 60_000, TransactionState.EMPTY, (), 0, -1)
    record = CoordinatorRecord(encode_key("t"), encode_value(value))
    return World(log=[encode_batch([record], 0)])


def test_each_producer_of_an_id_is_given_the_next_epoch() -> None:
    world = World()
    first, second = world.init(), world.init()
    assert (first.producer_epoch, second.producer_epoch) == (0, 1)
    assert first.producer_id == second.producer_id


@pytest.mark.parametrize(("commit", "marker"), [(True, Marker.COMMIT), (False, Marker.ABORT)])
def test_every_partition_is_marked_and_the_transaction_is_complete(commit: bool, marker: Marker) -> None:
    world = World()
    who = world.init()
    assert world.add(who, P0) is ErrorCode.NONE
    assert world.add(who, P1) is ErrorCode.NONE
    assert world.state == "Ongoing"
    assert world.end(who, commit).error is ErrorCode.NONE
    assert world.markers == [(p, who.producer_id, who.producer_epoch, marker) for p in (P0, P1)]
    assert world.state == ("CompleteCommit" if commit else "CompleteAbort")


def test_the_response_to_a_commit_waits_until_it_cannot_be_undone() -> None:
    world = World()
    who = world.init()
    world.add(who, P0)
    correlation_id = world.send(EndTransaction("t", who.producer_id, 0, commit=True))
    assert correlation_id not in world.responses
    world.acknowledge()
    assert correlation_id in world.responses
    assert world.markers == []


@pytest.mark.parametrize("marked", [0, 1, 2])
def test_the_next_coordinator_brings_a_commit_to_its_end(marked: int) -> None:
    world = World()
    who = world.init()
    world.add(who, P0, P1)
    world.send(EndTransaction("t", who.producer_id, 0, commit=True))
    world.acknowledge()
    for _ in range(marked):
        world.mark()
    world.fail_over()
    world.settle()
    assert {(partition, marker) for partition, _, _, marker in world.markers} == {
        (P0, Marker.COMMIT),
        (P1, Marker.COMMIT),
    }
    assert world.state == "CompleteCommit"


def test_a_transaction_goes_on_under_the_next_coordinator() -> None:
    world = World()
    who = world.init()
    world.add(who, P0)
    world.fail_over()
    assert world.add(who, P1) is ErrorCode.NONE
    assert world.end(who, commit=True).error is ErrorCode.NONE
    assert len(world.markers) == 2


def test_a_marker_that_was_not_taken_is_written_again() -> None:
    world = World()
    who = world.init()
    world.add(who, P0)
    world.send(EndTransaction("t", who.producer_id, 0, commit=True))
    world.acknowledge()
    world.mark(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert world.state == "PrepareCommit"
    world.passes(99)
    assert not world.unwritten
    world.passes(1)
    world.passes(100)
    assert [one.partition for one in world.unwritten] == [P0], "once, until the partition's leader responds"
    world.settle()
    assert world.state == "CompleteCommit"


def test_a_completion_that_was_not_written_is_written_again() -> None:
    world = World()
    who = world.init()
    world.add(who, P0)
    world.send(EndTransaction("t", who.producer_id, 0, commit=True))
    world.acknowledge()
    world.mark()
    world.acknowledge(ErrorCode.NOT_ENOUGH_REPLICAS, kept=False)
    assert (world.state, len(world.in_flight)) == ("PrepareCommit", 0)
    world.passes(99)
    assert not world.in_flight
    world.passes(1)
    world.settle()
    assert (world.state, len(world.markers)) == ("CompleteCommit", 1)


def test_a_newer_producer_aborts_what_the_older_left_open_and_is_let_in_then() -> None:
    world = World()
    old = world.init()
    world.add(old, P0)
    assert world.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.markers == [(P0, old.producer_id, 1, Marker.ABORT)]
    assert world.init().producer_epoch == 2
    assert world.add(old, P0) is ErrorCode.PRODUCER_FENCED
    assert world.end(old, commit=True).error is ErrorCode.PRODUCER_FENCED


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced() -> None:
    world = World()
    who = world.init(timeout_ms=1_000)
    world.add(who, P0)
    world.passes(999)
    assert not world.in_flight
    world.passes(1)
    world.settle()
    assert world.markers == [(P0, who.producer_id, 1, Marker.ABORT)]
    assert world.end(who, commit=True).error is ErrorCode.PRODUCER_FENCED


def test_ending_twice_the_same_way_is_no_error_and_the_other_way_is() -> None:
    world = World()
    who = world.init()
    world.add(who, P0)
    world.end(who, commit=True)
    assert world.end(who, commit=True).error is ErrorCode.NONE
    assert world.end(who, commit=False).error is ErrorCode.INVALID_TXN_STATE
    assert len(world.markers) == 1


def test_what_has_not_begun_cannot_be_ended() -> None:
    world = World()
    assert world.end(world.init(), commit=True).error is ErrorCode.INVALID_TXN_STATE


def test_while_it_ends_nothing_is_added() -> None:
    world = World()
    who = world.init()
    world.add(who, P0)
    world.send(EndTransaction("t", who.producer_id, 0, commit=True))
    world.acknowledge()
    correlation_id = world.send(AddPartitions("t", who.producer_id, 0, frozenset({P1})))
    assert getattr(world.responses[correlation_id], "error", None) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.init().error is ErrorCode.CONCURRENT_TRANSACTIONS


def test_unknown_producers_get_an_error() -> None:
    world = World()
    stranger = as_producer(1, 0)
    assert world.add(stranger, P0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    who = world.init()
    assert world.add(stranger, P0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.end(as_producer(1, 0), commit=True).error is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.add(as_producer(who.producer_id, 9), P0) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(
    ("timeout_ms", "allowed"), [(0, False), (-1, False), (900_001, False), (1, True), (900_000, True)]
)
def test_a_timeout_beyond_what_is_allowed_is_refused(timeout_ms: int, allowed: bool) -> None:
    assert World().init(timeout_ms).error is (ErrorCode.NONE if allowed else ErrorCode.INVALID_TRANSACTION_TIMEOUT)


def test_an_id_without_a_name_is_refused_and_another_brokers_sent_away() -> None:
    world = World()
    correlation_id = world.send(InitProducerId("", 1_000, 1))
    assert getattr(world.responses[correlation_id], "error", None) is ErrorCode.INVALID_REQUEST
    world.coordinator.on_resigned(world.now, 0)
    assert world.init().error is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_what_could_not_be_written_has_not_happened(error: ErrorCode, expected: ErrorCode) -> None:
    world = World()
    who = world.init()
    correlation_id = world.send(AddPartitions("t", who.producer_id, 0, frozenset({P0})))
    world.acknowledge(error, kept=False)
    assert getattr(world.responses[correlation_id], "error", None) is expected
    assert world.state == "Empty"
    assert world.add(who, P0) is ErrorCode.NONE


def test_a_producer_that_recovers_sends_its_id_and_epoch() -> None:
    """KIP-360."""
    world = World()
    who = world.init()
    again = world.init(producer_id=who.producer_id, epoch=who.producer_epoch)
    assert again.producer_epoch == 1
    repeated = world.init(producer_id=who.producer_id, epoch=who.producer_epoch)
    assert repeated.producer_epoch == 1, "its response was lost"
    world.init()
    assert world.init(producer_id=who.producer_id, epoch=0).error is ErrorCode.PRODUCER_FENCED


def test_a_producer_that_a_newer_one_has_fenced_does_not_recover() -> None:
    """Its epoch is the one before the newer producer's, as that of a producer whose own recovery got no response."""
    world = World()
    old = world.init()
    new = world.init()
    recovered = world.init(producer_id=old.producer_id, epoch=old.producer_epoch)
    assert recovered.error is ErrorCode.PRODUCER_FENCED
    assert world.add(new, P0) is ErrorCode.NONE


def test_when_epochs_are_used_up_a_new_producer_id_begins() -> None:
    world = at_the_last_epoch()
    fresh = world.init()
    assert fresh.producer_epoch == 0
    assert fresh.producer_id != 7


# From version 5 of EndTxn on (KIP-890, part 2).


def test_an_end_bumps_the_epoch_and_returns_it() -> None:
    world = World()
    who = world.init()
    world.add(who, P0)
    ended = world.end(who, commit=True, bump=True)
    assert (ended.producer_id, ended.producer_epoch) == (who.producer_id, 1)
    assert world.markers == [(P0, who.producer_id, 1, Marker.COMMIT)]
    assert world.end(who, commit=True, bump=True) == ended, "its response was lost"
    assert world.add(who, P0) is ErrorCode.PRODUCER_FENCED
    assert world.add(as_producer(ended.producer_id, 1), P0) is ErrorCode.NONE


@pytest.mark.parametrize("began", [False, True], ids=["let in", "in a transaction"])
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_an_end_by_a_producer_that_was_fenced_is_no_repetition(commit: bool, began: bool) -> None:
    """Its epoch is one below the newer producer's, as that of a producer whose own end has bumped it."""
    world = World()
    old = world.init()
    new = world.init()
    if began:
        world.add(new, P0)
    assert world.end(old, commit=commit, bump=True).error is ErrorCode.PRODUCER_FENCED
    assert world.add(new, P1) is ErrorCode.NONE


@pytest.mark.parametrize("adds", [True, False], ids=["added by writing", "added by its producer"])
def test_markers_show_whether_the_epoch_of_their_transaction_is_smaller(adds: bool) -> None:
    """Of a client that bumps its epoch at every end, also where its first transaction times out after a change of coordinator."""
    world = World()
    who = world.init(timeout_ms=5_000)
    world.add(who, P0, adds=adds)
    world.fail_over()
    world.passes(5_001)
    world.acknowledge()
    assert world.unwritten[0].batch.epoch_bumped is adds
    world.settle()
    newer = world.init()
    world.add(newer, P0, adds=adds)
    world.send(EndTransaction("t", newer.producer_id, newer.producer_epoch, True, adds, 999))
    world.acknowledge()
    assert world.unwritten[0].batch.epoch_bumped is adds


def test_at_the_last_epoch_an_end_gives_a_new_producer_id() -> None:
    world = at_the_last_epoch()
    last = as_producer(7, LAST_EPOCH)
    world.add(last, P0)
    ended = world.end(last, commit=True, bump=True)
    assert ended.producer_epoch == 0
    assert ended.producer_id != last.producer_id
    assert world.markers == [(P0, last.producer_id, LAST_EPOCH + 1, Marker.COMMIT)]
    assert world.add(as_producer(ended.producer_id, 0), P0) is ErrorCode.NONE


# Queries.


def test_leaders_can_verify_that_their_partition_is_in_a_transaction() -> None:
    world = World()
    who = world.init()
    world.add(who, P0)
    request = AddPartitions("t", who.producer_id, 0, frozenset({P0, P1}))
    assert world.coordinator.verify(request) == {P0: ErrorCode.NONE, P1: ErrorCode.TRANSACTION_ABORTABLE}


def test_a_transaction_is_described_and_listed() -> None:
    world = World()
    who = world.init()
    idle = world.coordinator.describe("t")
    assert (idle.state, idle.topics, idle.started_ms) == ("Empty", {}, -1)
    assert world.coordinator.list_transactions(world.now + 10, duration_ms=0) == []
    world.add(who, P0)
    described = world.coordinator.describe("t")
    assert (described.state, described.topics, described.started_ms) == ("Ongoing", {"orders": (0,)}, world.now)
    assert world.coordinator.describe("u").error is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    coordinator, later = world.coordinator, world.now + 10
    assert [each.transactional_id for each in coordinator.list_transactions(later, ["Ongoing"])] == ["t"]
    assert coordinator.list_transactions(later, ["Empty"]) == []
    assert coordinator.list_transactions(later, producers=[1]) == []
    assert coordinator.list_transactions(later, duration_ms=10) == []
    assert len(coordinator.list_transactions(later, duration_ms=9)) == 1
