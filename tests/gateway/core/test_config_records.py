"""The records of the config topic: replayed once each, and after a new beginning by the last of each key."""

from rackspan.gateway.core.config_records import ConfigRecords
from rackspan.kafka_bytes.primitives import int16
from rackspan.kafka_bytes.record_batch import stamp, write_batch

Replayed = list[tuple[bytes | None, bytes | None]]


def at(offset: int, *records: tuple[bytes | None, bytes | None], control: bool = False) -> bytes:
    batch = bytearray(write_batch(list(records), 0, control=control))
    stamp(batch, base_offset=offset, leader_epoch=1)
    return bytes(batch)


def read_to_its_end(*batches: bytes) -> tuple[ConfigRecords, Replayed]:
    replayed: Replayed = []
    records = ConfigRecords(lambda key, value: replayed.append((key, value)))
    records.replay_batches(b"".join(batches))
    records.end()
    return records, replayed


def test_nothing_counts_as_replayed_before_the_first_end() -> None:
    replayed: Replayed = []
    records = ConfigRecords(lambda key, value: replayed.append((key, value)))
    records.replay_batches(at(0, (b"a", b"1"), (b"a", b"2"), (b"b", b"1")))
    assert (replayed, records.offset, records.has_passed(0)) == ([], 3, False)
    assert records.end() == set()
    assert replayed == [(b"a", b"2"), (b"b", b"1")]
    assert [records.has_passed(offset) for offset in (2, 3)] == [True, False]


def test_of_a_batch_that_begins_earlier_only_the_records_from_the_offset_on_are_replayed() -> None:
    """A broker sends whole batches: the one that has the offset, from its beginning."""
    records, replayed = read_to_its_end(at(0, (b"a", b"1"), (b"a", b"2")))
    records.replay_batches(at(1, (b"a", b"2"), (b"b", b"1")))
    assert (replayed, records.offset) == ([(b"a", b"2"), (b"b", b"1")], 3)


def test_control_records_are_passed_over() -> None:
    records, replayed = read_to_its_end(at(0, (int16(0) + int16(1), b"commit"), control=True), at(1, (b"a", b"1")))
    assert (replayed, records.offset) == ([(b"a", b"1")], 2)


def test_a_key_that_is_lost_is_named_once_until_another_one_is() -> None:
    records, replayed = read_to_its_end(at(0, (b"a", b"1"), (b"b", b"1"), (b"c", b"1"), (b"c", None)))
    del replayed[:]
    records.read_again(0)
    assert not records.has_passed(0)
    records.replay_batches(at(0, (b"b", b"1")))
    assert records.end() == {b"a"}
    assert replayed == [(b"b", b"1")]
    records.read_again(0)
    records.replay_batches(at(0, (b"b", b"1")))
    assert records.end() == set()
    records.read_again(0)
    assert records.end() == {b"a", b"b"}
    assert records.lost == {b"a", b"b"}
    records.replay_batches(at(0, (b"a", b"2")))
    assert records.lost == {b"b"}
    assert records.end() == set()


def test_an_earlier_response_of_another_replica_changes_nothing() -> None:
    records, replayed = read_to_its_end(at(0, (b"a", b"1")), at(1, (b"a", b"2")))
    records.replay_batches(at(0, (b"a", b"1")))
    assert (replayed, records.offset) == ([(b"a", b"2")], 2)
