"""Addresses in responses: only they change, in every version. The reader is wire/'s, which is compared with kio."""

from typing import Any
from uuid import UUID

import pytest

from rackspan.errors import MalformedRequest
from rackspan.gateway.core.apis import OFFERED, TREATMENTS, Treatment, clipped
from rackspan.gateway.core.endpoints import metadata_head, with_addresses
from rackspan.wire.apis import VERSIONS, ApiKey
from rackspan.wire.codec import RequestHeader, read_response, write_response
from rackspan.wire.messages.api_versions import ApiVersion, ApiVersionsResponseData
from rackspan.wire.messages.brokers import DescribeClusterBroker, DescribeClusterResponseData
from rackspan.wire.messages.describe_quorum import (
    DescribeQuorumResponseData,
    DescribeQuorumResponseListener,
    DescribeQuorumResponseNode,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseReplicaState,
    DescribeQuorumResponseTopicData,
)
from rackspan.wire.messages.groups import FindCoordinatorResponseCoordinator, FindCoordinatorResponseData
from rackspan.wire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponseData,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rackspan.wire.messages.produce import ProduceResponseData, ProduceResponseNodeEndpoint
from tests.gateway.core.addresses import renamed


def written(api_key: ApiKey, version: int, body: Any) -> bytes:
    return b"".join(write_response(RequestHeader(api_key, version, 77, None, 0), body))


def metadata() -> MetadataResponseData:
    partition = MetadataResponsePartition(partition_index=3, leader_id=1, replica_nodes=(1, 2), isr_nodes=(1,))
    topic = MetadataResponseTopic(name="orders", topic_id=UUID(int=5), partitions=[partition])
    brokers = [
        MetadataResponseBroker(node_id=one, host="upstream", port=one, rack=None if one == 2 else f"r{one}")
        for one in (1, 2)
    ]
    return MetadataResponseData(brokers=brokers, cluster_id="c", controller_id=2, topics=[topic])


@pytest.mark.parametrize("version", VERSIONS[ApiKey.METADATA])
def test_of_metadata_the_brokers_change_and_nothing_else(version: int) -> None:
    original = written(ApiKey.METADATA, version, metadata())
    head = metadata_head(version, original, renamed())
    assert head is not None
    rewritten = read_response(ApiKey.METADATA, version, head.data + original[head.read :])
    wanted = read_response(ApiKey.METADATA, version, original)
    for broker in wanted.brokers:
        broker.host, broker.port = f"gateway-{broker.node_id}", 9000 + broker.node_id
    assert rewritten == wanted


@pytest.mark.parametrize("version", VERSIONS[ApiKey.METADATA])
def test_a_metadata_response_may_be_cut_anywhere(version: int) -> None:
    original = written(ApiKey.METADATA, version, metadata())
    whole = metadata_head(version, original, renamed())
    assert whole is not None
    heads = [metadata_head(version, original[:size], renamed()) for size in range(len(original))]
    assert [head is None for head in heads] == [size < whole.read for size in range(len(original))]


@pytest.mark.parametrize("version", VERSIONS[ApiKey.FIND_COORDINATOR])
def test_a_coordinator_is_found_at_the_gateway(version: int) -> None:
    found = FindCoordinatorResponseData(
        node_id=3,
        host="upstream",
        port=1,
        coordinators=[
            FindCoordinatorResponseCoordinator(key="g", node_id=3, host="upstream", port=1),
            FindCoordinatorResponseCoordinator(key="h", node_id=-1, host="", port=-1, error_code=15),
        ],
    )
    original = written(ApiKey.FIND_COORDINATOR, version, found)
    rewritten = b"".join(map(bytes, with_addresses(ApiKey.FIND_COORDINATOR, version, original, renamed())))
    changed = read_response(ApiKey.FIND_COORDINATOR, version, rewritten)
    one = changed.coordinators[0] if version >= 4 else changed
    assert (one.node_id, one.host, one.port) == (3, "gateway-3", 9003)
    if version >= 4:
        assert (changed.coordinators[1].host, changed.coordinators[1].port) == ("", -1)


@pytest.mark.parametrize("version", VERSIONS[ApiKey.DESCRIBE_CLUSTER])
@pytest.mark.parametrize("endpoint_type", [1, 2])
def test_described_brokers_are_at_the_gateway_and_controllers_stay(version: int, endpoint_type: int) -> None:
    broker = DescribeClusterBroker(broker_id=1, host="upstream", port=1, rack="a")
    body = DescribeClusterResponseData(cluster_id="c", endpoint_type=endpoint_type, brokers=[broker])
    original = written(ApiKey.DESCRIBE_CLUSTER, version, body)
    rewritten = b"".join(map(bytes, with_addresses(ApiKey.DESCRIBE_CLUSTER, version, original, renamed())))
    (changed,) = read_response(ApiKey.DESCRIBE_CLUSTER, version, rewritten).brokers
    # Version 0 describes brokers alone.
    assert changed.host == ("upstream" if endpoint_type == 2 and version >= 1 else "gateway-1")


@pytest.mark.parametrize("version", VERSIONS[ApiKey.DESCRIBE_QUORUM])
def test_a_described_quorum_has_no_addresses_of_controllers(version: int) -> None:
    listener = DescribeQuorumResponseListener(name="CONTROLLER", host="upstream", port=1)
    voter = DescribeQuorumResponseReplicaState(replica_id=101, replica_directory_id=UUID(int=7), log_end_offset=5)
    partition = DescribeQuorumResponsePartitionData(leader_id=101, current_voters=[voter])
    topic = DescribeQuorumResponseTopicData(topic_name="__cluster_metadata", partitions=[partition])
    body = DescribeQuorumResponseData(topics=[topic])
    body.nodes = [DescribeQuorumResponseNode(node_id=101, listeners=[listener])] if version >= 2 else ()
    original = written(ApiKey.DESCRIBE_QUORUM, version, body)
    assert TREATMENTS[ApiKey.DESCRIBE_QUORUM, version] is Treatment.WHOLE
    rewritten = b"".join(map(bytes, with_addresses(ApiKey.DESCRIBE_QUORUM, version, original, renamed())))
    assert b"upstream" not in rewritten
    changed = read_response(ApiKey.DESCRIBE_QUORUM, version, rewritten)
    assert changed.topics == read_response(ApiKey.DESCRIBE_QUORUM, version, original).topics
    assert not changed.nodes


@pytest.mark.parametrize("version", [10, 13])
def test_new_leaders_in_a_produce_response_are_at_the_gateway(version: int) -> None:
    endpoint = ProduceResponseNodeEndpoint(node_id=2, host="upstream", port=1, rack="b")
    original = written(ApiKey.PRODUCE, version, ProduceResponseData(node_endpoints=[endpoint]))
    rewritten = b"".join(map(bytes, with_addresses(ApiKey.PRODUCE, version, original, renamed())))
    (changed,) = read_response(ApiKey.PRODUCE, version, rewritten).node_endpoints
    assert (changed.host, changed.port, changed.rack) == ("gateway-2", 9002, "b")


@pytest.mark.parametrize("version", [0, 3, 4, 5])
def test_api_versions_are_those_of_both(version: int) -> None:
    apis = [
        ApiVersion(api_key=0, min_version=0, max_version=99),
        ApiVersion(api_key=1000, min_version=0, max_version=1),
    ]
    original = written(ApiKey.API_VERSIONS, version, ApiVersionsResponseData(api_keys=apis))
    rewritten = b"".join(map(bytes, with_addresses(ApiKey.API_VERSIONS, version, original, renamed())))
    (produce,) = read_response(ApiKey.API_VERSIONS, version, rewritten).api_keys
    assert (produce.api_key, produce.min_version, produce.max_version) == (0, 0, 13)


def test_a_broker_that_lacks_the_version_is_passed_on_as_version_0() -> None:
    apis = [ApiVersion(api_key=18, min_version=0, max_version=9)]
    original = written(ApiKey.API_VERSIONS, 0, ApiVersionsResponseData(error_code=35, api_keys=apis))
    rewritten = b"".join(map(bytes, with_addresses(ApiKey.API_VERSIONS, 99, original, renamed())))
    changed = read_response(ApiKey.API_VERSIONS, 0, rewritten)
    assert (changed.error_code, changed.api_keys[0].max_version) == (35, 5)


def test_a_version_that_the_broker_has_and_the_gateway_has_not_is_refused_as_by_an_older_broker() -> None:
    rewritten = b"".join(map(bytes, with_addresses(ApiKey.API_VERSIONS, 99, b"\0\0\0\7\0\0anything", renamed())))
    assert rewritten[:4] == b"\0\0\0\7"
    refused = read_response(ApiKey.API_VERSIONS, 0, rewritten)
    offered = [(one.api_key, one.min_version, one.max_version) for one in refused.api_keys]
    assert (refused.error_code, offered) == (35, [(ApiKey.API_VERSIONS, 0, 5)])


@pytest.mark.parametrize("version", [0, 3])
def test_an_api_versions_response_that_is_cut_anywhere_is_malformed(version: int) -> None:
    apis = [ApiVersion(api_key=18, min_version=0, max_version=3)]
    original = written(ApiKey.API_VERSIONS, version, ApiVersionsResponseData(api_keys=apis))
    for size in range(len(original)):
        with pytest.raises(MalformedRequest):
            with_addresses(ApiKey.API_VERSIONS, version, original[:size], renamed())


@pytest.mark.parametrize("version", [-1, 512])
def test_a_response_of_an_unknown_version_is_malformed(version: int) -> None:
    with pytest.raises(MalformedRequest, match=f"version {version} of PRODUCE"):
        read_response(ApiKey.PRODUCE, version, bytes(40))


def test_an_api_that_a_broker_offers_only_in_newer_versions_is_left_out() -> None:
    assert clipped([ApiVersion(api_key=1, min_version=19, max_version=20)]) == []
    assert 27 not in OFFERED
