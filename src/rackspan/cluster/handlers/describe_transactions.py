"""DescribeTransactions (key 65), version 0 (KIP-664): transactions that this broker coordinates."""

from rackspan.cluster.context import Call
from rackspan.wire.messages.transaction_states import (
    DescribeTransactionsRequestData,
    DescribeTransactionsResponseData,
    DescribeTransactionsResponseTopicData,
    DescribeTransactionsResponseTransactionState,
)


def handle(call: Call[DescribeTransactionsRequestData]) -> DescribeTransactionsResponseData:
    return DescribeTransactionsResponseData(
        transaction_states=[_describe(call, transactional_id) for transactional_id in call.request.transactional_ids]
    )


def _describe(call: Call[object], transactional_id: str) -> DescribeTransactionsResponseTransactionState:
    transaction = call.broker.transactions.describe(transactional_id)
    return DescribeTransactionsResponseTransactionState(
        error_code=call.broker.code(transaction.error),
        transactional_id=transactional_id,
        transaction_state=transaction.state,
        transaction_timeout=transaction.timeout_ms,
        transaction_start_time=transaction.started_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            DescribeTransactionsResponseTopicData(topic=topic, partitions=partitions)
            for topic, partitions in transaction.topics.items()
        ],
    )
