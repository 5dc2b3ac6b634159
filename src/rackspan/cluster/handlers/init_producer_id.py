"""InitProducerId (key 22), versions 0-5: a number for an idempotent producer from this broker's block (KIP-98), or, for a
transactional id, the coordinator's word on who goes on and with which epoch (KIP-360).
"""

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.transactions.requests import InitProducerId
from rackspan.cluster.handlers.common.transaction_requests import transaction_response

FIRST_EPOCH = 0


async def handle(call: Call) -> Body:
    producer_id = await call.broker.producer_ids.next()
    if producer_id is None:
        return {"error_code": KafkaError.COORDINATOR_LOAD_IN_PROGRESS, "producer_id": -1, "producer_epoch": -1}
    if call.body["transactional_id"] is None:
        return {"producer_id": producer_id, "producer_epoch": FIRST_EPOCH}
    return await _transactional(call, producer_id)


async def _transactional(call: Call, fresh_producer_id: int) -> Body:
    body = call.body
    request = InitProducerId(
        body["transactional_id"],
        body["transaction_timeout"],
        fresh_producer_id,
        body.get("producer_id", -1),
        body.get("producer_epoch", -1),
    )
    answer = await transaction_response(call, request)
    return {
        "error_code": call.broker.code(answer.error),
        "producer_id": answer.producer_id,
        "producer_epoch": answer.producer_epoch,
    }
