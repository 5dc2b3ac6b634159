"""The log against a plain list of records, through any appends, truncations and deletions."""

from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.cluster.core.batch import SEQUENCES, Marker, RecordBatch
from rackspan.cluster.core.log import Duplicate, PartitionLog, producer_state
from rackspan.kafka_bytes.error_codes import ErrorCode
from tests.cluster.core.log.naive_log import NaiveLog, Record
from tests.depth import examples

TOPIC_ID = UUID(int=7)
PRODUCERS = (-1, 1, 2)


class Twins:
    """A log and its naive twin, driven by the same rng."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.log = PartitionLog(TOPIC_ID)
        self.naive = NaiveLog()
        self.epoch = 0

    def step(self) -> None:
        kind = self.rng.choices([self.append, self.mark, self.truncate, self.delete, self.elect], [12, 4, 2, 1, 2])[0]
        kind()
        self.log.high_watermark = self.rng.randint(self.log.start_offset, self.log.end_offset)

    def elect(self) -> None:
        self.epoch += self.rng.randint(1, 2)

    def append(self) -> None:
        producer, count = self.rng.choice(PRODUCERS), self.rng.randint(1, 3)
        epoch = -1 if producer == -1 else (self.naive.producer_epoch(producer) or 0) + (self.rng.random() < 0.1)
        written = self.naive.batches_of(producer)
        same = bool(written) and written[-1][-1].producer_epoch == epoch
        first = -1 if producer == -1 else written[-1][-1].sequence + 1 if same else 0
        transactional = producer == 2
        batch = RecordBatch(0, count - 1, -1, b"", producer, epoch, first, 10 * count, transactional)
        if producer != -1:
            assert self.log.check(batch) is ErrorCode.NONE
        stamped = self.log.append_as_leader(batch, self.epoch)
        self.naive.append(
            [
                Record(
                    stamped.base_offset + i, self.epoch, producer, epoch, first + i, stamped.base_offset, transactional
                )
                for i in range(count)
            ]
        )

    def mark(self) -> None:
        epoch = self.naive.producer_epoch(2)
        if epoch is None:
            return
        marker = self.rng.choice([Marker.ABORT, Marker.COMMIT])
        batch = RecordBatch(0, 0, -1, b"", 2, epoch, -1, 1, transactional=True, control=True, marker=marker)
        offset = self.log.append_as_leader(batch, self.epoch).base_offset
        self.naive.append([Record(offset, self.epoch, 2, epoch, -1, offset, True, marker.name)])

    def truncate(self) -> None:
        offset = self.rng.randint(max(0, self.naive.end - 6), self.naive.end + 1)
        self.log.truncate_to(offset)
        self.naive.truncate(offset)

    def delete(self) -> None:
        offset = self.rng.randint(self.naive.start, min(self.naive.start + 8, self.naive.end))
        self.log.delete_below(offset)
        self.naive.delete(offset)


@given(st.integers(0, 2**32), st.integers(1, 60))
@examples(1.5)
def test_a_log_is_what_a_list_of_records_is(seed: int, steps: int) -> None:
    twins = Twins(seed)
    for _ in range(steps):
        twins.step()
    assert_alike(twins)


@pytest.mark.slow
def test_a_log_with_many_snapshots_of_its_producers_is_still_what_a_list_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_state, "INTERVAL_BATCHES", 3)
    for seed in range(150):
        twins = Twins(seed)
        for _ in range(seed % 60):
            twins.step()
        assert_alike(twins)


def assert_alike(twins: Twins) -> None:
    log, naive = twins.log, twins.naive
    assert (log.start_offset, log.end_offset) == (naive.start, naive.end)
    assert [batch.base_offset for batch in log.batches] == sorted({record.base for record in naive.records})
    assert list(log.epochs.entries) == naive.epochs()
    assert_reads(twins)
    assert_epoch_ends(twins)
    assert_producers(twins)
    assert_transactions(twins)


def assert_reads(twins: Twins) -> None:
    log, naive = twins.log, twins.naive
    for offset in range(naive.start, naive.end + 1):
        wanted = sorted({r.base for r in naive.records if last_of(naive, r.base) >= offset})
        assert [batch.base_offset for batch in log.read(offset, naive.end, 2**31)] == wanted


def last_of(naive: NaiveLog, base: int) -> int:
    return max(record.offset for record in naive.records if record.base == base)


def assert_epoch_ends(twins: Twins) -> None:
    log, naive = twins.log, twins.naive
    epochs = dict(naive.epochs())
    for epoch in range(twins.epoch + 2):
        above = [start for one, start in epochs.items() if one > epoch]
        if not epochs or epoch > max(epochs):
            wanted = (-1, -1)
        else:
            floor = max((one for one in epochs if one <= epoch), default=epoch)
            wanted = (floor, min(above, default=naive.end))
        assert log.end_offset_for_epoch(epoch) == wanted


def assert_producers(twins: Twins) -> None:
    for producer in (1, 2):
        epoch = twins.naive.producer_epoch(producer)
        written = twins.naive.batches_of(producer)
        for records in written:
            first, last = records[0], records[-1]
            again = RecordBatch(0, last.offset - first.offset, -1, b"", producer, first.producer_epoch, first.sequence)
            assert twins.log.check(again) == Duplicate(first.offset, last.offset)
        if epoch is not None:
            after = written[-1][-1].sequence + 1 if written else 0
            assert twins.log.check(numbered(producer, epoch, after)) is ErrorCode.NONE
            assert twins.log.check(numbered(producer, epoch, after + 1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            assert twins.log.check(numbered(producer, epoch + 1, 0)) is ErrorCode.NONE
            assert twins.log.check(numbered(producer, epoch + 1, 4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            assert twins.log.check(numbered(producer, epoch - 1, 0)) is ErrorCode.INVALID_PRODUCER_EPOCH


def numbered(producer: int, epoch: int, sequence: int) -> RecordBatch:
    return RecordBatch(0, 0, -1, b"", producer, epoch, sequence)


def assert_transactions(twins: Twins) -> None:
    log, naive = twins.log, twins.naive
    done = naive.transactions(2)
    unstable = [start for start, end, _ in done if end is None or end >= log.high_watermark]
    assert log.last_stable_offset == min([log.high_watermark, *unstable])
    aborted = [(2, start, end) for start, end, marker in done if marker == "ABORT" and end is not None]
    for offset in range(naive.start, naive.end, 3):
        wanted = [one for one in aborted if one[2] >= offset and one[1] < naive.end]
        assert list(log.aborted_transactions(offset, naive.end)) == wanted


def test_a_read_stops_at_the_limit_but_returns_at_least_one_batch() -> None:
    log = PartitionLog(TOPIC_ID)
    for _ in range(5):
        log.append_as_leader(RecordBatch(0, 0, -1, bytes(100)), 0)
    assert [batch.base_offset for batch in log.read(1, 5, 250)] == [1, 2]
    assert [batch.base_offset for batch in log.read(1, 5, 1)] == [1]
    assert [batch.base_offset for batch in log.read(1, 3, 1000)] == [1, 2]


def test_a_leader_stamps_offset_and_epoch_into_the_bytes_and_touches_nothing_else() -> None:
    log = PartitionLog(TOPIC_ID)
    log.append_as_leader(RecordBatch(0, 4, -1, bytes(61)), 3)
    stamped = log.append_as_leader(RecordBatch(0, 0, -1, b"\xff" * 70), 9)
    assert stamped.data[:8] == (5).to_bytes(8, "big")
    assert stamped.data[12:16] == (9).to_bytes(4, "big")
    assert bytes(stamped.data)[8:12] + bytes(stamped.data)[16:] == b"\xff" * 58


def test_a_trim_keeps_what_the_watermark_has_not_passed() -> None:
    log = PartitionLog(TOPIC_ID)
    for _ in range(10):
        log.append_as_leader(RecordBatch(0, 0, -1, bytes(100)), 0)
    log.high_watermark = 3
    assert log.trim(500)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (3, 10, 700)
    assert not log.trim(500)
    assert not log.trim(1000)


@pytest.mark.parametrize(("epoch_bumped", "error"), [(True, ErrorCode.INVALID_PRODUCER_EPOCH), (False, ErrorCode.NONE)])
def test_a_late_marker_does_not_end_the_next_transaction(epoch_bumped: bool, error: ErrorCode) -> None:
    """A copy of the first transaction's marker arrives when the second, of the epoch that it bumped, has begun (KIP-1228)."""
    log = PartitionLog(TOPIC_ID)
    marker = RecordBatch(
        *(0, 0, -1, b"", 7, 1, -1, 0, True), control=True, marker=Marker.COMMIT, epoch_bumped=epoch_bumped
    )
    for batch in (RecordBatch(0, 0, -1, b"", 7, 0, 0, 0, True), marker):
        assert log.check(batch) is ErrorCode.NONE
        log.append_as_leader(batch, 0)
    assert log.check(marker) is ErrorCode.NONE, "between transactions a copy ends nothing"
    log.append_as_leader(RecordBatch(0, 0, -1, b"", 7, 1, 0, 0, True), 0)
    assert log.check(marker) is error


def test_a_transactional_batch_without_a_sequence_number_opens_a_transaction() -> None:
    """The group coordinator appends a producer's offsets so: readers of committed data stop before them."""
    log = PartitionLog(TOPIC_ID)
    log.append_as_leader(RecordBatch(0, 0, -1, b"", 7, 2, -1, 0, True), 0)
    log.high_watermark = 1
    assert log.last_stable_offset == 0
    assert log.in_transaction(7, 2)
    assert log.check(RecordBatch(0, 0, -1, b"", 7, 2, 0, 0, True)) is ErrorCode.NONE, (
        "its first numbered batch is number 0"
    )
    log.append_as_leader(RecordBatch(0, 0, -1, b"", 7, 2, -1, 1, True, control=True, marker=Marker.COMMIT), 0)
    log.high_watermark = 2
    assert log.last_stable_offset == 2


def test_sequences_wrap_to_zero() -> None:
    log = PartitionLog(TOPIC_ID)
    log.append_as_leader(RecordBatch(0, 2, -1, b"", 1, 0, SEQUENCES - 2), 0)
    assert log.check(numbered(1, 0, 1)) is ErrorCode.NONE


def test_batches_are_found_by_timestamp() -> None:
    log = PartitionLog(TOPIC_ID)
    for timestamp in (5, 30, 20):
        log.append_as_leader(RecordBatch(0, 1, -1, max_timestamp=timestamp), 0)
    first = log.batch_at_timestamp(10, 6)
    greatest = log.batch_of_greatest_timestamp(6)
    assert first is not None
    assert greatest is not None
    assert (first.base_offset, greatest.base_offset) == (2, 2)
    assert log.batch_at_timestamp(10, 2) is None
    assert log.batch_at_timestamp(31, 6) is None


@pytest.mark.parametrize(
    ("oldest_ms", "start"), [(100, 0), (101, 1), (250, 2), (10_000, 3)], ids=["none", "one", "up to a newer one", "all"]
)
def test_records_expire_from_the_start_up_to_the_first_that_is_young_enough(oldest_ms: int, start: int) -> None:
    log = PartitionLog(UUID(int=1))
    for timestamp in (100, 200, 300, 100):
        log.append_as_leader(RecordBatch(0, 0, -1, max_timestamp=timestamp), 0)
    log.high_watermark = 3
    assert log.expire(oldest_ms) is (start > 0)
    assert (log.start_offset, len(log.batches)) == (start, 4 - start)


def test_records_without_a_timestamp_do_not_expire() -> None:
    log = PartitionLog(UUID(int=1))
    log.append_as_leader(RecordBatch(0, 0, -1), 0)
    log.high_watermark = 1
    assert not log.expire(10**12)


# Boundaries.


def log_of(*counts: int, size: int = 0, epoch: int = 0) -> PartitionLog:
    """A log of batches of so many records, `size` bytes each, committed to its end."""
    log = PartitionLog(TOPIC_ID)
    for count in counts:
        log.append_as_leader(RecordBatch(0, count - 1, -1, bytes(size)), epoch)
    log.high_watermark = log.end_offset
    return log


def ends(log: PartitionLog) -> tuple[int, int, int, int]:
    return log.start_offset, log.end_offset, log.high_watermark, log.size_bytes


def test_a_new_log_is_empty_at_offset_zero() -> None:
    log = PartitionLog(TOPIC_ID)
    assert (ends(log), log.compacted_to, log.batches, log.producers) == ((0, 0, 0, 0), 0, (), {})
    assert (log.last_epoch, log.epoch_at(0), log.topic_id, log.last_stable_offset) == (-1, -1, TOPIC_ID, 0)
    assert (log.read(0, 0, 1), log.batch_of_greatest_timestamp(9)) == ((), None)


def test_the_epoch_of_the_record_before_an_offset() -> None:
    log = log_of(2, epoch=3)
    log.append_as_leader(RecordBatch(0, 2, -1), 5)
    assert [log.epoch_at(offset) for offset in range(6)] == [-1, 3, 3, 5, 5, 5]
    assert log.last_epoch == 5


@pytest.mark.parametrize(
    ("offset", "removed", "expected"),
    [
        (7, False, (0, 6, 6, 300)),
        (6, False, (0, 6, 6, 300)),
        (5, True, (0, 4, 4, 200)),
        (4, True, (0, 4, 4, 200)),
        (2, True, (0, 2, 2, 100)),
        (0, True, (0, 0, 0, 0)),
    ],
)
def test_a_truncation_removes_a_batch_that_spans_it(
    offset: int, removed: bool, expected: tuple[int, int, int, int]
) -> None:
    log = log_of(2, 2, 2, size=100)
    log.compacted_to = 6
    assert log.truncate_to(offset) is removed
    assert (ends(log), log.compacted_to) == (expected, expected[1])


def test_a_truncation_below_the_start_begins_the_log_again_there() -> None:
    log = log_of(2, 2, size=100, epoch=3)
    log.append(RecordBatch(4, 4, 3, b"", 7, 0, 0))
    log.delete_below(2)
    assert log.truncate_to(1) is True
    assert (ends(log), log.compacted_to, log.last_epoch, log.producers) == ((1, 1, 1, 0), 1, -1, {})
    assert log.append_as_leader(RecordBatch(0, 0, -1), 4).base_offset == 1


def test_an_epoch_without_a_record_is_truncated_too() -> None:
    log = log_of(2, epoch=3)
    log.epochs.assign(4, 2)
    assert log.truncate_to(2) is False
    assert log.last_epoch == 3


@pytest.mark.parametrize(
    ("offset", "expected", "bases"),
    [
        (0, (0, 6, 6, 300), [0, 2, 4]),
        (1, (1, 6, 6, 300), [0, 2, 4]),
        (2, (2, 6, 6, 200), [2, 4]),
        (6, (6, 6, 6, 0), []),
        (8, (8, 8, 8, 0), []),
    ],
)
def test_a_deletion_keeps_a_batch_that_spans_it(
    offset: int, expected: tuple[int, int, int, int], bases: list[int]
) -> None:
    log = log_of(2, 2, 2, size=100)
    log.high_watermark = 0
    log.delete_below(offset)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (expected[0], expected[1], expected[3])
    assert (log.high_watermark, log.compacted_to) == (offset, offset), "nothing below the start is uncommitted"
    assert [batch.base_offset for batch in log.batches] == bases


def test_the_state_of_producers_outlives_the_deletion_of_their_batches() -> None:
    log = PartitionLog(TOPIC_ID)
    for sequence in range(2):
        log.append_as_leader(RecordBatch(0, 0, -1, b"", 7, 3, sequence, 0, True), 0)
    assert [log.in_transaction(*who) for who in ((7, 3), (7, 2), (7, 4), (8, 3))] == [True, False, False, False]
    log.delete_below(2)
    assert log.check(RecordBatch(0, 0, -1, b"", 7, 3, 1)) == Duplicate(1, 1)
    assert log.in_transaction(7, 3)
    log.append_as_leader(RecordBatch(0, 0, -1, b"", 7, 3, -1, 0, True, control=True, marker=Marker.ABORT), 0)
    assert not log.in_transaction(7, 3)
    assert [(each.first_offset, each.last_offset) for each in log.aborted_transactions(2, 3)] == [(0, 2)]
    assert log.aborted_transactions(3, 9) == ()
    assert log.aborted_transactions(0, 0) == ()
    log.truncate_to(2)
    assert log.in_transaction(7, 3), "as the deleted batches left it"


@pytest.mark.parametrize(
    ("max_bytes", "trimmed", "start"),
    [(500, False, 0), (499, True, 1), (400, True, 2), (100, True, 5), (0, True, 5)],
)
def test_a_trim_leaves_nine_tenths_of_what_is_allowed(max_bytes: int, trimmed: bool, start: int) -> None:
    """So that it is not done again at each append: 400 allows 360, which are three batches of 100."""
    log = log_of(1, 1, 1, 1, 1, size=100)
    assert log.trim(max_bytes) is trimmed
    assert (log.start_offset, log.size_bytes) == (start, 500 - 100 * start)


def test_a_read_takes_whole_batches_below_its_upper_end_up_to_its_size() -> None:
    log = log_of(2, 2, 2, size=100)
    assert [[b.base_offset for b in log.read(1, upper, 300)] for upper in (1, 2, 3, 4, 6)] == [
        [],
        [0],
        [0],
        [0, 2],
        [0, 2, 4],
    ]
    assert [[b.base_offset for b in log.read(2, 6, size)] for size in (0, 100, 199, 200)] == [[2], [2], [2], [2, 4]]
    assert log.read(6, 6, 300) == ()
