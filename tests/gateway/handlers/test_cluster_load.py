"""What a placer is given of the cluster: read once for a request, and again if that failed."""

import asyncio
from random import Random
from typing import Any, cast

import pytest

from rackspan.errors import ClusterRequestFailed, ClusterUnreachable
from rackspan.gateway.handlers.cluster_load import ClusterLoad
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.model import Broker, BrokerId, RackId
from rackspan.placement.cluster_placer import ClusterPlacer, PlacementRefusal
from rackspan.placement.registry import PLACER_CLASS_CONFIG, configured_placer
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponseData,
    DescribeConfigsResult,
)
from rackspan.wire.messages.metadata import (
    MetadataResponseData,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


class OneConnection:
    """A cluster of two brokers with one partition of topic "orders" on each, and a connection to it."""

    def __init__(self) -> None:
        self.requests: list[ApiKey] = []
        self.failures = 0
        """How many reads of the registered brokers fail."""
        self.configs = DescribeConfigsResult()

    async def any_connection(self) -> "OneConnection":
        return self

    async def any_broker(self) -> tuple[int, "OneConnection"]:
        return 2, self

    async def call(self, key: ApiKey, request: Any) -> Any:
        self.requests.append(key)
        if key == ApiKey.DESCRIBE_CONFIGS:
            assert [one.resource_name for one in request.resources] == ["2"]
            return DescribeConfigsResponseData(results=[self.configs])
        # In no order, as Kafka responds.
        partitions = [
            MetadataResponsePartition(partition_index=index, replica_nodes=[index + 1]) for index in reversed(range(2))
        ]
        return MetadataResponseData(topics=[MetadataResponseTopic(name="orders", partitions=partitions)])

    async def refresh(self) -> None:
        """The brokers are known."""

    async def registered(self, _holders: object) -> tuple[Broker, ...]:
        if self.failures:
            self.failures -= 1
            raise ClusterUnreachable("it is restarted")
        return tuple(Broker(BrokerId(number), RackId(f"r{number}")) for number in (1, 2))


def load_of(cluster: OneConnection) -> ClusterLoad:
    return ClusterLoad(cast("UpstreamCluster", cluster))


def placed(load: ClusterLoad, partitions: int) -> tuple[tuple[int, ...], ...]:
    placer = ClusterPlacer({PLACER_CLASS_CONFIG: "balanced"}, lambda configs: configured_placer(configs, Random(1)))
    rows = asyncio.run(load.place(placer, 0, partitions, 1))
    assert not isinstance(rows, PlacementRefusal)
    return rows


def test_after_a_read_that_failed_the_next_topic_is_placed_on_the_brokers_there_are() -> None:
    cluster = OneConnection()
    cluster.failures = 1
    load = load_of(cluster)
    with pytest.raises(ClusterUnreachable):
        placed(load, 1)
    assert sorted(placed(load, 2)) == [(1,), (2,)]


def test_the_cluster_is_read_once_for_a_request() -> None:
    cluster = OneConnection()
    load = load_of(cluster)
    placed(load, 2)
    placed(load, 2)
    assert asyncio.run(load.rows("orders")) == [(1,), (2,)]
    assert asyncio.run(load.rows("missing")) == []
    assert cluster.requests == [ApiKey.METADATA]


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ({"num.partitions": "6", "default.replication.factor": "3", "auto.create.topics.enable": "true"}, (6, 3, 1)),
        ({"num.partitions": "6", "default.replication.factor": "3", "auto.create.topics.enable": "false"}, (6, 3, 0)),
        # As a broker responds that shows none of them.
        ({}, (1, 1, 0)),
    ],
)
def test_the_defaults_of_new_topics_are_those_of_one_broker(
    configs: dict[str, str], expected: tuple[int, int, int]
) -> None:
    cluster = OneConnection()
    values = [DescribeConfigsResourceResult(name=name, value=value) for name, value in configs.items()]
    cluster.configs = DescribeConfigsResult(configs=values)
    load = load_of(cluster)
    for _ in range(2):
        defaults = asyncio.run(load.defaults())
        assert tuple(
            defaults[key] for key in ("num.partitions", "default.replication.factor", "auto.create.topics.enable")
        ) == expected  # fmt: skip
    assert cluster.requests == [ApiKey.DESCRIBE_CONFIGS]


@pytest.mark.parametrize(("message", "shown"), [("Cluster authorization failed.",) * 2, (None, "31")])
def test_defaults_that_cannot_be_read_are_an_error_with_what_to_grant(message: str | None, shown: str) -> None:
    cluster = OneConnection()
    cluster.configs = DescribeConfigsResult(error_code=31, error_message=message)
    with pytest.raises(ClusterRequestFailed, match=f"broker 2's num.partitions .* cannot be read: {shown}; grant"):
        asyncio.run(load_of(cluster).defaults())
