"""TxnOffsetCommit (key 28), versions 0-5. Leader epochs arrive in v2, the committing member in v3 (KIP-447).

From v5 on this request adds the group to the transaction. Before, the producer must have added it (KIP-890).
"""

from typing import Final

from rackspan.cluster.context import Call
from rackspan.cluster.core.groups.requests import TxnOffsetCommit
from rackspan.cluster.core.process import transaction_support
from rackspan.cluster.handlers.common import by_topic, committed_offsets, group_response, partition_exists
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.transactions import (
    TxnOffsetCommitRequestData,
    TxnOffsetCommitResponseData,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

ABORTABLE_SINCE: Final = 4
ADDS_SINCE: Final = 5


async def handle(call: Call[TxnOffsetCommitRequestData]) -> TxnOffsetCommitResponseData:
    request = call.request
    offsets = committed_offsets(request.topics)
    known = {partition: offset for partition, offset in offsets.items() if partition_exists(call, partition)}
    errors = dict.fromkeys(offsets, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if known:
        commit = TxnOffsetCommit(
            *(request.group_id, request.producer_id, request.producer_epoch, known),
            generation=request.generation_id,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            transactional_id=request.transactional_id,
            support=transaction_support(call.version, abortable_since=ABORTABLE_SINCE, adds_since=ADDS_SINCE),
        )
        errors |= (await group_response(call, commit)).errors
    return TxnOffsetCommitResponseData(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition, error_code=call.broker.code(errors[partition])
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in by_topic(offsets).items()
        ]
    )
