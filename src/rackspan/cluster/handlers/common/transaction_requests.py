"""Requests to the transaction coordinator, and the error codes of its responses."""

from typing import Any, Final

from rackspan.cluster.context import Call
from rackspan.cluster.core.transactions.requests import TransactionRequest
from rackspan.kafka_bytes.error_codes import ErrorCode

PRODUCER_FENCED_SINCE: Final = 2
"""AddPartitionsToTxn, AddOffsetsToTxn and EndTxn have PRODUCER_FENCED from this version on, before it INVALID_PRODUCER_EPOCH."""


async def transaction_response(call: Call[object], request: TransactionRequest) -> Any:
    """The transaction coordinator's response, of the class that belongs to the request's."""
    return await call.broker.requests.coordinator_response(request)


def transaction_error_code(call: Call[object], error: ErrorCode) -> int:
    """The error as this version's clients understand it."""
    if error is ErrorCode.PRODUCER_FENCED and call.version < PRODUCER_FENCED_SINCE:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return call.broker.code(error)
