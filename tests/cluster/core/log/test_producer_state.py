"""What a log keeps of its producers: their last five batches, and transactions that are open, ended or aborted."""

from dataclasses import replace
from typing import Final

import pytest

from rackspan.cluster.core.batch import SEQUENCES, Marker, RecordBatch
from rackspan.cluster.core.log.producer_state import (
    AbortedTransaction,
    CompletedTransaction,
    Duplicate,
    ProducerEntry,
    ProducerStates,
    WrittenBatch,
)
from rackspan.kafka_bytes.error_codes import ErrorCode

E: Final = ErrorCode


def written(offset: int, sequence: int, count: int = 1, epoch: int = 3, transactional: bool = False) -> RecordBatch:
    """A batch of producer 7 at an offset."""
    return RecordBatch(offset, offset + count - 1, 0, b"", 7, epoch, sequence, 10 * offset, transactional)


def marker(offset: int, how: Marker, epoch: int = 3) -> RecordBatch:
    return RecordBatch(offset, offset, 0, b"", 7, epoch, -1, 5, transactional=True, control=True, marker=how)


def after(*batches: RecordBatch) -> ProducerStates:
    states = ProducerStates()
    states.replay(batches)
    return states


def test_the_last_five_batches_of_a_producer_are_known() -> None:
    states = after(*(written(2 * i, 2 * i, 2) for i in range(6)))
    window = tuple(WrittenBatch(2 * i, 2 * i + 1, 2 * i, 2 * i + 1, 20 * i) for i in range(1, 6))
    assert states.entries == {7: ProducerEntry(3, window, None)}
    assert states.entries[7].last_sequence == 11
    assert states.check(written(0, 2, 2)) == Duplicate(2, 3)
    assert states.check(written(0, 0, 2)) is E.OUT_OF_ORDER_SEQUENCE_NUMBER, "too old to be known"
    # Neither a part of a batch nor one that begins as it does is that batch.
    assert [states.check(written(0, 2, n)) for n in (1, 3)] == [E.OUT_OF_ORDER_SEQUENCE_NUMBER] * 2
    assert states.check(written(0, 3, 1)) is E.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize(
    ("epoch", "sequence", "verdict"),
    [
        (3, 5, E.NONE),
        (3, 6, E.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (3, 4, Duplicate(4, 4)),
        (2, 5, E.INVALID_PRODUCER_EPOCH),
        (2, 4, E.INVALID_PRODUCER_EPOCH),
        (4, 0, E.NONE),
        (4, 5, E.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (4, 4, E.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ],
)
def test_epochs_rise_and_numbers_follow_each_other(epoch: int, sequence: int, verdict: ErrorCode | Duplicate) -> None:
    """ProducerAppendInfo.checkProducerEpoch and checkSequence."""
    states = after(*(written(i, i) for i in range(5)))
    assert states.check(written(0, sequence, epoch=epoch)) == verdict


def test_a_producer_that_is_new_to_the_log_may_begin_anywhere() -> None:
    assert ProducerStates().check(written(0, 77)) is E.NONE


def test_a_batch_without_a_number_is_judged_by_its_epoch() -> None:
    states = after(written(0, 0))
    assert [states.check(written(0, -1, epoch=epoch)) for epoch in (2, 3, 4)] == [
        E.INVALID_PRODUCER_EPOCH,
        E.NONE,
        E.NONE,
    ]


def test_numbers_go_on_at_zero_after_the_largest_int32() -> None:
    last = written(0, SEQUENCES - 1)
    assert (last.last_sequence, SEQUENCES - 1) == (2**31 - 1, 2**31 - 1)
    assert after(last).check(written(1, 0)) is E.NONE
    across = written(0, SEQUENCES - 2, 4)
    assert across.last_sequence == 1
    assert after(across).check(written(4, 2)) is E.NONE
    assert after(across).check(across) == Duplicate(0, 3)


def test_batches_of_no_producer_and_control_batches_that_end_nothing_leave_no_entry() -> None:
    nobody = RecordBatch(0, 0, 0)
    other = replace(written(1, -1), control=True)
    assert after(nobody, other).entries == {}


@pytest.mark.parametrize("how", list(Marker))
def test_a_transaction_is_open_from_its_first_batch_to_its_marker(how: Marker) -> None:
    states = after(written(4, 0, transactional=True), written(5, 1, 2, transactional=True))
    assert (states.open, states.entries[7].transaction_start) == ({7: 4}, 4)
    window = states.entries[7].window
    states.append(marker(7, how))
    assert states.open == {}
    assert states.completed == [CompletedTransaction(4, 7)]
    assert states.aborted == ([AbortedTransaction(7, 4, 7)] if how is Marker.ABORT else [])
    assert states.entries[7] == ProducerEntry(3, window, None)
    assert states.check(written(8, 3)) is E.NONE, "numbers go on in the same epoch"
    states.append(marker(8, how, epoch=4))
    assert states.entries[7] == ProducerEntry(4)
    assert len(states.completed) == 1, "a marker without a transaction ends none"


def test_a_new_epoch_begins_without_the_batches_of_the_old_one() -> None:
    states = after(written(0, 0, transactional=True), written(1, 0, epoch=4, transactional=True))
    assert states.entries[7] == ProducerEntry(4, (WrittenBatch(0, 0, 1, 1, 10),), 0)
    assert states.open == {7: 0}


def test_readers_of_committed_data_stop_before_the_first_open_transaction_or_marker_above_the_watermark() -> None:
    states = after(written(2, 0, transactional=True), marker(5, Marker.COMMIT), written(6, 1, transactional=True))
    assert [states.first_unstable(watermark) for watermark in (4, 5, 6)] == [2, 2, 6]
    states.append(marker(7, Marker.COMMIT))
    assert states.first_unstable(7) == 6
    assert states.first_unstable(8) is None
    assert states.completed == []


def test_transactions_that_ended_below_the_logs_start_are_dropped() -> None:
    states = after(*(b for i in (0, 2) for b in (written(i, i // 2, transactional=True), marker(i + 1, Marker.ABORT))))
    twin = states.copy()
    states.drop_below(1)
    assert len(states.aborted) == len(states.completed) == 2
    states.drop_below(2)
    assert states.aborted == [AbortedTransaction(7, 2, 3)]
    assert states.completed == [CompletedTransaction(2, 3)]
    assert (len(twin.aborted), len(twin.completed), twin.entries) == (2, 2, states.entries)
    twin.append(written(9, 9, transactional=True))
    assert (twin.open, states.open) == ({7: 9}, {})
    assert twin.entries != states.entries
