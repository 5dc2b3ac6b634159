"""The metadata that reaches a broker of each protocol version: registrations as records and in an image."""

import pytest

from rackspan.cluster.core.messages import FetchMetadataResponse
from rackspan.cluster.core.metadata import EMPTY_IMAGE, BrokerChanged, BrokerRegistered, apply_records
from rackspan.cluster.zookeeper_era import received_metadata
from rackspan.model.ids import BrokerId, RackId

RECORDS = (
    BrokerRegistered(BrokerId(1), 0, 4, RackId("a"), "one", 9001),
    BrokerRegistered(BrokerId(2), 1, 5, RackId("b"), "two", 9002),
    BrokerChanged(BrokerId(1), 0, fenced=False, in_controlled_shutdown=False),
)


@pytest.mark.parametrize(
    ("version", "racks"), [("0.8.2", {None}), ("0.9.0.X", {None}), ("0.10.0", {"a", "b"}), ("2.7", {"a", "b"})]
)
def test_racks_reach_brokers_from_0_10_0_on(version: str, racks: set[str | None]) -> None:
    sent = FetchMetadataResponse(1, 0, RECORDS, apply_records(EMPTY_IMAGE, RECORDS))
    received = received_metadata(sent, version)
    assert received.image is not None
    assert {broker.rack for broker in received.image.brokers.values()} == racks
    assert received.image == apply_records(EMPTY_IMAGE, received.records)
    addresses = [(broker.id, broker.host, broker.port, broker.fenced) for broker in received.image.brokers.values()]
    assert addresses == [(1, "one", 9001, False), (2, "two", 9002, True)]
    assert received.image.racks.count((BrokerId(1), BrokerId(2))) == len(racks)
