"""ListTransactions (key 66), versions 0-2: the transactions this broker coordinates.

By duration from v1 on (KIP-994), by a pattern of the transactional id from v2 on (KIP-1152). Kafka's patterns are those of
RE2; here they are Python's, which for common patterns mean the same.
"""

import re

from rackspan.cluster.context import Call
from rackspan.cluster.core.transactions.coordinator import STATE_NAMES
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.transaction_states import (
    ListTransactionsRequestData,
    ListTransactionsResponseData,
    ListTransactionsResponseTransactionState,
)


def handle(call: Call[ListTransactionsRequestData]) -> ListTransactionsResponseData:
    request = call.request
    try:
        pattern = re.compile(request.transactional_id_pattern or ".*", re.DOTALL)
    except re.error:
        return ListTransactionsResponseData(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    transactions = call.broker.transactions.list_transactions(
        call.broker.now, request.state_filters, request.producer_id_filters, request.duration_filter
    )
    return ListTransactionsResponseData(
        unknown_state_filters=[state for state in request.state_filters if state not in STATE_NAMES.values()],
        transaction_states=[
            ListTransactionsResponseTransactionState(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state,
            )
            for transaction in transactions
            if pattern.fullmatch(transaction.transactional_id)
        ],
    )
