"""A failed request becomes a note with its reason, and many topics do not become many requests."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from rackspan.client.errors import ErrorResponse
from rackspan.errors import ClusterRequestFailed, ClusterUnauthorized, ClusterUnreachable
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.sources.live.cluster_reader import _ClusterReader
from rackspan.sources.live.snapshot_assembly import ClusterResponses, LogDirs, assemble
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.api_versions import ApiVersionsResponseData
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.brokers import (
    DescribeClusterBroker,
    DescribeClusterResponseData,
    DescribeLogDirsPartition,
    DescribeLogDirsResponseData,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from rackspan.wire.messages.configs import (
    DescribeConfigsRequestData,
    DescribeConfigsResourceResult,
    DescribeConfigsResponseData,
    DescribeConfigsResult,
)
from rackspan.wire.messages.describe_quorum import (
    DescribeQuorumResponseData,
    DescribeQuorumResponseListener,
    DescribeQuorumResponseNode,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseReplicaState,
    DescribeQuorumResponseTopicData,
)
from rackspan.wire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponseData,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rackspan.wire.messages.reassignments import ListPartitionReassignmentsResponseData

Scripted = WireStruct | Exception | Callable[[Any], WireStruct]


class ScriptedConnection:
    """Responds with the script's entry for the request's API; an exception in it is raised."""

    address = "127.0.0.1:9092"

    def __init__(self, script: dict[ApiKey, Scripted] | None = None) -> None:
        self.script = SCRIPT | (script or {})
        self.requests: list[ApiKey] = []

    async def call(self, api_key: ApiKey, request: WireStruct, *_: Any, **__: Any) -> Any:
        self.requests.append(api_key)
        response = self.script[api_key]
        if isinstance(response, Exception):
            raise response
        return response if isinstance(response, WireStruct) else response(request)

    def responses(self) -> ClusterResponses:
        return asyncio.run(_ClusterReader(self).read_all())  # type: ignore[arg-type]  # As much of a connection as is used.


def topic(name: str, error_code: int = 0) -> MetadataResponseTopic:
    partition = MetadataResponsePartition(partition_index=0, leader_id=1, replica_nodes=[1], isr_nodes=[1])
    return MetadataResponseTopic(name=name, error_code=error_code, partitions=[partition])


def metadata(*topics: MetadataResponseTopic) -> MetadataResponseData:
    broker = MetadataResponseBroker(node_id=1, host="h", port=9092, rack="r1")
    return MetadataResponseData(cluster_id="c", brokers=[broker], topics=list(topics))


def configs(request: DescribeConfigsRequestData, error_code: int = 0) -> DescribeConfigsResponseData:
    value = DescribeConfigsResourceResult(name="min.insync.replicas", value="2")
    return DescribeConfigsResponseData(
        results=[
            DescribeConfigsResult(resource_name=resource.resource_name, error_code=error_code, configs=[value])
            for resource in request.resources
        ]
    )


NOW = 1_700_000_000_000


def member(replica_id: int, fetched: int = NOW, caught_up: int = NOW) -> DescribeQuorumResponseReplicaState:
    return DescribeQuorumResponseReplicaState(
        replica_id=replica_id, last_fetch_timestamp=fetched, last_caught_up_timestamp=caught_up
    )


def quorum_of(
    *voters: DescribeQuorumResponseReplicaState,
    leader_id: int = 1,
    observers: tuple[DescribeQuorumResponseReplicaState, ...] = (),
    nodes: tuple[DescribeQuorumResponseNode, ...] = (),
) -> DescribeQuorumResponseData:
    partition = DescribeQuorumResponsePartitionData(leader_id=leader_id, current_voters=voters, observers=observers)
    return DescribeQuorumResponseData(topics=[DescribeQuorumResponseTopicData(partitions=[partition])], nodes=nodes)


QUORUM = quorum_of(
    member(101),
    leader_id=101,
    observers=(member(1, NOW - 100, NOW - 100),),
    nodes=(DescribeQuorumResponseNode(node_id=101, listeners=[DescribeQuorumResponseListener(host="h")]),),
)

SCRIPT: dict[ApiKey, Scripted] = {
    ApiKey.METADATA: metadata(topic("orders")),
    ApiKey.DESCRIBE_CLUSTER: DescribeClusterResponseData(
        brokers=[DescribeClusterBroker(broker_id=1, host="h", port=9092, rack="r1")]
    ),
    ApiKey.DESCRIBE_CONFIGS: configs,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: ListPartitionReassignmentsResponseData(),
    ApiKey.DESCRIBE_QUORUM: QUORUM,
    ApiKey.DESCRIBE_LOG_DIRS: DescribeLogDirsResponseData(),
    ApiKey.API_VERSIONS: ApiVersionsResponseData(),
}

REFUSED = ErrorResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def notes(script: dict[ApiKey, Scripted]) -> tuple[str, ...]:
    return ScriptedConnection(script).responses().notes


def test_a_cluster_with_all_responses_leaves_no_note() -> None:
    responses = ScriptedConnection().responses()
    assert responses.notes == ()
    assert responses.lists_fenced
    assert responses.configs == {"orders": {"min.insync.replicas": "2"}}
    assert [(one.id, one.voter, one.hosts) for one in responses.quorum] == [(101, True, ("h",)), (1, False, ())]


@pytest.mark.parametrize(
    ("follower", "alive"),
    [
        (member(2, NOW - 500, NOW - 500), True),
        (member(2, NOW - 3_000, NOW - 9_000), True),
        (member(2, NOW - 3_001, NOW), False),
        (member(2, NOW, NOW - 9_001), False),
        (member(2, -1, -1), False),
        # A follower may fetch after the leader has read its clock for its own row.
        (member(2, NOW + 1, NOW + 1), True),
    ],
)
def test_a_voter_is_alive_by_the_leaders_clock(follower: DescribeQuorumResponseReplicaState, alive: bool) -> None:
    # Kafka reports the leader's own last fetch as now or, by its documentation, as -1.
    responses = ScriptedConnection({ApiKey.DESCRIBE_QUORUM: quorum_of(member(1, -1), follower)}).responses()
    assert [one.alive for one in responses.quorum] == [True, alive]


def test_of_a_kafka_without_times_or_a_quorum_without_leader_nobody_is_known_to_be_alive() -> None:
    without_times = quorum_of(member(1, -1, -1), member(2, -1, -1))
    assert [one.alive for one in ScriptedConnection({ApiKey.DESCRIBE_QUORUM: without_times}).responses().quorum] == [
        None,
        None,
    ]
    without_leader = quorum_of(member(2), member(3, -1, -1))
    assert [one.alive for one in ScriptedConnection({ApiKey.DESCRIBE_QUORUM: without_leader}).responses().quorum] == [
        None,
        None,
    ]


@pytest.mark.slow
def test_ten_thousand_topics_take_twenty_requests_for_their_configs() -> None:
    connection = ScriptedConnection({ApiKey.METADATA: metadata(*(topic(f"t{number}") for number in range(10_000)))})
    responses = connection.responses()
    assert len(responses.configs) == 10_000
    assert connection.requests.count(ApiKey.DESCRIBE_CONFIGS) == 20
    assert len(connection.requests) == 26


@pytest.mark.parametrize(
    ("request_name", "lost"),
    [
        (ApiKey.DESCRIBE_CLUSTER, "which brokers are fenced"),
        (ApiKey.DESCRIBE_QUORUM, "the controller quorum"),
        (ApiKey.LIST_PARTITION_REASSIGNMENTS, "reassignments under way"),
    ],
)
def test_a_missing_right_is_named_with_what_is_lost(request_name: ApiKey, lost: str) -> None:
    assert notes({request_name: REFUSED}) == (f"{lost}: unknown, this user needs Describe on Cluster",)
    assert notes({request_name: TimeoutError()}) == (f"{lost}: unknown, no response in time",)


def test_a_quorum_without_its_log_is_not_known() -> None:
    """As from a service that speaks Kafka's protocol and has no metadata log."""
    nothing = DescribeQuorumResponseData()
    no_partition = DescribeQuorumResponseData(topics=[DescribeQuorumResponseTopicData()])
    for response, lacks in ((nothing, "topic"), (no_partition, "partition")):
        assert notes({ApiKey.DESCRIBE_QUORUM: response}) == (
            f"the controller quorum: unknown, the response holds no {lacks}",
        )


def test_configs_that_are_refused_name_their_topics() -> None:
    many = metadata(*(topic(name) for name in "abcde"))
    [note] = notes(
        {
            ApiKey.METADATA: many,
            ApiKey.DESCRIBE_CONFIGS: lambda request: configs(request, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        }
    )
    assert note == (
        "min.insync.replicas of a, b, c and 2 more: unknown, this user needs DescribeConfigs on Topic a, b, c and 2 more"
    )


def test_configs_that_did_not_come_say_why() -> None:
    broken = ConnectionResetError("the broker closed the connection")
    assert notes({ApiKey.DESCRIBE_CONFIGS: broken}) == (
        "min.insync.replicas of orders: unknown, it closed the connection at the first request",
    )


def test_brokers_without_sizes_are_grouped_by_reason() -> None:
    def log_dirs(response: Any) -> LogDirs:
        return ScriptedConnection({ApiKey.DESCRIBE_LOG_DIRS: response}).responses().log_dirs

    assert log_dirs(REFUSED) == LogDirs({}, {}, frozenset({1}))
    assert log_dirs(DescribeLogDirsResponseData(error_code=31)) == LogDirs({}, {}, frozenset({1}))
    assert log_dirs(ConnectionRefusedError(111, "Connect call failed")) == LogDirs(
        {}, {1: "connection refused"}, frozenset()
    )


def test_a_log_that_is_still_moving_to_another_disk_does_not_count() -> None:
    logs = [
        DescribeLogDirsPartition(partition_index=0, partition_size=10, is_future_key=False),
        DescribeLogDirsPartition(partition_index=0, partition_size=99, is_future_key=True),
    ]
    online = DescribeLogDirsResult(topics=[DescribeLogDirsTopic(name="orders", partitions=logs)])
    offline = DescribeLogDirsResult(error_code=56)
    responses = ScriptedConnection(
        {ApiKey.DESCRIBE_LOG_DIRS: DescribeLogDirsResponseData(results=[offline, online])}
    ).responses()
    assert responses.log_dirs.sizes == {1: {("orders", 0): 10}}


@pytest.mark.parametrize(
    ("directories", "cordoned"),
    [([True], {1}), ([True, True], {1}), ([True, False], set()), ([], set())],
)
def test_a_broker_is_cordoned_if_every_directory_that_works_is(directories: list[bool], cordoned: set[int]) -> None:
    results = [DescribeLogDirsResult(error_code=56), *(DescribeLogDirsResult(is_cordoned=is_) for is_ in directories)]
    responses = ScriptedConnection({ApiKey.DESCRIBE_LOG_DIRS: DescribeLogDirsResponseData(results=results)}).responses()
    assert responses.log_dirs.cordoned == cordoned
    assert [broker.cordoned for broker in assemble(responses, datetime.now(UTC)).brokers] == [bool(cordoned)]


def test_directories_that_failed_are_read_with_their_paths_and_other_errors_apart_from_them() -> None:
    results = [
        DescribeLogDirsResult(log_dir="/b", error_code=ErrorCode.KAFKA_STORAGE_ERROR),
        DescribeLogDirsResult(log_dir="/a"),
        DescribeLogDirsResult(log_dir="/c", error_code=ErrorCode.UNKNOWN_SERVER_ERROR),
    ]
    responses = ScriptedConnection({ApiKey.DESCRIBE_LOG_DIRS: DescribeLogDirsResponseData(results=results)}).responses()
    assert responses.log_dirs.failed == {1: ("/b",)}
    assert responses.log_dirs.unread == {1: {"/c": ErrorCode.UNKNOWN_SERVER_ERROR}}


def test_offline_replicas_on_brokers_that_metadata_lists_are_in_the_snapshot() -> None:
    partition = MetadataResponsePartition(
        partition_index=0, leader_id=-1, error_code=5, replica_nodes=[1, 2], isr_nodes=[1], offline_replicas=[1, 2]
    )
    read = metadata(MetadataResponseTopic(name="orders", partitions=[partition]))
    snapshot = assemble(ScriptedConnection({ApiKey.METADATA: read}).responses(), datetime.now(UTC))
    assert snapshot.partitions.row(0).offline_replicas == (1,)


def test_an_error_of_metadata_as_a_whole_is_no_empty_cluster() -> None:
    with pytest.raises(ClusterRequestFailed, match="REBOOTSTRAP_REQUIRED"):
        notes({ApiKey.METADATA: MetadataResponseData(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)})


def test_a_topic_that_cannot_be_described_is_named_and_the_rest_is_kept() -> None:
    responses = ScriptedConnection(
        {ApiKey.METADATA: metadata(topic("orders"), topic("lost", error_code=3))}
    ).responses()
    assert [one.name for one in responses.topics] == ["orders"]
    assert responses.notes == ("topic lost could not be described: UNKNOWN_TOPIC_OR_PARTITION",)


def test_a_user_who_sees_no_topic_gets_the_missing_rights() -> None:
    blind = ScriptedConnection({ApiKey.METADATA: metadata(), ApiKey.DESCRIBE_QUORUM: REFUSED})
    with pytest.raises(ClusterUnauthorized, match=r"needs Describe on Topic .* and Describe on Cluster"):
        blind.responses()


def test_an_empty_cluster_is_no_mistake() -> None:
    assert ScriptedConnection({ApiKey.METADATA: metadata()}).responses().topics == ()


def test_metadata_that_does_not_come_is_an_error() -> None:
    with pytest.raises(ClusterUnreachable, match="the cluster's metadata was not received: no response in time"):
        notes({ApiKey.METADATA: TimeoutError()})
    with pytest.raises(ClusterUnauthorized, match="needs Describe on its topics"):
        notes({ApiKey.METADATA: REFUSED})
