"""Compacted logs against a list of everything that was ever written: what a reader ends with, and what producers may do."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.cluster.core.batch import Marker, RecordBatch
from rackspan.cluster.core.log import COMPACTION_KEYS, CompactionConfig, PartitionLog
from rackspan.cluster.core.log.compaction import cleanable_end, uncompressed_body
from rackspan.kafka_bytes.record_batch import (
    HEADER_BYTES,
    end_marker,
    read_stored_header,
    stored_records,
    verify_crc,
    write_batch,
)
from tests.conformance.wire import batch
from tests.depth import examples

TOPIC_ID = UUID(int=7)
SEGMENT_MS = 1_000
ALWAYS = CompactionConfig(2**30, SEGMENT_MS, 0.0, 0, 2**62, 3_000)
PLAIN, IDEMPOTENT, TRANSACTIONAL = -1, 1, 2


class Written(NamedTuple):
    offset: int
    key: str
    value: str | None
    producer: int


@dataclass
class Writer:
    """A log that is compacted now and then, one that never is, and all records by plain loops. Times in ms."""

    rng: Random
    log: PartitionLog = field(default_factory=lambda: PartitionLog(TOPIC_ID))
    whole: PartitionLog = field(default_factory=lambda: PartitionLog(TOPIC_ID))
    written: list[Written] = field(default_factory=list)
    aborted: set[int] = field(default_factory=set)
    """Offsets of records of aborted transactions."""
    open: list[int] = field(default_factory=list)
    now: int = 1_000_000
    sequence: dict[int, int] = field(default_factory=lambda: {IDEMPOTENT: 0, TRANSACTIONAL: 0})

    def step(self) -> None:
        self.now += self.rng.choice([1, 300, 1_500])
        kinds = [self.write, self.end_transaction, self.compact, self.truncate]
        self.rng.choices(kinds, [12, 3, 4, 1])[0]()

    def write(self) -> None:
        producer, count = self.rng.choice([PLAIN, IDEMPOTENT, TRANSACTIONAL]), self.rng.randint(1, 3)
        pairs = [(self.rng.choice("abcd"), self.rng.choice([None, "x", "y", "z"])) for _ in range(count)]
        first = -1 if producer == PLAIN else self.sequence[producer]
        data = batch(
            *(None if value is None else value.encode() for _, value in pairs),
            keys=[key.encode() for key, _ in pairs],
            times=[self.now] * count,
            producer=(producer, -1 if producer == PLAIN else 0),
            sequence=first,
            transactional=producer == TRANSACTIONAL,
        )
        epoch = -1 if producer == PLAIN else 0
        self._append(RecordBatch(0, count - 1, -1, data, producer, epoch, first, self.now, producer == TRANSACTIONAL))
        if producer != PLAIN:
            self.sequence[producer] += count
        base = self.log.end_offset - count
        for number, (key, value) in enumerate(pairs):
            self.written.append(Written(base + number, key, value, producer))
        if producer == TRANSACTIONAL:
            self.open += range(base, base + count)

    def _append(self, one: RecordBatch) -> None:
        for log in (self.log, self.whole):
            log.append_as_leader(one, 0)
        # Nothing waits in these logs: it is the active segment that ends what is compacted, and the open transaction.
        self.log.high_watermark = self.whole.high_watermark = self.log.end_offset

    def end_transaction(self) -> None:
        marker = self.rng.choice([Marker.ABORT, Marker.COMMIT])
        if marker is Marker.ABORT:
            self.aborted |= set(self.open)
        self.open = []
        data = write_batch([end_marker(marker, 0)], self.now, TRANSACTIONAL, 0, control=True)
        self._append(RecordBatch(0, 0, -1, data, TRANSACTIONAL, 0, -1, self.now, True, True, marker))

    def compact(self) -> None:
        self.log.compact(ALWAYS, self.now, uncompressed_body)

    def truncate(self) -> None:
        """Of what was compacted nothing is ever truncated, as it was committed."""
        stable = self.log.last_stable_offset
        offset = self.rng.randint(max(self.log.compacted_to, stable), self.log.end_offset)
        bases = [one.base_offset for one in self.whole.batches if one.last_offset >= offset]
        if not bases or bases[0] < max(self.log.compacted_to, stable):
            return
        for log in (self.log, self.whole):
            log.truncate_to(bases[0])
        self.written = [one for one in self.written if one.offset < bases[0]]
        self.open = [one for one in self.open if one < bases[0]]
        for producer in self.sequence:
            entry = self.whole.producers.get(producer)
            self.sequence[producer] = entry.last_sequence + 1 if entry is not None else 0


def records_of(one: RecordBatch) -> list[tuple[int, str, bool]]:
    """Offset, key, whether it is a tombstone."""
    return [
        (one.base_offset + record.offset_delta, (record.key or b"").decode(), record.tombstone)
        for record in stored_records(one.data[HEADER_BYTES:])
    ]


def committed_view(log: PartitionLog) -> dict[str, int]:
    """The offset of the latest value of each key, as a consumer with read_committed finds it."""
    latest: dict[str, int] = {}
    for one in log.read(log.start_offset, log.last_stable_offset, 2**31):
        aborted = log.aborted_transactions(one.base_offset, one.last_offset + 1)
        if one.control or (one.transactional and any(each.producer_id == one.producer_id for each in aborted)):
            continue
        for offset, key, tombstone in records_of(one):
            latest.pop(key, None)
            if not tombstone:
                latest[key] = offset
    return latest


def latest_of(written: Iterable[Written]) -> dict[str, int]:
    latest: dict[str, int] = {}
    for one in written:
        latest.pop(one.key, None)
        if one.value is not None:
            latest[one.key] = one.offset
    return latest


@given(st.integers(0, 2**32), st.integers(1, 80))
@examples(1.5)
def test_a_reader_of_a_compacted_log_ends_with_the_same_values(seed: int, steps: int) -> None:
    writer = Writer(Random(seed))
    for _ in range(steps):
        writer.step()
    log = writer.log
    committed = [
        one for one in writer.written if one.offset < log.last_stable_offset and one.offset not in writer.aborted
    ]
    assert committed_view(log) == latest_of(committed) == committed_view(writer.whole)
    assert_left(writer)
    assert_same_state(log, writer.whole)
    assert_copied(log)


def assert_left(writer: Writer) -> None:
    """Records stand where they were written, the dirty ones all; below, one of each key."""
    log, at = writer.log, {one.offset: one for one in writer.written}
    found = [record for one in log.batches if not one.control for record in records_of(one)]
    assert [record for record in found if at[record[0]].key != record[1]] == []
    assert all((at[offset].value is None) == tombstone for offset, _, tombstone in found)
    dirty = [offset for offset, _, _ in found if offset >= log.compacted_to]
    assert dirty == [one.offset for one in writer.written if one.offset >= log.compacted_to]
    clean = [key for offset, key, _ in found if offset < log.compacted_to]
    assert len(clean) == len(set(clean))
    assert not {offset for offset, _, _ in found if offset < log.compacted_to} & writer.aborted
    for one in log.batches:
        verify_crc(one.data, read_stored_header(one.data))
    assert log.size_bytes == sum(one.size_bytes for one in log.batches)


def assert_same_state(log: PartitionLog, whole: PartitionLog) -> None:
    assert (log.start_offset, log.end_offset, log.last_stable_offset) == (
        whole.start_offset,
        whole.end_offset,
        whole.last_stable_offset,
    )
    assert log.producers == whole.producers
    assert log.epochs.entries == whole.epochs.entries


def assert_copied(log: PartitionLog) -> None:
    """A replica that copies the log ends at the same offset, and takes the next batch of each producer."""
    copy = PartitionLog(TOPIC_ID)
    for one in log.batches:
        copy.append(one)
    copy.high_watermark = copy.end_offset
    assert copy.end_offset == log.end_offset
    for producer, entry in log.producers.items():
        assert copy.producers[producer].epoch == entry.epoch
        if entry.window:
            assert copy.producers[producer].last_sequence == entry.last_sequence
        assert (producer in copy._states.now.open) == (producer in log._states.now.open)
    assert committed_view(copy) == committed_view(log)


def keyed(log: PartitionLog, *pairs: tuple[str, bytes | None], time: int) -> None:
    data = batch(*(value for _, value in pairs), keys=[key.encode() for key, _ in pairs], times=[time] * len(pairs))
    log.append_as_leader(RecordBatch(0, len(pairs) - 1, -1, data, max_timestamp=time), 0)
    log.high_watermark = log.end_offset


def offsets(log: PartitionLog) -> list[int]:
    return [offset for one in log.batches for offset, _, _ in records_of(one)]


def test_what_the_watermark_has_not_passed_is_not_compacted() -> None:
    log = PartitionLog(TOPIC_ID)
    for time in (0, 0, 5_000, 10_000):
        keyed(log, ("a", b"x"), time=time)
    log.high_watermark = 1
    assert not log.compact(ALWAYS, 10_000, uncompressed_body)
    log.high_watermark = 2
    assert log.compact(ALWAYS, 10_000, uncompressed_body)
    assert offsets(log) == [1, 2, 3]


def test_a_marker_stays_until_its_transaction_is_gone_and_then_for_delete_retention_ms() -> None:
    log = PartitionLog(TOPIC_ID)
    data = batch(b"x", keys=[b"a"], times=[0], producer=(2, 0), sequence=0, transactional=True)
    log.append_as_leader(RecordBatch(0, 0, -1, data, 2, 0, 0, 0, True), 0)
    marker = write_batch([end_marker(Marker.COMMIT, 0)], 0, 2, 0, control=True)
    log.append_as_leader(RecordBatch(0, 0, -1, marker, 2, 0, -1, 0, True, True, Marker.COMMIT), 0)
    # The producer's last batch stays while it is remembered, so that it is another epoch's that writes from now on.
    late = batch(b"y", keys=[b"z"], times=[0], producer=(2, 1), sequence=0)
    log.append_as_leader(RecordBatch(0, 0, -1, late, 2, 1, 0, 0), 0)
    markers = []
    for round_ in range(1, 6):
        keyed(log, ("a", b"x"), time=round_ * 2_000)
        log.compact(ALWAYS, round_ * 2_000, uncompressed_body)
        markers.append([one.base_offset for one in log.batches if one.control])
    # Its record stays until another of its key is below the active segment; then the horizon of 3,000 ms begins.
    assert markers == [[1], [1], [1], [1], []]


@pytest.mark.parametrize(
    ("config", "due"),
    [
        (ALWAYS, True),
        (CompactionConfig(2**30, SEGMENT_MS, 0.9, 0, 2**62, 0), False),
        (CompactionConfig(2**30, SEGMENT_MS, 0.9, 0, 100, 0), True),
        (CompactionConfig(2**30, 2**40, 0.0, 0, 2**62, 0), False),
        (CompactionConfig(100, 2**40, 0.0, 0, 2**62, 0), True),
        (CompactionConfig(2**30, SEGMENT_MS, 0.0, 5_000, 2**62, 0), False),
    ],
    ids=["always", "clean enough", "dirty for too long", "all active", "a full segment", "too young"],
)
def test_a_log_is_compacted_when_it_is_due(config: CompactionConfig, due: bool) -> None:
    log = PartitionLog(TOPIC_ID)
    keyed(log, ("b", b"x" * 10_000), time=0)
    keyed(log, ("a", b"x"), time=1)
    keyed(log, ("c", b"x"), time=2_000)
    assert log.compact(ALWAYS, 2_000, uncompressed_body)
    keyed(log, ("a", b"x"), time=2_001)
    keyed(log, ("c", b"x"), time=4_000)
    assert log.compact(config, 4_000, uncompressed_body) == due


def test_a_batch_that_cannot_be_decompressed_stays_whole() -> None:
    log = PartitionLog(TOPIC_ID)
    for time in (0, 0, 5_000):
        keyed(log, ("a", b"x"), time=time)
    assert log.compact(ALWAYS, 5_000, lambda one: None if one.base_offset == 0 else uncompressed_body(one))
    assert offsets(log) == [0, 1, 2]


# Which part is cleanable, and when.


def stamps(*times: int, size: int = 0) -> list[RecordBatch]:
    return [RecordBatch(i, i, 0, bytes(size), max_timestamp=time) for i, time in enumerate(times)]


def test_a_compacted_topics_configs_are_read_by_their_names() -> None:
    values = dict(zip(COMPACTION_KEYS, ("100", "200", "0.25", "300", "400", "500"), strict=True))
    assert CompactionConfig.of(values) == CompactionConfig(100, 200, 0.25, 300, 400, 500)
    assert set(values) == {
        *("segment.bytes", "segment.ms", "min.cleanable.dirty.ratio"),
        *("min.compaction.lag.ms", "max.compaction.lag.ms", "delete.retention.ms"),
    }
    assert CompactionConfig.of(dict.fromkeys(COMPACTION_KEYS)) == CompactionConfig(0, 0, 0.0, 0, 0, 0)


@pytest.mark.parametrize(
    ("times", "change", "first_dirty", "stable", "now", "end"),
    [
        ((), {}, 0, 9, 5_000, 0),
        ((0,), {}, 0, 9, 5_000, 0),
        ((0, 1_000), {}, 0, 9, 5_000, 0),
        ((0, 1_001), {}, 0, 9, 5_000, 1),
        ((0, 501), {"max_lag_ms": 500}, 0, 9, 5_000, 1),
        ((0, 500), {"max_lag_ms": 500}, 0, 9, 5_000, 0),
        ((0, 0, 2_000, 4_000), {}, 0, 9, 5_000, 3),
        ((0, 0, 2_000, 4_000), {}, 2, 9, 5_000, 3),
        ((0, 0, 2_000, 4_000), {}, 3, 9, 5_000, 3),
        ((0, 0, 2_000, 4_000), {}, 0, 2, 5_000, 2),
        ((0, 0, 2_000, 4_000), {}, 0, 1, 5_000, 0),
        ((0, 0, 2_000, 4_000), {"min_lag_ms": 3_000}, 0, 9, 5_000, 3),
        ((0, 0, 2_000, 4_000), {"min_lag_ms": 3_001}, 0, 9, 5_000, 2),
        ((0, 0, 2_000, 4_000), {"min_lag_ms": 5_000}, 0, 9, 5_000, 2),
        ((0, 0, 2_000, 4_000), {"min_lag_ms": 5_001}, 0, 9, 5_000, 0),
        ((9_000, 20_000), {}, 0, 9, 5_000, 1),
        ((0, 0, 0), {"segment_bytes": 20}, 0, 9, 5_000, 2),
        ((0, 0, 0), {"segment_bytes": 19}, 0, 9, 5_000, 2),
        ((0, 0, 0, 0), {"segment_bytes": 20}, 0, 9, 5_000, 2),
        ((0, 0, 0), {"segment_bytes": 30}, 0, 9, 5_000, 0),
    ],
)
def test_what_may_be_compacted_ends_before_the_active_segment(
    times: tuple[int, ...], change: dict[str, Any], first_dirty: int, stable: int, now: int, end: int
) -> None:
    """LogCleanerManager.cleanableOffsets; LogSegment.shouldRoll. Batches are of 10 bytes and one record."""
    config = replace(ALWAYS, **change)
    assert cleanable_end(stamps(*times, size=10), first_dirty, stable, config, now) == end


@pytest.mark.parametrize(
    ("ratio", "max_lag_ms", "now", "due"),
    [
        (0.49, 2**62, 9_000, True),
        (0.5, 2**62, 9_000, False),
        (0.5, 6_000, 8_000, False),
        (0.5, 6_000, 8_001, True),
    ],
)
def test_it_is_compacted_when_enough_is_dirty_or_something_for_too_long(
    ratio: float, max_lag_ms: int, now: int, due: bool
) -> None:
    """The first two of four batches are clean, the next two dirty since 2,000, the last is in the active segment."""
    config = replace(ALWAYS, min_dirty_ratio=ratio, max_lag_ms=max_lag_ms)
    batches = stamps(0, 0, 2_000, 2_000, 5_000, size=10)
    assert cleanable_end(batches, 2, 9, config, now) == (4 if due else 2)


def test_a_batch_without_a_timestamp_is_never_dirty_for_too_long() -> None:
    config = replace(ALWAYS, min_dirty_ratio=1.0, max_lag_ms=100)
    assert cleanable_end(stamps(-1, 5_000, size=10), 0, 9, config, 10**9) == 0
    assert cleanable_end(stamps(0, 5_000, size=10), 0, 9, config, 10**9) == 1


def test_a_body_is_what_follows_the_header_of_a_batch_that_is_not_compressed() -> None:
    data = batch(b"x", keys=[b"a"], times=[0])
    body = uncompressed_body(RecordBatch(0, 0, 0, data))
    assert body is not None
    assert bytes(body) == bytes(data)[61:]
    assert uncompressed_body(RecordBatch(0, 0, 0, bytes(data)[:60])) is None
    assert uncompressed_body(RecordBatch(0, 0, 0)) is None
    gzipped = bytearray(data)
    gzipped[22] |= 1
    assert uncompressed_body(RecordBatch(0, 0, 0, bytes(gzipped))) is None


# Which records stay.


def test_a_tombstone_stays_until_delete_retention_ms_after_the_first_compaction_that_kept_it() -> None:
    log = PartitionLog(TOPIC_ID)
    keyed(log, ("a", b"x"), ("a", None), ("b", b"y"), time=0)
    for time in (2_000, 3_500, 5_000):
        keyed(log, ("c", b"z"), time=time)
    assert log.compact(ALWAYS, 3_000, uncompressed_body)
    assert (offsets(log), log.compacted_to, log.batches[0].delete_horizon_ms) == ([1, 2, 4, 5], 5, 6_000)
    keyed(log, ("c", b"z"), time=7_000)
    assert log.compact(ALWAYS, 5_999, uncompressed_body)
    assert (offsets(log), log.batches[0].delete_horizon_ms) == ([1, 2, 5, 6], 6_000), "the first one's horizon"
    keyed(log, ("c", b"z"), time=9_000)
    assert log.compact(ALWAYS, 6_000, uncompressed_body)
    assert (offsets(log), log.batches[0].base_offset) == ([2, 6, 7], 0)
    assert log.size_bytes == sum(len(one.data) for one in log.batches)


def test_a_record_without_a_key_goes_and_one_before_the_dirty_part_stays_until_its_key_is_written_again() -> None:
    log = PartitionLog(TOPIC_ID)
    data = batch(b"x", b"y", keys=[None, b"a"], times=[0, 0])
    log.append_as_leader(RecordBatch(0, 1, -1, data, max_timestamp=0), 0)
    keyed(log, ("b", b"x"), time=2_000)
    keyed(log, ("b", b"x"), time=4_000)
    assert log.compact(ALWAYS, 5_000, uncompressed_body)
    assert (offsets(log), log.compacted_to) == ([1, 2, 3], 3)
    keyed(log, ("a", b"z"), time=6_000)
    keyed(log, ("d", b"z"), time=8_000)
    assert log.compact(ALWAYS, 9_000, uncompressed_body)
    assert offsets(log) == [3, 4, 5]
    assert not log.compact(ALWAYS, 9_000, uncompressed_body), "nothing is dirty but the active segment"


def test_the_last_batch_of_a_producer_stays_empty_and_its_older_ones_go() -> None:
    log = PartitionLog(TOPIC_ID)
    for sequence in range(2):
        data = batch(b"x", keys=[b"a"], times=[0], producer=(7, 3), sequence=sequence)
        log.append_as_leader(RecordBatch(0, 0, -1, data, 7, 3, sequence, 0), 0)
    for time in (0, 2_000):
        keyed(log, ("a", b"y"), time=time)
    assert log.compact(ALWAYS, 5_000, uncompressed_body)
    assert (offsets(log), [one.base_offset for one in log.batches]) == ([2, 3], [1, 2, 3])
    assert (log.batches[0].producer_id, log.batches[0].base_sequence, log.batches[0].last_offset) == (7, 1, 1)
