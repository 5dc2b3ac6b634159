"""EndTxn (key 26), versions 0-5. From v5 on the response has the producer id and epoch of the next transaction (KIP-890, part 2)."""

from typing import Final

from rackspan.cluster.context import Call
from rackspan.cluster.core.transactions.requests import EndTransaction, EndTransactionResponse
from rackspan.cluster.handlers.common import transaction_error_code, transaction_response
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.transactions import EndTxnRequestData, EndTxnResponseData

EPOCH_BUMP_SINCE: Final = 5


async def handle(call: Call[EndTxnRequestData]) -> EndTxnResponseData:
    request = call.request
    bump_epoch = call.version >= EPOCH_BUMP_SINCE
    # For the case that the epoch of the present producer id is exhausted.
    fresh_producer_id = await call.broker.producer_ids.next() if bump_epoch else -1
    if fresh_producer_id is None:
        return EndTxnResponseData(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    response: EndTransactionResponse = await transaction_response(
        call,
        EndTransaction(
            *(request.transactional_id, request.producer_id, request.producer_epoch, request.committed),
            bump_epoch=bump_epoch,
            fresh_producer_id=fresh_producer_id,
        ),
    )
    return EndTxnResponseData(
        error_code=transaction_error_code(call, response.error),
        producer_id=response.producer_id,
        producer_epoch=response.producer_epoch,
    )
