from random import Random

from rackspan.streams.user_data.consumer_protocol import decode_consumer_assignment, decode_consumer_subscription
from tests.streams.groups import member
from tests.streams.user_data.test_subscription_info import mutated, refusal


def test_the_rack_is_a_field_from_version_3_on() -> None:
    for version, rack in ((0, None), (1, None), (2, None), (3, "r1")):
        subscription = decode_consumer_subscription(member("a", protocol_version=version).metadata, "m")
        assert (subscription.version, subscription.rack) == (version, rack)


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
