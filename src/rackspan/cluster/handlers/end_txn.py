"""EndTxn (key 26), versions 0-5. From v5 on the answer says with which epoch the producer goes on (KIP-890, part 2)."""

from typing import Final

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.transactions.requests import EndTransaction, EndTransactionResponse
from rackspan.cluster.handlers.common.transaction_requests import error_code, transaction_response

EPOCH_BUMP: Final = 5


async def handle(call: Call) -> Body:
    body = call.body
    bump = call.version >= EPOCH_BUMP
    fresh = await call.broker.producer_ids.next() if bump else -1
    if fresh is None:
        return {"error_code": KafkaError.COORDINATOR_NOT_AVAILABLE}
    request = EndTransaction(
        *(body["transactional_id"], body["producer_id"], body["producer_epoch"], body["committed"]),
        bump_epoch=bump,
        fresh_producer_id=fresh,
    )
    answer: EndTransactionResponse = await transaction_response(call, request)
    return {
        "error_code": error_code(call, answer.error),
        "producer_id": answer.producer_id,
        "producer_epoch": answer.producer_epoch,
    }
