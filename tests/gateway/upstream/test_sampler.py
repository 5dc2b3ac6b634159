"""What a broker's metadata becomes as a sample: racks that are not known yet count for nothing."""

from rackspan.gateway.upstream.sampler import sample_of
from rackspan.model import BrokerId
from rackspan.wire.messages.metadata import MetadataResponseBroker, MetadataResponseData


class LocatedRacks:
    """A rack locator's: broker 1 is in r1, broker 2 has none, and it was not called for broker 3 yet."""

    def rack(self, node_id: int, _registered: str | None) -> str | None:
        return {1: "r1"}.get(node_id)

    def is_located(self, node_id: int) -> bool:
        return node_id < 3


def test_a_broker_that_the_locator_was_not_called_for_adds_no_rack() -> None:
    brokers = [MetadataResponseBroker(node_id=one, host="h", port=1, rack="own") for one in (1, 2, 3)]
    racks = sample_of(1, 0.0, frozenset(), MetadataResponseData(brokers=brokers), LocatedRacks()).racks
    assert [racks.count([BrokerId(1), BrokerId(one)]) for one in (2, 3)] == [2, 1]
