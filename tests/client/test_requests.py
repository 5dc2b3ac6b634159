"""Requests of a snapshot: what is sent, and what of the response is kept."""

import asyncio
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from rackspan.client.cluster import ClusterConnection, ConnectionSettings
from rackspan.client.requests import (
    _audited_values,
    _own_values,
    batches,
    listed_offsets,
    own_broker_configs,
    own_topic_configs,
    quorum,
    registered_brokers,
    topic_id_text,
)
from rackspan.errors import ClusterRequestFailed, ClusterUnreachable
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import MIN_INSYNC_REPLICAS, TopicPartition
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponseData,
    DescribeConfigsResult,
)
from rackspan.wire.messages.log_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponseData,
    ListOffsetsTopicResponse,
)
from rackspan.wire.messages.metadata import MetadataResponseBroker, MetadataResponseData
from tests.client.fake_broker import FakeBroker, api_versions
from tests.client.test_cluster import responding, silent, with_brokers


def described(**values: tuple[str | None, int]) -> DescribeConfigsResult:
    configs = [
        DescribeConfigsResourceResult(name=name.replace("_", "."), value=value, config_source=source)
        for name, (value, source) in values.items()
    ]
    return DescribeConfigsResult(configs=configs)


@pytest.mark.parametrize(("value", "kept"), [("true", {"true"}), ("false", set()), ("", set()), (None, set())])
@pytest.mark.parametrize("key", ["unclean.leader.election.enable", "diskless.enable", "inkless.enable"])
def test_a_config_that_few_topics_have_is_kept_where_it_is_set(key: str, value: str | None, kept: set[str]) -> None:
    result = described(**{key.replace(".", "_"): (value, 5)}, min_insync_replicas=("2", 5))
    assert _audited_values(result) == {MIN_INSYNC_REPLICAS: "2", **dict.fromkeys([key] if kept else [], value)}


def test_a_value_is_a_topics_own_if_it_is_set_on_the_topic() -> None:
    """1 is Kafka's number for a topic's own value, 5 for a default."""
    result = described(retention_ms=("5", 1), min_insync_replicas=("2", 5))
    keys = ["retention.ms", "min.insync.replicas", "cleanup.policy"]
    assert _own_values(result, keys, 1) == {"retention.ms": "5", "min.insync.replicas": None, "cleanup.policy": None}


def config(name: str, value: str, source: int) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(name=name, value=value, config_source=source)


def test_own_configs_are_read_without_what_is_inherited() -> None:
    requested: list[list[tuple[int, str, object]]] = []

    async def describe(request: Any) -> DescribeConfigsResponseData:
        requested.append(
            [(one.resource_type, one.resource_name, [*one.configuration_keys]) for one in request.resources]
        )
        configs = [config("a", "1", 1), config("b", "2", 2), config("c", "3", 5)]
        errors = {"missing": 3, "secret": 29, "9": 29}
        return DescribeConfigsResponseData(
            results=[
                DescribeConfigsResult(
                    resource_name=one.resource_name, error_code=errors.get(one.resource_name, 0), configs=configs
                )
                for one in request.resources
            ]
        )

    def scenario(connection: ClusterConnection, first: FakeBroker, second: FakeBroker) -> None:
        first.handles[ApiKey.DESCRIBE_CONFIGS] = second.handles[ApiKey.DESCRIBE_CONFIGS] = describe
        keys = ["a", "b", "c"]
        topics = connection.run(own_topic_configs, connection, ["orders", "missing", "secret"], keys)
        assert topics.values == {"orders": {"a": "1", "b": None, "c": None}}
        assert {name: error.code for name, error in topics.refused.items()} == {
            "secret": ErrorCode.TOPIC_AUTHORIZATION_FAILED
        }
        of_broker = connection.run(own_broker_configs, connection, 2, keys, 5.0)
        assert of_broker == {"a": None, "b": "2", "c": None}
        with pytest.raises(ClusterUnreachable, match="broker 9"):
            connection.run(own_broker_configs, connection, 9, keys, 5.0)
        second.handles[ApiKey.DESCRIBE_CONFIGS] = responding(DescribeConfigsResponseData())
        with pytest.raises(ClusterRequestFailed, match="the response holds no broker"):
            connection.run(own_broker_configs, connection, 2, keys, 5.0)

    with_brokers(scenario)
    topic, broker = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
    keys = ["a", "b", "c"]
    assert requested == [[(topic, name, keys) for name in ("orders", "missing", "secret")], [(broker, "2", keys)]]


def test_a_kafka_without_fenced_brokers_and_quorums_reports_none_of_them() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        await broker.start()
        broker.handles[ApiKey.API_VERSIONS] = api_versions({ApiKey.DESCRIBE_CLUSTER: 1, ApiKey.DESCRIBE_QUORUM: -1})
        row = MetadataResponseBroker(node_id=1, host="127.0.0.1", port=broker.port)
        broker.handles[ApiKey.METADATA] = responding(MetadataResponseData(brokers=[row]))

        def blocking() -> None:
            with ClusterConnection(ConnectionSettings(f"127.0.0.1:{broker.port}")) as connection:
                assert connection.run(registered_brokers, connection) == ()
                assert connection.run(quorum, connection) == ()

        await asyncio.to_thread(blocking)
        await broker.close()

    asyncio.run(scenario())


def test_offsets_are_listed_by_the_leader_within_their_own_time() -> None:
    requests: list[Any] = []

    async def listed(request: Any) -> ListOffsetsResponseData:
        requests.append(request)
        rows = [
            ListOffsetsPartitionResponse(partition_index=0, error_code=0, offset=7),
            ListOffsetsPartitionResponse(partition_index=1, error_code=6, offset=-1),
        ]
        return ListOffsetsResponseData(topics=[ListOffsetsTopicResponse(name="orders", partitions=rows)])

    def scenario(connection: ClusterConnection, _first: FakeBroker, second: FakeBroker) -> None:
        second.handles[ApiKey.LIST_OFFSETS] = listed
        one, other = (TopicPartition("orders", number) for number in (0, 1))
        read = partial(listed_offsets, connection, 2, {one: -1, other: 1000}, isolation=1, seconds=4.0)
        found = connection.run(read)
        assert (found.offsets, found.refused) == ({one: 7}, {other: ErrorCode.NOT_LEADER_OR_FOLLOWER})
        second.handles[ApiKey.LIST_OFFSETS] = silent
        with pytest.raises(TimeoutError, match="no response to LIST_OFFSETS in time"):
            connection.run(partial(listed_offsets, connection, 2, {one: -1}, seconds=0.1))
        assert connection.remaining_seconds > 5

    with_brokers(scenario)
    (request,) = requests
    assert (request.replica_id, request.isolation_level, request.timeout) == (-1, 1, 4_000)
    rows = [(one.partition_index, one.timestamp) for topic in request.topics for one in topic.partitions]
    assert rows == [(0, -1), (1, 1000)]


def test_a_topic_id_is_shown_as_by_kafkas_tools() -> None:
    assert topic_id_text(UUID("3d1f5b0e-8f6a-4b1d-9c0e-0123456789ab")) == "PR9bDo9qSx2cDgEjRWeJqw"
    assert topic_id_text(None) is None
    assert [list(batch) for batch in batches([1, 2, 3, 4, 5], 2)] == [[1, 2], [3, 4], [5]]
