"""AddPartitionsToTxn (key 24), versions 0-5. Until v3 producers send it, for one transaction. From v4 on brokers send it, for
several transactions, and may only verify that a partition has been added (KIP-890, part 1).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from rackspan.cluster.context import Call
from rackspan.cluster.core.coordination import INTERNAL_TOPICS
from rackspan.cluster.core.transactions.requests import AddPartitions
from rackspan.cluster.handlers.common import by_topic, partition_exists, transaction_error_code, transaction_response
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from rackspan.wire.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequestData,
    AddPartitionsToTxnResponseData,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

SEVERAL_TRANSACTIONS_SINCE: Final = 4


async def handle(call: Call[AddPartitionsToTxnRequestData]) -> AddPartitionsToTxnResponseData:
    request = call.request
    if call.version < SEVERAL_TRANSACTIONS_SINCE:
        addition = AddPartitions(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            _partitions(request.v3_and_below_topics),
        )
        topics = _topic_results(call, await _add(call, addition))
        return AddPartitionsToTxnResponseData(results_by_topic_v3_and_below=topics)
    return AddPartitionsToTxnResponseData(
        results_by_transaction=[await _transaction_result(call, transaction) for transaction in request.transactions]
    )


async def _transaction_result(
    call: Call[object], transaction: AddPartitionsToTxnTransaction
) -> AddPartitionsToTxnResult:
    addition = AddPartitions(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        _partitions(transaction.topics),
    )
    if transaction.verify_only:
        errors: Mapping[TopicPartition, ErrorCode] = call.broker.transactions.verify(addition)
    else:
        errors = await _add(call, addition)
    return AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id, topic_results=_topic_results(call, errors)
    )


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic.name, number) for topic in topics for number in topic.partitions)


async def _add(call: Call[object], addition: AddPartitions) -> dict[TopicPartition, ErrorCode]:
    """Adds all partitions or none: if one does not exist, or is the cluster's own, the others are not attempted."""
    unknown = {partition for partition in addition.partitions if not partition_exists(call, partition)}
    is_clients = call.version < SEVERAL_TRANSACTIONS_SINCE
    internal = {partition for partition in addition.partitions if is_clients and partition.topic in INTERNAL_TOPICS}
    if unknown or internal:
        others = dict.fromkeys(addition.partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
        missing = dict.fromkeys(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return others | missing | dict.fromkeys(internal, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    response = await transaction_response(call, addition)
    return dict.fromkeys(addition.partitions, response.error)


def _topic_results(
    call: Call[object], errors: Mapping[TopicPartition, ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=partition.partition,
                    partition_error_code=transaction_error_code(call, errors[partition]),
                )
                for partition in partitions
            ],
        )
        for topic, partitions in by_topic(sorted(errors)).items()
    ]
