"""DescribeQuorum (key 55), versions 0-2 (KIP-595, KIP-836, KIP-853): one controller is the only voter; brokers are observers.

Any broker forwards the request to the controller, which holds each broker's offset as of that broker's last heartbeat.
"""

from collections.abc import Iterable
from typing import Final

from rackspan.cluster.context import CONTROLLER_ID, Call
from rackspan.cluster.core.admin_messages import DescribeQuorum, DescribeQuorumResponse, Observer
from rackspan.cluster.handlers.common import ADMIN_TIMEOUT_MS
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.describe_quorum import (
    DescribeQuorumRequestData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponseData,
    DescribeQuorumResponseNode,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseReplicaState,
    DescribeQuorumResponseTopicData,
)

METADATA_LOG: Final = "__cluster_metadata"
LEADER_EPOCH: Final = 1
"""The controller never changes."""
UNKNOWN_TIMESTAMP: Final = -1


async def handle(call: Call[DescribeQuorumRequestData]) -> DescribeQuorumResponseData:
    topics = call.request.topics
    if [(topic.topic_name, _partition_indexes(topic)) for topic in topics] != [(METADATA_LOG, [0])]:
        return DescribeQuorumResponseData(topics=[_unknown(topic) for topic in topics])
    quorum = await call.broker.requests.controller_response(DescribeQuorum, ADMIN_TIMEOUT_MS, None)
    if quorum is None:
        return DescribeQuorumResponseData(error_code=ErrorCode.REQUEST_TIMED_OUT)
    return DescribeQuorumResponseData(
        topics=[DescribeQuorumResponseTopicData(topic_name=METADATA_LOG, partitions=[_partition(quorum)])],
        # The controller has no listener: only the brokers of this process reach it.
        nodes=[DescribeQuorumResponseNode(node_id=CONTROLLER_ID)],
    )


def _partition_indexes(topic: DescribeQuorumRequestTopicData) -> list[int]:
    return [partition.partition_index for partition in topic.partitions]


def _unknown(topic: DescribeQuorumRequestTopicData) -> DescribeQuorumResponseTopicData:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeQuorumResponseTopicData(
        topic_name=topic.topic_name,
        partitions=[
            DescribeQuorumResponsePartitionData(partition_index=index, error_code=error)
            for index in _partition_indexes(topic)
        ],
    )


def _partition(quorum: DescribeQuorumResponse) -> DescribeQuorumResponsePartitionData:
    return DescribeQuorumResponsePartitionData(
        leader_id=CONTROLLER_ID,
        leader_epoch=LEADER_EPOCH,
        high_watermark=quorum.offset,
        current_voters=[_replica(CONTROLLER_ID, quorum.offset, quorum.now, quorum.now)],
        observers=list(_observers(quorum)),
    )


def _observers(quorum: DescribeQuorumResponse) -> Iterable[DescribeQuorumResponseReplicaState]:
    for observer in quorum.observers:
        yield _replica(
            observer.broker, observer.offset, observer.last_heartbeat_ms, _caught_up_timestamp(quorum, observer)
        )


def _caught_up_timestamp(quorum: DescribeQuorumResponse, observer: Observer) -> int:
    return observer.last_heartbeat_ms if observer.offset >= quorum.offset else UNKNOWN_TIMESTAMP


def _replica(
    replica_id: int, end_offset: int, fetch_timestamp: int, caught_up_timestamp: int
) -> DescribeQuorumResponseReplicaState:
    return DescribeQuorumResponseReplicaState(
        replica_id=replica_id,
        log_end_offset=end_offset,
        last_fetch_timestamp=fetch_timestamp,
        last_caught_up_timestamp=caught_up_timestamp,
    )
