"""The replica selector of each broker, and a line for each reason why some are unknown."""

from typing import Any

import pytest

from rackspan.client.cluster import ConnectionSettings
from rackspan.clients import ReplicaSelectors
from rackspan.errors import ClusterUnreachable
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.sources.live import clients
from rackspan.sources.live.clients import ReadClients, read_clients
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponseData,
    DescribeConfigsResult,
)
from rackspan.wire.messages.metadata import MetadataResponseBroker, MetadataResponseData
from tests.scripted_connection import ScriptedConnection, listing


def read(monkeypatch: pytest.MonkeyPatch, by_broker: dict[int, Any]) -> ReadClients:
    """Each broker's value of replica.selector.class, or the error that it responds with."""

    def describe(request: Any, broker: int | None) -> Any:
        found = by_broker[broker or 0]
        if isinstance(found, Exception):
            return found
        [resource] = request.resources
        assert (resource.resource_name, list(resource.configuration_keys)) == (str(broker), ["replica.selector.class"])
        if isinstance(found, ErrorCode):
            return DescribeConfigsResponseData(results=[DescribeConfigsResult(error_code=found)])
        configs = [
            DescribeConfigsResourceResult(name="another", value="x"),
            DescribeConfigsResourceResult(name="replica.selector.class", value=found),
        ]
        return DescribeConfigsResponseData(results=[DescribeConfigsResult(configs=configs)])

    brokers = MetadataResponseData(brokers=[MetadataResponseBroker(node_id=broker) for broker in by_broker])
    connection = ScriptedConnection(
        {
            ApiKey.METADATA: lambda *_: brokers,
            ApiKey.LIST_GROUPS: listing({}),
            ApiKey.DESCRIBE_CONFIGS: describe,
        }
    )
    monkeypatch.setattr(clients, "ClusterConnection", connection)
    return read_clients(ConnectionSettings("127.0.0.1:1"))


def test_a_selector_is_known_by_the_name_of_kafkas_class(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = "org.apache.kafka.common.replica"
    values = {
        1: None,
        2: "",
        3: f"{kafka}.LeaderSelector",
        4: f"{kafka}.RackAwareReplicaSelector",
        5: "com.example.Own",
    }
    found = read(monkeypatch, values)
    leader = ReplicaSelectors.LEADER
    assert found.selectors == {
        1: leader,
        2: leader,
        3: leader,
        4: ReplicaSelectors.RACK_AWARE,
        5: ReplicaSelectors.OTHER,
    }
    assert found.unread == ()


def test_brokers_whose_selector_is_not_known_are_named_by_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    found = read(monkeypatch, {1: refused, 2: TimeoutError("no response in time"), 3: None, 4: refused})
    assert found.selectors == {3: ReplicaSelectors.LEADER}
    assert found.unread == (
        "replica.selector.class of brokers 1, 4: this user needs DescribeConfigs on Cluster",
        "replica.selector.class of brokers 2: no response in time",
    )


def test_a_selector_that_is_left_out_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a service that hides its brokers' configs."""
    other = DescribeConfigsResult(configs=[DescribeConfigsResourceResult(name="another", value="x")])

    def describe(_: Any, broker: int | None) -> DescribeConfigsResponseData:
        return DescribeConfigsResponseData(results=[other] if broker == 1 else [])

    connection = ScriptedConnection({ApiKey.LIST_GROUPS: listing({}), ApiKey.DESCRIBE_CONFIGS: describe})
    monkeypatch.setattr(clients, "ClusterConnection", connection)
    found = read_clients(ConnectionSettings("127.0.0.1:1"))
    assert found.selectors == {}
    assert found.unread == (
        "replica.selector.class of brokers 1: the response holds no replica.selector.class",
        "replica.selector.class of brokers 2: the response holds no broker",
    )


@pytest.mark.parametrize("readings", [0, 1])
def test_a_list_of_brokers_that_is_not_received_is_one_line(monkeypatch: pytest.MonkeyPatch, readings: int) -> None:
    """Whether it is the one for the groups or the one for the selectors."""
    responses = iter([MetadataResponseData()] * readings)
    connection = ScriptedConnection(
        {ApiKey.METADATA: lambda *_: next(responses, TimeoutError("no response to METADATA in time"))}
    )
    monkeypatch.setattr(clients, "ClusterConnection", connection)
    with pytest.raises(
        ClusterUnreachable, match=r"^the list of brokers was not received: no response in time; raise --"
    ):
        read_clients(ConnectionSettings("127.0.0.1:1"))
