"""InitProducerId (key 22), versions 0-5: a number for an idempotent producer, from this broker's block (KIP-98).

A producer that names a transactional id is the transaction coordinator's.
"""

from rackspan.cluster.answers import Body, Call
from rackspan.cluster.core.errors import KafkaError

FIRST_EPOCH = 0


async def handle(call: Call) -> Body:
    if call.body["transactional_id"] is not None:
        return {"error_code": KafkaError.COORDINATOR_NOT_AVAILABLE, "producer_id": -1, "producer_epoch": -1}
    producer_id = await call.broker.producer_ids.next()
    if producer_id is None:
        return {"error_code": KafkaError.COORDINATOR_LOAD_IN_PROGRESS, "producer_id": -1, "producer_epoch": -1}
    return {"producer_id": producer_id, "producer_epoch": FIRST_EPOCH}
