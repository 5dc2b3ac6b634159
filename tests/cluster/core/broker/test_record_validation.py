"""What a topic's configs require of records: keys, timestamps, LogAppendTime."""

import pytest

from rackspan.cluster.core.broker.record_validation import AFTER, BEFORE, CLEANUP, TIMESTAMP_TYPE, RecordConfig
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.handlers.common import lacks_a_key
from rackspan.kafka_bytes.record_batch import read_header, stamp_append_time, verify_crc
from tests.conformance.wire import batch

NOW = 1_000_000
DEFAULTS = {CLEANUP: "delete", TIMESTAMP_TYPE: "CreateTime", BEFORE: "1000", AFTER: "500"}


def error(data: bytes, **configs: str) -> KafkaError | None:
    named = {**DEFAULTS, **{key.replace("_", "."): value for key, value in configs.items()}}
    refusal = RecordConfig.of(named).error(read_header(data), memoryview(data), NOW, lacks_a_key)
    return None if refusal is None else refusal.error


@pytest.mark.parametrize(
    ("times", "wanted"),
    [
        ((NOW - 1000, NOW + 500), None),
        ((NOW - 1001,), KafkaError.INVALID_TIMESTAMP),
        ((NOW, NOW + 501), KafkaError.INVALID_TIMESTAMP),
        ((-1,), None),
    ],
)
def test_timestamps_are_accepted_within_the_topics_limits(times: tuple[int, ...], wanted: KafkaError | None) -> None:
    data = batch(*[b"a"] * len(times), times=times)
    assert error(data) is wanted
    assert error(data, message_timestamp_type="LogAppendTime") is None


@pytest.mark.parametrize("policy", ["compact", "delete,compact", "delete, compact"])
def test_a_compacted_topic_requires_a_key_of_every_record(policy: str) -> None:
    two = batch(b"a", b"b", keys=[b"k", b"l"], times=[NOW, NOW])
    assert error(two, cleanup_policy=policy) is None
    assert error(batch(b"a", times=[NOW]), cleanup_policy=policy) is KafkaError.INVALID_RECORD
    assert error(batch(b"a", times=[NOW], compression=1), cleanup_policy=policy) is KafkaError.INVALID_RECORD


def test_the_time_of_append_is_stamped_and_the_bytes_stay_sound() -> None:
    data = bytearray(batch(b"a", b"b", times=[5, 6]))
    stamp_append_time(data, NOW)
    header = read_header(data)
    verify_crc(data, header)
    assert (header.log_append_time, header.max_timestamp, header.base_timestamp) == (True, NOW, 5)
