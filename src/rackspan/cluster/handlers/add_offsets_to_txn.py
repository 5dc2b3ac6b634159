"""AddOffsetsToTxn (key 25), versions 0-4: adds the offsets of a consumer group to a transaction."""

from rackspan.cluster.context import Call
from rackspan.cluster.core.coordination import OFFSETS_TOPIC
from rackspan.cluster.core.transactions.requests import AddPartitions
from rackspan.cluster.handlers.common import transaction_error_code, transaction_response
from rackspan.model.ids import TopicPartition
from rackspan.wire.messages.transactions import AddOffsetsToTxnRequestData, AddOffsetsToTxnResponseData


async def handle(call: Call[AddOffsetsToTxnRequestData]) -> AddOffsetsToTxnResponseData:
    request = call.request
    offsets = TopicPartition(OFFSETS_TOPIC, call.broker.groups.partition_of(request.group_id))
    response = await transaction_response(
        call,
        AddPartitions(request.transactional_id, request.producer_id, request.producer_epoch, frozenset({offsets})),
    )
    return AddOffsetsToTxnResponseData(error_code=transaction_error_code(call, response.error))
