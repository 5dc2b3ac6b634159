"""Sequence numbers behind one that was refused, against a list of what is on its way."""

import pytest

from rackspan.gateway.core.acknowledgement.order import ORDER_SECONDS, ProducerBatch, RefusedSequences, producer_batch
from tests.conformance.wire import batch

ONE, OTHER = ("orders", 0), ("orders", 1)


def of(sequence: int, *, epoch: int = 0, producer: int = 7, records: int = 1) -> ProducerBatch:
    return ProducerBatch(producer, epoch, sequence, records - 1)


def after_refusing(sequence: int) -> RefusedSequences:
    refused = RefusedSequences()
    assert refused.admits(ONE, of(sequence), 0)
    refused.refuse(ONE, of(sequence), 0)
    return refused


def test_batches_behind_a_refused_one_are_not_admitted_until_it_comes_again() -> None:
    refused = after_refusing(5)
    assert [refused.admits(ONE, of(sequence), 1) for sequence in (6, 7, 4, 6)] == [False, False, True, False]
    assert [refused.admits(ONE, of(sequence), 1) for sequence in (5, 6, 7)] == [True, True, True]


def test_the_refused_batch_may_be_refused_again_and_an_earlier_one_as_well() -> None:
    refused = after_refusing(5)
    assert refused.admits(ONE, of(5), 1)
    refused.refuse(ONE, of(5), 1)
    assert not refused.admits(ONE, of(6), 1)
    assert refused.admits(ONE, of(3), 1)
    refused.refuse(ONE, of(3), 1)
    assert [refused.admits(ONE, of(sequence), 1) for sequence in (5, 4, 3, 4)] == [False, False, True, True]


def test_a_batch_that_holds_the_refused_sequence_number_is_it() -> None:
    assert after_refusing(5).admits(ONE, of(3, records=3), 1)
    refused = after_refusing(5)
    assert refused.admits(ONE, of(3, records=2), 1)
    assert not refused.admits(ONE, of(6), 1)


def test_sequence_numbers_begin_again_after_the_largest() -> None:
    refused = after_refusing(2**31 - 1)
    assert not refused.admits(ONE, of(0), 1)
    assert refused.admits(ONE, of(2**31 - 2), 1)
    assert after_refusing(0).admits(ONE, of(2**31 - 2, records=5), 1)


@pytest.mark.parametrize(
    ("partition", "other", "now"),
    [(OTHER, of(6), 1.0), (ONE, of(6, producer=8), 1.0), (ONE, of(6, epoch=1), 1.0), (ONE, of(6), ORDER_SECONDS + 1)],
)
def test_other_partitions_producers_epochs_and_times_are_admitted(
    partition: tuple[str, int], other: ProducerBatch, now: float
) -> None:
    assert after_refusing(5).admits(partition, other, now)


def test_a_client_cannot_have_more_kept_than_a_thousand() -> None:
    refused = RefusedSequences()
    for number in range(1500):
        refused.refuse(("orders", number), of(5), 0)
    admitted = [refused.admits(("orders", number), of(6), 1) for number in range(1500)]
    assert admitted == [True] * 500 + [False] * 1000


def test_a_batch_is_read_from_its_header() -> None:
    assert producer_batch(batch(b"a", b"b", producer=(7, 3), sequence=11)) == ProducerBatch(7, 3, 11, 1)
    for none in (None, b"", batch(b"a"), batch(b"a", producer=(7, 3), sequence=11)[:60]):
        assert producer_batch(none) is None


def test_the_time_for_a_batch_to_come_again_begins_when_its_producer_receives_the_refusal() -> None:
    refused = after_refusing(5)
    refused.restart(ORDER_SECONDS + 1)
    assert not refused.admits(ONE, of(6), ORDER_SECONDS + 2)
    assert refused.admits(ONE, of(6), 2 * ORDER_SECONDS + 2)
