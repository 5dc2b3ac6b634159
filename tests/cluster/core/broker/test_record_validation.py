"""What a topic's configs require of records: keys, timestamps, LogAppendTime."""

import pytest

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker.record_validation import (
    AFTER,
    BEFORE,
    CLEANUP,
    TIMESTAMP_TYPE,
    RecordConfig,
    validated_batch,
)
from rackspan.cluster.core.messages import ProduceResponse
from rackspan.cluster.handlers.common import keyless_records
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.kafka_bytes.record_batch import read_header, stamp_append_time, verify_crc
from rackspan.model.ids import TopicPartition
from tests.cluster.world import World
from tests.conformance.wire import batch

NOW = 1_000_000
ORDERS = TopicPartition("orders", 3)
DEFAULTS = {CLEANUP: "delete", TIMESTAMP_TYPE: "CreateTime", BEFORE: "1000", AFTER: "500"}


def error(data: bytes, **configs: str) -> ErrorCode | None:
    named = {**DEFAULTS, **{key.replace("_", "."): value for key, value in configs.items()}}
    refusal = RecordConfig.of(named).error(ORDERS, read_header(data), memoryview(data), NOW, keyless_records)
    return None if refusal is None else refusal.error


@pytest.mark.parametrize(
    ("times", "wanted"),
    [
        ((NOW - 1000, NOW + 500), None),
        ((NOW - 1001,), ErrorCode.INVALID_TIMESTAMP),
        ((NOW, NOW + 501), ErrorCode.INVALID_TIMESTAMP),
        ((-1,), None),
    ],
)
def test_timestamps_are_accepted_within_the_topics_limits(times: tuple[int, ...], wanted: ErrorCode | None) -> None:
    data = batch(*[b"a"] * len(times), times=times)
    assert error(data) is wanted
    assert error(data, message_timestamp_type="LogAppendTime") is None


@pytest.mark.parametrize("policy", ["compact", "delete,compact", "delete, compact"])
def test_a_compacted_topic_requires_a_key_of_every_record(policy: str) -> None:
    two = batch(b"a", b"b", keys=[b"k", b"l"], times=[NOW, NOW])
    assert error(two, cleanup_policy=policy) is None
    assert error(batch(b"a", times=[NOW]), cleanup_policy=policy) is ErrorCode.INVALID_RECORD
    assert error(batch(b"a", times=[NOW], compression=1), cleanup_policy=policy) is ErrorCode.INVALID_RECORD


def test_a_batch_is_refused_for_each_of_its_records_without_a_key() -> None:
    """KIP-467: an entry for each, and the first three in the message."""
    data = batch(b"a", b"b", b"c", b"d", b"e", keys=[None, b"k", None, None, None], times=[NOW] * 5)
    refusal = RecordConfig.of({**DEFAULTS, CLEANUP: "compact"}).error(
        ORDERS, read_header(data), memoryview(data), NOW, keyless_records
    )
    assert refusal is not None
    assert [error.index for error in refusal.record_errors] == [0, 2, 3, 4]
    message = "Compacted topic cannot accept message without key in topic partition orders-3"
    assert {error.message for error in refusal.record_errors} == {message}
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{message}')" for index in (0, 2, 3))
    assert refusal.message == (
        "One or more records have been rejected due to 4 record errors in total, "
        f"and only showing the first three errors at most: [{shown}]"
    )


def test_the_time_of_append_is_stamped_and_the_bytes_stay_sound() -> None:
    data = bytearray(batch(b"a", b"b", times=[5, 6]))
    stamp_append_time(data, NOW)
    header = read_header(data)
    verify_crc(data, header)
    assert (header.log_append_time, header.max_timestamp, header.base_timestamp) == (True, NOW, 5)


def validated(data: bytes, **configs: str) -> RecordBatch | ProduceResponse:
    named = {**DEFAULTS, **{key.replace("_", "."): value for key, value in configs.items()}}
    return validated_batch(ORDERS, memoryview(data), RecordConfig.of(named), NOW, keyless_records)


@pytest.mark.parametrize(("time_of", "latest"), [("CreateTime", NOW + 6), ("LogAppendTime", NOW)])
def test_a_batch_has_the_time_of_its_records_or_of_the_append(time_of: str, latest: int) -> None:
    made = validated(batch(b"a", b"b", times=[NOW + 5, NOW + 6]), message_timestamp_type=time_of)
    assert isinstance(made, RecordBatch)
    header = read_header(made.data)
    verify_crc(made.data, header)
    assert (made.max_timestamp, header.max_timestamp) == (latest, latest)
    assert (made.base_offset, made.last_offset, made.leader_epoch) == (0, 1, -1)
    assert (made.producer_id, made.producer_epoch, made.base_sequence) == (-1, -1, -1)
    assert (made.transactional, made.control) == (False, False)


def test_what_is_not_one_sound_batch_of_version_2_is_refused() -> None:
    one = batch(b"a", times=[NOW])
    older, flipped = bytearray(one), bytearray(one)
    older[16], flipped[-1] = 1, flipped[-1] ^ 1
    refusals = [validated(data) for data in (one + one, bytes(older), bytes(flipped), one[:-1], b"")]
    assert [one.error for one in refusals if isinstance(one, ProduceResponse)] == [
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_RECORD,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.CORRUPT_MESSAGE,
    ]


def test_records_get_the_time_of_append_where_their_topics_config_says_so() -> None:
    w = World({1: "a", 2: "b", 3: "c"})
    w.run(500)
    w.create("stamped", [1], message_timestamp_type="LogAppendTime")
    w.create("plain", [1])
    w.settle()
    core = w.broker(1)
    assert (core.appends_time("stamped"), core.appends_time("plain")) == (True, False)
