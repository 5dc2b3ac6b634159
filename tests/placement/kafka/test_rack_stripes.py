import pytest

from rackspan.model import BrokerId, RackId
from rackspan.placement import UsableBroker
from rackspan.placement.kafka.java_random import JavaRandom
from rackspan.placement.kafka.rack_stripes import BrokerList, rack_stripes
from tests.placement.rigged_rng import ZeroRng


def on_rack(broker: int, rack: str, fenced: bool = False) -> UsableBroker:
    return UsableBroker(BrokerId(broker), RackId(rack), fenced)


def test_a_list_hands_out_each_broker_once_an_epoch_and_begins_one_further_in_the_next() -> None:
    # Kafka's own testBrokerList.
    brokers = BrokerList([BrokerId(broker) for broker in range(4)])
    assert [brokers.next_broker(0) for _ in range(6)] == [0, 1, 2, 3, -1, -1]
    assert [brokers.next_broker(1) for _ in range(5)] == [1, 2, 3, 0, -1]


def test_an_empty_list_hands_out_nothing() -> None:
    assert BrokerList().next_broker(1) == -1


def test_a_rack_gives_live_brokers_before_fenced_ones() -> None:
    stripes = rack_stripes([on_rack(1, "a", fenced=True), on_rack(2, "a"), on_rack(3, "b")], JavaRandom(1))
    (rack,) = [rack for rack in stripes.drawing if rack.fenced.brokers]
    assert [rack.next_broker(0) for _ in range(3)] == [2, 1, -1]


def test_kafka_takes_the_first_partition_after_a_shuffle_for_one_before_it() -> None:
    # Two brokers on two racks, one replica. Broker 0 led a partition in epoch 0, then broker 1 in epoch 1, then comes a shuffle.
    # Back in epoch 0, rack a takes the partition for the one that broker 0 was used in already, and broker 1 has to lead.
    stripes = rack_stripes([on_rack(0, "a"), on_rack(1, "b")], ZeroRng())
    racks = list(stripes.striped)
    assert [stripes.next_partition(1) for _ in range(2)] == [[0], [1]]
    stripes._shuffle()
    stripes.striped = racks
    assert stripes.next_partition(1) == [1]


@pytest.mark.parametrize(
    ("live", "fenced", "afresh"),
    [("ab", "", False), ("abc", "abc", False), ("abab", "", True), ("a", "b", True), ("aa", "", True)],
)
def test_rounds_of_twice_the_racks_or_of_one_broker_never_do_that(live: str, fenced: str, afresh: bool) -> None:
    brokers = [on_rack(broker, rack, broker >= len(live)) for broker, rack in enumerate(live + fenced)]
    assert rack_stripes(brokers, JavaRandom(1)).lists_restart_after_shuffle is afresh
