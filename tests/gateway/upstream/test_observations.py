"""What a broker's metadata becomes as a sample: racks that are not known yet count for nothing."""

from random import Random
from typing import Any

from rackspan.client.login import Login
from rackspan.gateway.upstream.cluster import Cluster
from rackspan.gateway.upstream.observations import sample_of
from rackspan.model import BrokerId, RackId
from rackspan.wire.messages.metadata import MetadataResponseBroker, MetadataResponseData


def located() -> Cluster:
    """With a rack locator that found broker 1 in r1 and no rack of broker 2, and was not called for broker 3 yet."""
    locator: Any = object()
    cluster = Cluster("127.0.0.1:1", Login(), Random(1), locator)
    cluster._located = {BrokerId(1): RackId("r1"), BrokerId(2): None}
    return cluster


def test_a_broker_that_the_locator_was_not_called_for_adds_no_rack() -> None:
    brokers = [MetadataResponseBroker(node_id=one, host="h", port=1, rack="own") for one in (1, 2, 3)]
    racks = sample_of(1, 0.0, frozenset(), MetadataResponseData(brokers=brokers), located()).racks
    assert [racks.count([BrokerId(1), BrokerId(one)]) for one in (2, 3)] == [2, 1]
