from rackspan.model import BrokerId, RackId
from rackspan.placement import UsableBroker
from rackspan.placement.java_random import JavaRandom
from rackspan.placement.rack_stripes import BrokerList, rack_stripes


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


def test_a_list_asked_last_and_first_in_the_same_epoch_believes_to_be_in_the_same_partition() -> None:
    # With fewer live brokers than two times the racks this happens, and Kafka's placement shows it: after the shuffle
    # following partition 1 broker 0 is not asked again in epoch 0, so it is arrays' business to stay away.
    stripes = rack_stripes([on_rack(0, "a"), on_rack(1, "b")], JavaRandom(1))
    assert stripes.lists_start_afresh is False
    assert rack_stripes([on_rack(broker, "ab"[broker % 2]) for broker in range(4)], JavaRandom(1)).lists_start_afresh
    assert rack_stripes([on_rack(0, "a"), on_rack(1, "b", fenced=True)], JavaRandom(1)).lists_start_afresh
