"""The transitions of one transactional id and the errors of its requests, state by state."""

from dataclasses import replace
from typing import Final

import pytest

from rackspan.cluster.core.transactions.records import TransactionLogValue, TransactionState
from rackspan.cluster.core.transactions.requests import (
    AddPartitions,
    AddPartitionsResponse,
    DescribeTransactionResponse,
    EndTransaction,
    EndTransactionResponse,
    InitProducerId,
    InitProducerIdResponse,
    TransactionRequest,
    TransactionResponse,
    refusal,
)
from rackspan.cluster.core.transactions.transaction import LAST_EPOCH, Transaction, new_value
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition

E: Final = ErrorCode
S: Final = TransactionState
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
VALUE: Final = TransactionLogValue(7, 3, 500, S.ONGOING, (("orders", (0,)),), 20, 10)


def in_state(state: TransactionState) -> Transaction:
    """Producer 7 in epoch 3, whose epoch before was 1; its former id was 6."""
    return Transaction("t", 0, replace(VALUE, state=state, previous_producer_id=6), last_epoch=1)


@pytest.mark.parametrize(
    ("state", "commit", "bump", "error"),
    [
        (S.EMPTY, True, False, E.INVALID_TXN_STATE),
        (S.EMPTY, False, False, E.INVALID_TXN_STATE),
        (S.EMPTY, True, True, E.INVALID_TXN_STATE),
        (S.EMPTY, False, True, E.NONE),
        (S.ONGOING, True, False, E.NONE),
        (S.ONGOING, False, True, E.NONE),
        (S.PREPARE_COMMIT, True, False, E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_COMMIT, False, False, E.INVALID_TXN_STATE),
        (S.PREPARE_ABORT, False, False, E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, True, False, E.INVALID_TXN_STATE),
        (S.COMPLETE_COMMIT, True, False, E.NONE),
        (S.COMPLETE_COMMIT, False, False, E.INVALID_TXN_STATE),
        (S.COMPLETE_COMMIT, True, True, E.INVALID_TXN_STATE),
        (S.COMPLETE_COMMIT, False, True, E.NONE),
        (S.COMPLETE_ABORT, False, False, E.NONE),
        (S.COMPLETE_ABORT, True, False, E.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, True, True, E.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, False, True, E.NONE),
    ],
)
def test_what_may_be_ended_in_which_state(state: TransactionState, commit: bool, bump: bool, error: ErrorCode) -> None:
    """TransactionCoordinator.endTransaction; an abort of what never began bumps the epoch alone (KIP-890, part 2)."""
    transaction = in_state(state)
    assert transaction.end_error(EndTransaction("t", 7, 3, commit, bump)) is error
    transaction.in_transition = True
    assert transaction.end_error(EndTransaction("t", 7, 3, commit, bump)) is E.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize(
    ("producer_id", "epoch", "state", "bump", "error"),
    [
        (8, 3, S.ONGOING, True, E.INVALID_PRODUCER_ID_MAPPING),
        (7, 2, S.ONGOING, True, E.PRODUCER_FENCED),
        (7, 4, S.COMPLETE_COMMIT, True, E.PRODUCER_FENCED),
        (7, 2, S.COMPLETE_COMMIT, True, E.NONE),
        (7, 1, S.COMPLETE_COMMIT, True, E.NONE),
        (6, 1, S.COMPLETE_COMMIT, True, E.NONE),
        (7, 2, S.COMPLETE_COMMIT, False, E.PRODUCER_FENCED),
        (7, 0, S.COMPLETE_COMMIT, True, E.PRODUCER_FENCED),
        (7, 2, S.EMPTY, True, E.PRODUCER_FENCED),
        (7, 2, S.PREPARE_COMMIT, True, E.CONCURRENT_TRANSACTIONS),
    ],
)
def test_who_may_end_it(producer_id: int, epoch: int, state: TransactionState, bump: bool, error: ErrorCode) -> None:
    assert in_state(state).end_error(EndTransaction("t", producer_id, epoch, True, bump)) is error


@pytest.mark.parametrize(
    ("producer_id", "epoch", "error"),
    [
        (-1, -1, E.NONE),
        (7, 3, E.NONE),
        (7, 1, E.NONE),
        (7, 2, E.PRODUCER_FENCED),
        (7, 4, E.PRODUCER_FENCED),
        (6, LAST_EPOCH, E.NONE),
        (6, LAST_EPOCH - 1, E.PRODUCER_FENCED),
        (8, LAST_EPOCH, E.PRODUCER_FENCED),
    ],
)
def test_who_may_begin_again(producer_id: int, epoch: int, error: ErrorCode) -> None:
    """KIP-360: the current producer, or the one before, whose response was lost."""
    request = InitProducerId("t", 500, 99, producer_id, epoch)
    transaction = in_state(S.COMPLETE_COMMIT)
    assert transaction.init_error(request) is error
    for ending in (S.PREPARE_COMMIT, S.PREPARE_ABORT):
        assert in_state(ending).init_error(request) is (E.CONCURRENT_TRANSACTIONS if error is E.NONE else error)
    transaction.in_transition = True
    assert transaction.init_error(request) is E.CONCURRENT_TRANSACTIONS
    nobody = Transaction("t", 0, new_value(request, 5))
    assert nobody.init_error(request) is E.NONE, "an id without an epoch is anybody's"


@pytest.mark.parametrize(
    ("state", "busy"),
    [(state, state in (S.PREPARE_COMMIT, S.PREPARE_ABORT)) for state in S if state < S.DEAD],
)
def test_partitions_are_added_by_its_producer_unless_it_ends(state: TransactionState, busy: bool) -> None:
    transaction = in_state(state)
    added = frozenset({P1})
    assert transaction.add_error(AddPartitions("t", 8, 3, added)) is E.INVALID_PRODUCER_ID_MAPPING
    assert [transaction.add_error(AddPartitions("t", 7, epoch, added)) for epoch in (2, 4)] == [E.PRODUCER_FENCED] * 2
    expected = E.CONCURRENT_TRANSACTIONS if busy else E.NONE
    assert transaction.add_error(AddPartitions("t", 7, 3, added)) is expected
    transaction.in_transition = True
    assert transaction.add_error(AddPartitions("t", 7, 3, added)) is E.CONCURRENT_TRANSACTIONS


def test_only_a_transaction_under_way_is_late_at_its_timeout() -> None:
    assert [in_state(S.ONGOING).is_late(now) for now in (509, 510)] == [False, True]
    assert not any(in_state(state).is_late(10**6) for state in S if state is not S.ONGOING)
    moving = in_state(S.ONGOING)
    moving.in_transition = True
    assert not moving.is_late(10**6)


# Transitions.


def test_a_new_id_has_no_epoch_until_its_producer_begins() -> None:
    request = InitProducerId("t", 500, 99)
    assert new_value(request, 20) == TransactionLogValue(99, -1, 500, S.EMPTY, (), 20, -1, -1, -1, 0)
    begun = Transaction("t", 0, new_value(request, 20)).initialised(request, 30)
    assert begun == TransactionLogValue(99, 0, 500, S.EMPTY, (), 30, -1, -1, -1, 0)
    # The same for a producer that recovers an id which is not in the log any more.
    known = InitProducerId("t", 500, 99, 5, 2)
    assert Transaction("t", 0, new_value(known, 20)).initialised(known, 30).producer_epoch == 0


def test_a_producer_that_begins_gets_the_next_epoch_or_the_same_one_again() -> None:
    transaction = in_state(S.COMPLETE_COMMIT)
    empty = replace(transaction.value, state=S.EMPTY, partitions=(), timeout_ms=600, updated_ms=30, started_ms=-1)
    assert transaction.initialised(InitProducerId("t", 600, 99), 30) == replace(empty, producer_epoch=4)
    assert transaction.initialised(InitProducerId("t", 600, 99, 7, 3), 30) == replace(empty, producer_epoch=4)
    repeated = replace(transaction.value, timeout_ms=600, updated_ms=30)
    assert transaction.initialised(InitProducerId("t", 600, 99, 7, 1), 30) == repeated


@pytest.mark.parametrize(
    ("epoch", "producer"),
    [(LAST_EPOCH - 1, (7, LAST_EPOCH, 6)), (LAST_EPOCH, (99, 0, 7)), (LAST_EPOCH + 1, (99, 0, 7))],
)
def test_after_the_last_epoch_a_producer_gets_a_new_id(epoch: int, producer: tuple[int, int, int]) -> None:
    transaction = in_state(S.COMPLETE_ABORT)
    transaction.value = replace(transaction.value, producer_epoch=epoch)
    value = transaction.initialised(InitProducerId("t", 500, 99), 30)
    assert (value.producer_id, value.producer_epoch, value.previous_producer_id) == producer


@pytest.mark.parametrize("by_writing", [False, True])
def test_the_first_partitions_begin_a_transaction_and_others_join_it(by_writing: bool) -> None:
    request = AddPartitions("t", 7, 3, frozenset({P1}), by_writing)
    more = in_state(S.ONGOING).with_partitions(request, 30)
    version = 2 if by_writing else 0
    base = replace(VALUE, previous_producer_id=6, updated_ms=30, client_version=version)
    assert more == replace(base, partitions=(("orders", (0, 1)),))
    first = in_state(S.COMPLETE_COMMIT).with_partitions(request, 30)
    assert first == replace(base, partitions=(("orders", (1,)),), started_ms=30)


@pytest.mark.parametrize(
    ("commit", "prepared", "completed"),
    [(True, S.PREPARE_COMMIT, S.COMPLETE_COMMIT), (False, S.PREPARE_ABORT, S.COMPLETE_ABORT)],
)
def test_an_end_is_prepared_and_then_complete(
    commit: bool, prepared: TransactionState, completed: TransactionState
) -> None:
    transaction = Transaction("t", 0, replace(VALUE, client_version=2))
    plain = transaction.prepared(commit, 30, bump=False, fresh_producer_id=99)
    assert plain == replace(VALUE, state=prepared, updated_ms=30)
    bumped = transaction.prepared(commit, 30, bump=True, fresh_producer_id=99)
    assert bumped == replace(VALUE, state=prepared, updated_ms=30, producer_epoch=4, client_version=2)
    transaction.value = bumped
    assert transaction.completed(40) == replace(bumped, state=completed, partitions=(), updated_ms=40)


def test_an_end_in_the_last_epoch_completes_under_a_new_id() -> None:
    transaction = Transaction("t", 0, replace(VALUE, producer_epoch=LAST_EPOCH))
    bumped = transaction.prepared(True, 30, bump=True, fresh_producer_id=99)
    assert (bumped.producer_id, bumped.producer_epoch, bumped.next_producer_id) == (7, LAST_EPOCH + 1, 99)
    transaction.value = bumped
    completed = transaction.completed(40)
    ids = (completed.producer_id, completed.producer_epoch, completed.previous_producer_id, completed.next_producer_id)
    assert ids == (99, 0, 7, -1)


@pytest.mark.parametrize(("epoch", "fenced"), [(3, 4), (LAST_EPOCH, LAST_EPOCH + 1), (LAST_EPOCH + 1, LAST_EPOCH + 1)])
def test_fencing_aborts_with_a_higher_epoch_within_an_int16(epoch: int, fenced: int) -> None:
    transaction = Transaction("t", 0, replace(VALUE, producer_epoch=epoch))
    expected = replace(VALUE, state=S.PREPARE_ABORT, producer_epoch=fenced, updated_ms=30)
    assert transaction.fenced(30) == expected
    assert LAST_EPOCH + 1 == 2**15 - 1


# Responses.


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        (InitProducerId("t", 1, 2), InitProducerIdResponse(E.NOT_COORDINATOR, -1, -1)),
        (AddPartitions("t", 1, 2, frozenset()), AddPartitionsResponse(E.NOT_COORDINATOR)),
        (EndTransaction("t", 1, 2, True), EndTransactionResponse(E.NOT_COORDINATOR, -1, -1)),
    ],
)
def test_a_refusal_names_no_producer(request_: TransactionRequest, response: TransactionResponse) -> None:
    assert refusal(request_, E.NOT_COORDINATOR) == response


def test_an_unknown_transaction_is_described_by_its_error_alone() -> None:
    described = DescribeTransactionResponse(E.TRANSACTIONAL_ID_NOT_FOUND, "t")
    fields = (described.state, described.timeout_ms, described.started_ms, described.topics)
    assert fields == ("", -1, -1, {})
    assert (described.producer_id, described.producer_epoch) == (-1, -1)
