from collections.abc import Callable
from random import Random

import pytest

from rackspan.errors import MalformedBytes
from rackspan.kafka_bytes.consumer_protocol import (
    decode_consumer_assignment,
    decode_consumer_subscription,
    decode_subscribed_topics,
)
from tests.streams.groups import member
from tests.streams.user_data.test_subscription_info import mutated


def test_the_rack_is_a_field_from_version_3_on() -> None:
    for version, rack in ((0, None), (1, None), (2, None), (3, "r1")):
        subscription = decode_consumer_subscription(member("a", protocol_version=version).metadata)
        assert (subscription.version, subscription.rack) == (version, rack)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_owned_partitions_and_generation_are_passed_over_where_the_version_has_them(version: int) -> None:
    """ConsumerProtocolSubscription by Kafka's message format: owned partitions from 1, generation from 2, rack from 3."""
    topic = b"\x00\x01t"
    data = version.to_bytes(2, "big") + b"\x00\x00\x00\x01" + topic + b"\x00\x00\x00\x02ud"
    if version >= 1:
        data += b"\x00\x00\x00\x01" + topic + b"\x00\x00\x00\x02" + bytes(4) + b"\x00\x00\x00\x01"
    if version >= 2:
        data += b"\x00\x00\x00\x07"
    if version >= 3:
        data += b"\x00\x02r1"
    read = decode_consumer_subscription(data)
    assert (read.version, read.topics, read.user_data) == (version, ("t",), b"ud")
    assert read.rack == ("r1" if version == 3 else None)
    assert decode_subscribed_topics(data) == ("t",)
    for cut in range(len(data)):
        with pytest.raises(MalformedBytes):
            decode_consumer_subscription(data[:cut])


def test_an_empty_rack_is_none() -> None:
    assert decode_consumer_subscription(member("a", rack="").metadata).rack is None


def test_a_newer_version_may_add_at_the_end() -> None:
    data = member("a", protocol_version=4, rack="r2").metadata
    assert decode_consumer_subscription(data + b"news").rack == "r2"


def test_partitions_come_topic_by_topic() -> None:
    data = member("a", active={"0_0": ["b:0", "a:0"], "0_1": ["a:1"]}).assignment
    assert decode_consumer_assignment(data).partitions == (("a", 0), ("a", 1), ("b", 0))


def test_10000_corrupted_messages_are_read_or_refused() -> None:
    rng = Random(881)
    sent = member("a", active={"0_0": ["b:0", "a:0"], "0_1": ["a:1"]}, standby={"1_0": ["c:0"]})
    outcomes = [is_refused(decode_consumer_subscription, mutated(sent.metadata, rng)) for _ in range(5_000)]
    outcomes += [is_refused(decode_consumer_assignment, mutated(sent.assignment, rng)) for _ in range(5_000)]
    assert 1_000 < sum(outcomes) < 10_000


def is_refused(decode: Callable[[bytes], object], data: bytes) -> bool:
    """Whether the data cannot be decoded; any other exception fails the test."""
    try:
        decode(data)
    except MalformedBytes:
        return True
    return False
