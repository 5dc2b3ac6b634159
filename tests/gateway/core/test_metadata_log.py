"""The metadata log's records, written here by Kafka's schemas; test_quorum.py reads those that Kafka wrote."""

from uuid import UUID

import pytest

from rackspan.errors import CorruptRecords, MalformedBytes, UnknownMetadataVersion
from rackspan.gateway.core.metadata_log import CommittedImage, CommittedPartition
from rackspan.kafka_bytes.primitives import (
    NO_TAGS,
    compact_array,
    compact_string,
    int16,
    int32,
    int64,
    tagged_fields,
    unsigned_varint,
)
from rackspan.kafka_bytes.record_batch import stamp, write_batch

TOPIC_ID = UUID(int=7)


def record(kind: int, version: int, body: bytes) -> bytes:
    return b"".join(map(unsigned_varint, (1, kind, version))) + body


def ids(*brokers: int) -> bytes:
    return compact_array([int32(one) for one in brokers])


def topic(name: str = "orders", topic_id: UUID = TOPIC_ID) -> bytes:
    return record(2, 0, compact_string(name) + topic_id.bytes + NO_TAGS)


def partition(isr: tuple[int, ...], version: int = 2, leader: int = 1) -> bytes:
    lists = ids(1, 2, 3) + ids(*isr) + ids() + ids()
    directories = compact_array([]) if version else b""
    return record(
        3, version, int32(0) + TOPIC_ID.bytes + lists + int32(leader) + int32(4) + int32(9) + directories + NO_TAGS
    )


def change(
    isr: tuple[int, ...] | None = None,
    leader: int | None = None,
    version: int = 2,
    replicas: tuple[int, ...] | None = None,
) -> bytes:
    tags = ({} if isr is None else {0: ids(*isr)}) | ({} if leader is None else {1: int32(leader)})
    tags |= {} if replicas is None else {2: ids(*replicas)}
    return record(5, version, int32(0) + TOPIC_ID.bytes + tagged_fields(tags))


def register(broker: int, rack: str | None, version: int = 3, tags: bytes = NO_TAGS) -> bytes:
    end_point = compact_string("CLIENT") + compact_string("localhost") + b"\x23\x84" + int16(0) + NO_TAGS
    feature = compact_string("metadata.version") + int16(1) + int16(27) + NO_TAGS
    body = int32(broker) + (b"\x00" if version >= 2 else b"") + bytes(16) + int64(5)
    body += compact_array([end_point]) + compact_array([feature])
    body += (b"\x00" if rack is None else compact_string(rack)) + b"\x01" + (b"\x00" if version else b"") + tags
    return record(0, version, body)


def image(*records: bytes) -> CommittedImage:
    made = CommittedImage()
    for one in records:
        made.replay(one)
    return made


@pytest.mark.parametrize("version", range(3))
def test_a_partition_has_the_isr_of_its_last_change(version: int) -> None:
    made = image(topic(), partition((1, 2, 3), version), change((1, 2), version=version), change((1,), version=version))
    assert made.topic("orders") == {0: CommittedPartition(1, 4, (1,), 3)}


def test_a_change_of_the_leader_begins_an_epoch_and_keeps_the_isr() -> None:
    made = image(topic(), partition((1, 2, 3)), change(leader=2), change((2,), leader=2))
    assert made.topic("orders") == {0: CommittedPartition(2, 6, (2,), 3)}


def test_a_reassignment_changes_the_number_of_replicas() -> None:
    made = image(topic(), partition((1, 2, 3)), change(replicas=(1, 2, 3, 4)), change((1, 2)), change(replicas=(1, 2)))
    assert made.topic("orders") == {0: CommittedPartition(1, 4, (1, 2), 2)}


@pytest.mark.parametrize("version", range(4))
def test_a_broker_keeps_its_rack_until_it_is_unregistered(version: int) -> None:
    made = image(register(1, "r1", version), register(2, None, version), register(1, "r9", version))
    assert made.racks == {1: "r9", 2: None}
    made.replay(record(1, 0, int32(1) + int64(5) + NO_TAGS))
    assert made.racks == {2: None}


def test_a_topic_that_is_removed_and_made_anew_starts_without_partitions() -> None:
    made = image(topic(), partition((1,)), record(9, 0, TOPIC_ID.bytes + NO_TAGS))
    assert made.topic("orders") == {}
    made.replay(topic(topic_id=UUID(int=8)))
    assert (made.topic_ids, made.topic("orders")) == ({"orders": UUID(int=8)}, {})


def test_a_removal_leaves_the_topic_that_has_its_name_by_now_and_one_that_is_not_known_leaves_all() -> None:
    removal = record(9, 0, TOPIC_ID.bytes + NO_TAGS)
    assert image(topic(), topic(topic_id=UUID(int=8)), removal).topic_ids == {"orders": UUID(int=8)}
    assert image(topic(topic_id=UUID(int=8)), removal).topic_ids == {"orders": UUID(int=8)}


def test_records_of_a_transaction_count_once_it_has_ended() -> None:
    made = image(topic(), partition((1, 2, 3)), record(23, 0, NO_TAGS), change((1,)))
    assert made.topic("orders")[0].isr == (1, 2, 3)
    made.replay(record(24, 0, NO_TAGS))
    assert made.topic("orders")[0].isr == (1,)
    for one in (record(23, 0, NO_TAGS), change((1, 2)), record(25, 0, NO_TAGS), record(24, 0, NO_TAGS)):
        made.replay(one)
    assert made.topic("orders")[0].isr == (1,)


def test_records_above_the_high_watermark_are_left_for_later() -> None:
    made = CommittedImage()
    batches = []
    for offset, records in ((0, [topic(), partition((1, 2, 3))]), (2, [change((1,))])):
        batch = bytearray(write_batch([(None, one) for one in records], 0))
        stamp(batch, offset, 3)
        batches.append(bytes(batch))
    made.replay_batches(b"".join(batches), 2)
    assert (made.offset, made.epoch, made.topic("orders")[0].isr) == (2, 3, (1, 2, 3))
    made.replay_batches(b"".join(batches), 3)
    assert (made.offset, made.topic("orders")[0].isr) == (3, (1,))
    broken = bytearray(batches[0])
    broken[-1] ^= 1
    with pytest.raises(CorruptRecords):
        CommittedImage().replay_batches(bytes(broken), 2)


def test_the_cordoned_directories_of_kafka_4_3_change_no_isr_and_no_rack() -> None:
    cordoned = tagged_fields({1: compact_array([UUID(int=5).bytes])})
    level = record(12, 0, compact_string("metadata.version") + int16(30) + NO_TAGS)
    made = image(level, register(1, "r1", 4, cordoned), topic(), partition((1, 2)))
    assert made.racks == {1: "r1"}
    assert made.topic("orders")[0].isr == (1, 2)


def test_a_controller_that_kafka_4_4_unregisters_changes_no_isr_and_no_rack() -> None:
    level = record(12, 0, compact_string("metadata.version") + int16(33) + NO_TAGS)
    made = image(level, register(1, "r1", 4), topic(), partition((1, 2)), record(29, 0, int32(101) + NO_TAGS))
    assert made.racks == {1: "r1"}
    assert made.topic("orders")[0].isr == (1, 2)


def test_what_a_later_kafka_may_mean_otherwise_is_refused() -> None:
    level = compact_string("metadata.version") + int16(34) + NO_TAGS
    for unknown in (
        record(5, 3, b""),
        record(0, 5, b""),
        record(3, 3, b""),
        record(12, 0, level),
        record(30, 0, b""),
        b"\x02" + topic()[1:],
    ):
        with pytest.raises(UnknownMetadataVersion):
            image(topic(), partition((1,)), unknown)
    with pytest.raises(MalformedBytes):
        image(change((1,)))
    # Other kinds of the levels that are known change no ISR, whatever their version.
    assert image(record(28, 9, b"?")).partitions == {}
