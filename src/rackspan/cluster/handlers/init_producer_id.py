"""InitProducerId (key 22), versions 0-5. An idempotent producer gets an id from this broker's block (KIP-98).

For a transactional id the coordinator decides on the producer id and epoch (KIP-360).
"""

from typing import Final

from rackspan.cluster.context import Call
from rackspan.cluster.core.transactions.requests import InitProducerId
from rackspan.cluster.handlers.common import transaction_response
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.transactions import InitProducerIdRequestData, InitProducerIdResponseData

FIRST_EPOCH: Final = 0


async def handle(call: Call[InitProducerIdRequestData]) -> InitProducerIdResponseData:
    request = call.request
    fresh_producer_id = await call.broker.producer_ids.next()
    if fresh_producer_id is None:
        return InitProducerIdResponseData(
            error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, producer_id=-1, producer_epoch=-1
        )
    if request.transactional_id is None:
        return InitProducerIdResponseData(producer_id=fresh_producer_id, producer_epoch=FIRST_EPOCH)
    response = await transaction_response(
        call,
        InitProducerId(
            request.transactional_id,
            request.transaction_timeout,
            fresh_producer_id,
            request.producer_id,
            request.producer_epoch,
        ),
    )
    return InitProducerIdResponseData(
        error_code=call.broker.code(response.error),
        producer_id=response.producer_id,
        producer_epoch=response.producer_epoch,
    )
