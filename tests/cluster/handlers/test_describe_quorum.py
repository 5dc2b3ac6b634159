"""DescribeQuorum: the controller is the only voter, brokers are observers, and a snapshot over the wire has the same controllers."""

import re
from collections.abc import Callable

import pytest

from rackspan.client.cluster import ConnectionSettings
from rackspan.cluster import EmbeddedCluster
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.sources.live.cluster import read_cluster
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.describe_quorum import (
    DescribeQuorumRequestData,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponseData,
)
from tests.cluster.raw import response_to

RunTool = Callable[..., str]
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"


def topic(name: str, partition: int) -> DescribeQuorumRequestTopicData:
    partitions = [DescribeQuorumRequestPartitionData(partition_index=partition)]
    return DescribeQuorumRequestTopicData(topic_name=name, partitions=partitions)


METADATA_LOG = topic("__cluster_metadata", 0)


def described(
    cluster: EmbeddedCluster, version: int, topic: DescribeQuorumRequestTopicData, broker: int = 2
) -> DescribeQuorumResponseData:
    request = DescribeQuorumRequestData(topics=[topic])
    response: DescribeQuorumResponseData = response_to(
        cluster.address(broker), ApiKey.DESCRIBE_QUORUM, version, request
    )
    return response


@pytest.mark.parametrize("version", range(3))
def test_the_controller_is_the_only_voter_and_brokers_are_observers(cluster: EmbeddedCluster, version: int) -> None:
    response = described(cluster, version, METADATA_LOG)
    (partition,) = response.topics[0].partitions
    assert (response.error_code, partition.error_code, partition.leader_epoch) == (0, 0, 1)
    assert [replica.replica_id for replica in partition.current_voters] == [partition.leader_id]
    assert [replica.replica_id for replica in partition.observers] == list(cluster.brokers)
    assert partition.leader_id not in cluster.brokers


def test_a_frozen_broker_lags_behind_the_high_watermark(cluster: EmbeddedCluster) -> None:
    cluster.pause(5)
    try:
        cluster.create_topic("while-paused", 1, 3)
        (partition,) = described(cluster, 2, METADATA_LOG).topics[0].partitions
    finally:
        cluster.undo_faults()
    behind = [
        replica.replica_id for replica in partition.observers if replica.log_end_offset < partition.high_watermark
    ]
    assert 5 in behind


def test_no_other_log_has_a_quorum(cluster: EmbeddedCluster) -> None:
    response = described(cluster, 2, topic("orders", 3))
    assert response.topics[0].topic_name == "orders"
    assert response.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_snapshot_over_the_wire_has_the_controllers_of_the_clusters_own_snapshot() -> None:
    with EmbeddedCluster(racks=3, brokers=3) as cluster:
        read = read_cluster(ConnectionSettings(cluster.bootstrap_servers, {}, 30.0)).snapshot
        assert read.controllers == cluster.snapshot().controllers != ()
        assert [note for note in read.partial if "quorum" in note] == []


@pytest.mark.java
def test_kafkas_own_tool_describes_the_quorum(cluster: EmbeddedCluster, run_tool: RunTool) -> None:
    output = run_tool(QUORUM, "describe", "--status")
    leader, watermark, lag = (
        int(re.findall(rf"{key}:\s+(-?\d+)", output)[0]) for key in ("LeaderId", "HighWatermark", "MaxFollowerLag")
    )
    assert (leader, lag) == (3000, 0)
    assert watermark > 0
    voters, observers = (re.findall(rf"{key}:\s+(.*)", output)[0] for key in ("CurrentVoters", "CurrentObservers"))
    assert re.findall(r'"id": (\d+)', voters) == ["3000"]
    assert re.findall(r'"id": (\d+)', observers) == [str(broker) for broker in cluster.brokers]


@pytest.mark.java
def test_kafkas_own_tool_describes_the_replicas_of_the_metadata_log(
    cluster: EmbeddedCluster, run_tool: RunTool
) -> None:
    output = run_tool(QUORUM, "describe", "--replication")
    roles = {int(node): role for node, role in re.findall(r"(?m)^(\d+)\s.*\s(Leader|Follower|Observer)\s*$", output)}
    assert roles == {3000: "Leader"} | dict.fromkeys(cluster.brokers, "Observer")
