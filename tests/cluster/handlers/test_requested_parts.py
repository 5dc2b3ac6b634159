"""Requests that name some topics, users or resources: those are what they are about, and no others."""

import socket
from collections.abc import Iterator
from struct import pack

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.apis import ApiKey
from rackspan.wire.compiled import struct_writer
from rackspan.wire.messages.brokers import DescribeClusterRequestData
from rackspan.wire.messages.configs import (
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsRequestData,
    ListConfigResourcesRequestData,
)
from rackspan.wire.messages.log_offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequestData,
    DeleteRecordsTopic,
)
from rackspan.wire.messages.produce import PartitionProduceData, ProduceRequestData, TopicProduceData
from rackspan.wire.messages.quotas import (
    AlterClientQuotasRequestData,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    ComponentData,
    DescribeClientQuotasRequestData,
    OpData,
)
from rackspan.wire.messages.reassignments import (
    AlterPartitionReassignmentsRequestData,
    AlterPartitionReassignmentsRequestReassignablePartition,
    ListPartitionReassignmentsRequestData,
    ListPartitionReassignmentsTopics,
    ReassignableTopic,
)
from rackspan.wire.messages.scram_credentials import (
    AlterUserScramCredentialsRequestData,
    DescribeUserScramCredentialsRequestData,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from rackspan.wire.messages.transactions import (
    AddPartitionsToTxnRequestData,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequestData,
)
from rackspan.wire.schema import request_shape
from tests.cluster.raw import batch, framed, produced, response_to
from tests.waiting import WITHIN_SECONDS

GROUP = 32
SET, DELETE = 0, 1


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=2, brokers=2, seed=4) as cluster:
        yield cluster


def test_the_credential_that_is_named_is_deleted(cluster: EmbeddedCluster) -> None:
    def alter(**changes: object) -> None:
        request = AlterUserScramCredentialsRequestData(**changes)  # type: ignore[arg-type]
        response = response_to(cluster.address(1), ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
        assert [result.error_code for result in response.results] == [0] * len(response.results)

    def users() -> list[str]:
        request = DescribeUserScramCredentialsRequestData()
        response = response_to(cluster.address(1), ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, request)
        return sorted(result.user for result in response.results)

    alter(
        upsertions=[
            ScramCredentialUpsertion(name=user, mechanism=1, iterations=4096, salt=b"s", salted_password=b"p")
            for user in ("alice", "bob")
        ]
    )
    assert users() == ["alice", "bob"]
    alter(deletions=[ScramCredentialDeletion(name="alice", mechanism=1)])
    assert users() == ["bob"]


def test_a_group_is_listed_until_its_last_config_is_deleted(cluster: EmbeddedCluster) -> None:
    def alter(operation: int) -> None:
        config = IncrementalAlterConfigsRequestAlterableConfig(
            name="consumer.session.timeout.ms", config_operation=operation, value=None if operation else "50000"
        )
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=GROUP, resource_name="billing", configs=[config]
        )
        request = IncrementalAlterConfigsRequestData(resources=[resource])
        response = response_to(cluster.address(1), ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        assert response.responses[0].error_code == 0

    def groups() -> list[str]:
        request = ListConfigResourcesRequestData(resource_types=[GROUP])
        response = response_to(cluster.address(1), ApiKey.LIST_CONFIG_RESOURCES, 1, request)
        return [resource.resource_name for resource in response.config_resources]

    alter(SET)
    assert groups() == ["billing"]
    alter(DELETE)
    assert groups() == []


def test_quotas_are_described_in_the_order_of_their_names(cluster: EmbeddedCluster) -> None:
    entity = AlterClientQuotasRequestEntityData(entity_type="user", entity_name="alice")
    names = ["request_percentage", "producer_byte_rate", "consumer_byte_rate"]
    entry = AlterClientQuotasRequestEntryData(entity=[entity], ops=[OpData(key=name, value=7.0) for name in names])
    response_to(cluster.address(1), ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequestData(entries=[entry]))
    response = response_to(cluster.address(1), ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, DescribeClientQuotasRequestData())
    assert [value.key for value in response.entries[0].values] == sorted(names)


def test_quotas_of_a_kind_that_there_is_not_are_refused(cluster: EmbeddedCluster) -> None:
    request = DescribeClientQuotasRequestData(components=[ComponentData(entity_type="team", match_type=2)])
    response = response_to(cluster.address(1), ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, request)
    assert (response.error_code, response.error_message) == (
        ErrorCode.UNSUPPORTED_VERSION,
        "Unsupported entity type team",
    )


def test_reassignments_of_the_partitions_that_are_named_are_listed(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("moving", replicas=[[1], [1]])
    cluster.cut(1, 2)
    try:
        partitions = [
            AlterPartitionReassignmentsRequestReassignablePartition(partition_index=index, replicas=[2])
            for index in (0, 1)
        ]
        topics = [ReassignableTopic(name="moving", partitions=partitions)]
        response = response_to(
            cluster.address(1),
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            0,
            AlterPartitionReassignmentsRequestData(topics=topics),
        )
        assert response.error_code == ErrorCode.NONE

        def listed(*indexes: int) -> list[int]:
            named = [ListPartitionReassignmentsTopics(name="moving", partition_indexes=indexes)] if indexes else None
            request = ListPartitionReassignmentsRequestData(topics=named)
            response = response_to(cluster.address(1), ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request)
            return [partition.partition_index for topic in response.topics for partition in topic.partitions]

        assert [listed(), listed(1), listed(0), listed(5)] == [[0, 1], [1], [0], []]
    finally:
        cluster.heal(1, 2)


def test_reassignments_of_several_topics_come_by_their_names(cluster: EmbeddedCluster) -> None:
    cluster.cut(1, 2)
    try:
        for name in ("late", "early"):
            cluster.create_topic(name, replicas=[[1]])
            partition = AlterPartitionReassignmentsRequestReassignablePartition(partition_index=0, replicas=[2])
            request = AlterPartitionReassignmentsRequestData(
                topics=[ReassignableTopic(name=name, partitions=[partition])]
            )
            response_to(cluster.address(1), ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request)
        every = ListPartitionReassignmentsRequestData(topics=None)
        response = response_to(cluster.address(1), ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, every)
        # One of another test may not have ended yet.
        assert [topic.name for topic in response.topics if topic.name != "moving"] == ["early", "late"]
    finally:
        cluster.heal(1, 2)


def test_records_of_the_partitions_that_are_named_are_deleted(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("deleted", replicas=[[1], [1], [1]])
    for partition in (0, 1, 1, 2):
        produced(cluster.address(1), "deleted", partition=partition)
    partitions = [DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in ((1, 1), (2, -1))]
    request = DeleteRecordsRequestData(
        topics=[DeleteRecordsTopic(name="deleted", partitions=partitions)], timeout=5_000
    )
    (topic,) = response_to(cluster.address(1), ApiKey.DELETE_RECORDS, 2, request).topics
    assert topic.name == "deleted"
    assert [(one.partition_index, one.low_watermark, one.error_code) for one in topic.partitions] == [
        (1, 1, 0),
        (2, 1, 0),
    ]
    starts = [produced(cluster.address(1), "deleted", partition=index).log_start_offset for index in (0, 1)]
    assert starts == [0, 1]


def test_brokers_are_described_with_their_addresses_and_racks(cluster: EmbeddedCluster) -> None:
    brokers = response_to(cluster.address(1), ApiKey.DESCRIBE_CLUSTER, 2, DescribeClusterRequestData()).brokers
    assert [(broker.broker_id, f"{broker.host}:{broker.port}", broker.rack) for broker in brokers] == [
        (1, cluster.address(1), "r1"),
        (2, cluster.address(2), "r2"),
    ]


def test_fenced_brokers_are_described_if_they_are_requested(cluster: EmbeddedCluster) -> None:
    cluster.fence(2)
    try:
        described = [
            response_to(cluster.address(1), ApiKey.DESCRIBE_CLUSTER, 2, DescribeClusterRequestData(**required)).brokers
            for required in ({}, {"include_fenced_brokers": True})
        ]
        assert [[broker.broker_id for broker in brokers] for brokers in described] == [[1], [1, 2]]
    finally:
        cluster.unfence(2)


def test_a_produce_without_acks_gets_no_response(cluster: EmbeddedCluster) -> None:
    """The next response on the connection is that of the next request."""
    cluster.create_topic("unacknowledged", replicas=[[1, 2]])
    host, port = cluster.address(1).split(":")
    data = PartitionProduceData(index=0, records=memoryview(batch(b"x")))
    topics = [TopicProduceData(name="unacknowledged", partition_data=[data])]
    parts = [pack(">hhih", ApiKey.PRODUCE, 3, 1, -1)]
    struct_writer(request_shape(ApiKey.PRODUCE, 3))(parts, ProduceRequestData(acks=0, timeout=5000, topic_data=topics))
    with socket.create_connection((host, int(port)), WITHIN_SECONDS) as connection:
        connection.sendall(framed(parts) + framed([pack(">hhih", ApiKey.API_VERSIONS, 0, 2, -1)]))
        assert connection.recv(8)[4:] == pack(">i", 2)


def test_markers_are_written_to_the_partitions_that_are_named(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("marked", replicas=[[1], [1]])
    topics = [WritableTxnMarkerTopic(name="marked", partition_indexes=[1, 5])]
    request = WriteTxnMarkersRequestData(markers=[WritableTxnMarker(producer_id=7, topics=topics)])
    [marker] = response_to(cluster.address(1), ApiKey.WRITE_TXN_MARKERS, 1, request).markers
    assert (marker.producer_id, [topic.name for topic in marker.topics]) == (7, ["marked"])
    assert [(row.partition_index, row.error_code) for row in marker.topics[0].partitions] == [
        (1, ErrorCode.NONE),
        (5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_each_of_several_transactions_has_its_result(cluster: EmbeddedCluster) -> None:
    topics = [AddPartitionsToTxnTopic(name="absent", partitions=[3])]
    transactions = [AddPartitionsToTxnTransaction(transactional_id=name, topics=topics) for name in ("t", "u")]
    request = AddPartitionsToTxnRequestData(transactions=transactions)
    response = response_to(cluster.address(1), ApiKey.ADD_PARTITIONS_TO_TXN, 5, request)
    assert [
        (result.transactional_id, topic.name, row.partition_index, row.partition_error_code)
        for result in response.results_by_transaction
        for topic in result.topic_results
        for row in topic.results_by_partition
    ] == [(name, "absent", 3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for name in ("t", "u")]
