from random import Random

import pytest

from rackspan.errors import InvalidGroup
from rackspan.streams.user_data.consumer_protocol import decode_consumer_assignment, decode_consumer_subscription
from tests.streams.groups import member
from tests.streams.user_data.test_subscription_info import mutated, refusal


def test_the_rack_is_a_field_from_version_3_on() -> None:
    for version, rack in ((0, None), (1, None), (2, None), (3, "r1")):
        subscription = decode_consumer_subscription(member("a", protocol_version=version).metadata, "m")
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
    read = decode_consumer_subscription(data, "m")
    assert (read.version, read.user_data, read.rack) == (version, b"ud", "r1" if version == 3 else None)
    for cut in range(len(data)):
        with pytest.raises(InvalidGroup):
            decode_consumer_subscription(data[:cut], "m")


def test_an_empty_rack_is_none() -> None:
    assert decode_consumer_subscription(member("a", rack="").metadata, "m").rack is None


def test_a_newer_version_may_add_at_the_end() -> None:
    data = member("a", protocol_version=4, rack="r2").metadata
    assert decode_consumer_subscription(data + b"news", "m").rack == "r2"


def test_partitions_come_topic_by_topic() -> None:
    data = member("a", active={"0_0": ["b:0", "a:0"], "0_1": ["a:1"]}).assignment
    assert decode_consumer_assignment(data, "m").partitions == (("a", 0), ("a", 1), ("b", 0))


def test_10000_corrupted_messages_are_read_or_refused_in_one_line() -> None:
    rng = Random(881)
    one = member("a", active={"0_0": ["b:0", "a:0"], "0_1": ["a:1"]}, standby={"1_0": ["c:0"]})
    lines = [
        refusal(lambda data: decode_consumer_subscription(data, "m"), mutated(one.metadata, rng)) for _ in range(5_000)
    ] + [
        refusal(lambda data: decode_consumer_assignment(data, "m"), mutated(one.assignment, rng)) for _ in range(5_000)
    ]
    refused = [line for line in lines if line is not None]
    assert 1_000 < len(refused) < 10_000
    assert not any("\n" in line for line in refused)
