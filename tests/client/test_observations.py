"""A broker's metadata as a sample: a broker adds the rack that it is given with, or none."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from rackspan.client.observations import read_log_ends, registered_brokers, sample_of
from rackspan.errors import ClusterRequestFailed
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


def test_logs_of_a_broker_before_diverging_epochs_are_not_read() -> None:
    async def sent(*_: object) -> object:
        raise AssertionError("a request was sent")

    connection: Any = SimpleNamespace(version=lambda _: 11, call=sent)
    with pytest.raises(ClusterRequestFailed, match=r"offers Fetch up to version 11, .* \(Kafka 2\.7\)"):
        asyncio.run(read_log_ends(connection, [], 1.0))
