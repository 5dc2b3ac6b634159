"""DescribeProducers (key 61), version 0 (KIP-664): who writes to a partition, and since where a transaction is open."""

from typing import Any

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.log.producer_state import ProducerEntry
from rackspan.model.ids import TopicPartition


def handle(call: Call) -> Body:
    return {
        "topics": [
            {
                "name": topic["name"],
                "partitions": [_partition(call, TopicPartition(topic["name"], n)) for n in topic["partition_indexes"]],
            }
            for topic in call.body["topics"]
        ]
    }


def _partition(call: Call, partition: TopicPartition) -> dict[str, Any]:
    leader = call.broker.core.leaders.get(partition)
    if leader is None:
        known = call.broker.image.partition(partition) is not None
        error = KafkaError.NOT_LEADER_OR_FOLLOWER if known else KafkaError.UNKNOWN_TOPIC_OR_PARTITION
        return {"partition_index": partition.partition, "error_code": error, "active_producers": []}
    return {
        "partition_index": partition.partition,
        "error_code": KafkaError.NONE,
        "active_producers": [_producer(number, entry) for number, entry in sorted(leader.log.producers.items())],
    }


def _producer(producer_id: int, entry: ProducerEntry) -> dict[str, Any]:
    return {
        "producer_id": producer_id,
        "producer_epoch": entry.epoch,
        "last_sequence": entry.last_sequence,
        "last_timestamp": entry.window[-1].timestamp if entry.window else -1,
        "coordinator_epoch": -1,
        "current_txn_start_offset": -1 if entry.transaction_start is None else entry.transaction_start,
    }
