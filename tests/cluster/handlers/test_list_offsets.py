"""ListOffsets: the ends of a log, offsets by time, and the leader epoch that the client has."""

from collections.abc import Iterator

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.log_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequestData,
    ListOffsetsTopic,
)
from rackspan.wire.messages.produce import PartitionProduceData, ProduceRequestData, TopicProduceData
from tests.cluster.raw import response_to
from tests.conformance.wire import batch

TIMES = [1_000, 3_000, 2_000]


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=2, brokers=2, seed=4) as cluster:
        cluster.create_topic("orders", replicas=[[1, 2]])
        for times in (TIMES, [9_000]):
            data = PartitionProduceData(index=0, records=memoryview(batch(*[b"x"] * len(times), times=times)))
            topics = [TopicProduceData(name="orders", partition_data=[data])]
            response_to(
                cluster.address(1), ApiKey.PRODUCE, 9, ProduceRequestData(acks=-1, timeout=5_000, topic_data=topics)
            )
        yield cluster


def listed(
    cluster: EmbeddedCluster, timestamp: int, *, epoch: int = -1, version: int = 7
) -> ListOffsetsPartitionResponse:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=epoch)
    request = ListOffsetsRequestData(replica_id=-1, topics=[ListOffsetsTopic(name="orders", partitions=[partition])])
    response = response_to(cluster.address(1), ApiKey.LIST_OFFSETS, version, request)
    found: ListOffsetsPartitionResponse = response.topics[0].partitions[0]
    return found


@pytest.mark.parametrize(
    ("timestamp", "offset", "at"),
    [
        (-2, 0, -1),
        (-1, 4, -1),
        (0, 0, 1_000),
        (1_001, 1, 3_000),
        (2_000, 1, 3_000),
        (3_001, 3, 9_000),
        (9_000, 3, 9_000),
        (9_001, -1, -1),
        (-3, 3, 9_000),
    ],
)
def test_an_offset_is_that_of_the_first_record_at_or_after_the_time(
    cluster: EmbeddedCluster, timestamp: int, offset: int, at: int
) -> None:
    found = listed(cluster, timestamp)
    assert (found.offset, found.timestamp, found.error_code) == (offset, at, 0)
    assert found.leader_epoch == (0 if offset >= 0 else -1)


def test_of_logs_in_tiers_the_local_one_begins_at_the_start_and_no_other_ends(cluster: EmbeddedCluster) -> None:
    local, tiered = listed(cluster, -4, version=9), listed(cluster, -5, version=9)
    assert (local.offset, local.leader_epoch, tiered.offset, tiered.leader_epoch) == (0, 0, -1, -1)


def test_a_client_with_another_leader_epoch_has_to_read_its_metadata_again(cluster: EmbeddedCluster) -> None:
    assert listed(cluster, -1, epoch=0).error_code == ErrorCode.NONE
    assert listed(cluster, -1, epoch=7).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
