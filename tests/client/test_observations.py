"""A broker's metadata as a sample: a broker adds the rack that it is given with, or none."""

from rackspan.client.observations import registered_brokers, sample_of
from rackspan.model import Broker, BrokerId, RackId
from rackspan.wire.messages.metadata import MetadataResponseBroker, MetadataResponseData

METADATA = MetadataResponseData(
    brokers=[MetadataResponseBroker(node_id=number, host="h", port=1, rack=f"r{number}") for number in (1, 2, 3)]
)


def test_racks_are_those_of_the_given_brokers() -> None:
    brokers = [Broker(BrokerId(1), RackId("located")), Broker(BrokerId(2), None)]
    racks = sample_of(1, 0.0, frozenset(), METADATA, brokers).racks
    assert [racks.count([BrokerId(1), BrokerId(other)]) for other in (2, 3)] == [2, 1]


def test_registered_racks_are_those_of_the_metadata() -> None:
    assert [(broker.id, broker.rack) for broker in registered_brokers(METADATA)] == [(1, "r1"), (2, "r2"), (3, "r3")]
