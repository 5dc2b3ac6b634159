"""DescribeProducers (key 61), version 0 (KIP-664): the producers of a partition, and where their open transactions begin."""

from rackspan.cluster.context import Call
from rackspan.cluster.core.log.producer_state import ProducerEntry
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from rackspan.wire.messages.transaction_states import (
    DescribeProducersRequestData,
    DescribeProducersResponseData,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def handle(call: Call[DescribeProducersRequestData]) -> DescribeProducersResponseData:
    return DescribeProducersResponseData(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_partition(call, TopicPartition(topic.name, number)) for number in topic.partition_indexes],
            )
            for topic in call.request.topics
        ]
    )


def _partition(call: Call[object], partition: TopicPartition) -> PartitionResponse:
    leader = call.broker.core.leaders.get(partition)
    if leader is None:
        known = call.broker.image.partition(partition) is not None
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return PartitionResponse(partition_index=partition.partition, error_code=error)
    return PartitionResponse(
        partition_index=partition.partition,
        active_producers=[_producer(producer_id, entry) for producer_id, entry in leader.log.producers.items()],
    )


def _producer(producer_id: int, entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        producer_id=producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.window[-1].timestamp if entry.window else -1,
        coordinator_epoch=-1,
        current_txn_start_offset=-1 if entry.transaction_start is None else entry.transaction_start,
    )
