"""AddOffsetsToTxn (key 25), versions 0-4: the transaction will commit offsets of a group."""

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.coordination import OFFSETS_TOPIC
from rackspan.cluster.core.transactions.requests import AddPartitions
from rackspan.cluster.handlers.common.transaction_requests import error_code, transaction_response
from rackspan.model.ids import TopicPartition


async def handle(call: Call) -> Body:
    body = call.body
    offsets = TopicPartition(OFFSETS_TOPIC, call.broker.groups.partition_of(body["group_id"]))
    request = AddPartitions(body["transactional_id"], body["producer_id"], body["producer_epoch"], frozenset({offsets}))
    return {"error_code": error_code(call, (await transaction_response(call, request)).error)}
