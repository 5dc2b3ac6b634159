"""TxnOffsetCommit (key 28), versions 0-5. Leader epochs arrive in v2, the committing member in v3 (KIP-447).

From v5 on this request adds the group to the transaction. Before, the producer must have added it (KIP-890).
"""

import asyncio
from typing import Final

from rackspan.cluster.context.call import Call
from rackspan.cluster.core.coordination import OFFSETS_TOPIC
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups.requests import TxnOffsetCommit
from rackspan.cluster.handlers.common.group_requests import committed_offsets, exists, group_response
from rackspan.cluster.handlers.common.topics import by_topic
from rackspan.cluster.handlers.common.transaction_verification import Support, Writer, verify
from rackspan.model.ids import TopicPartition
from rackspan.wire.messages.txn_offset_commit import (
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
    known = {partition: offset for partition, offset in offsets.items() if exists(call, partition)}
    errors = dict.fromkeys(offsets, KafkaError.UNKNOWN_TOPIC_OR_PARTITION)
    verification_error = await _verification_error(call) if known else KafkaError.NONE
    if verification_error is not KafkaError.NONE:
        errors |= dict.fromkeys(known, verification_error)
    elif known:
        commit = TxnOffsetCommit(
            *(request.group_id, request.producer_id, request.producer_epoch, known),
            generation=request.generation_id,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
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


async def _verification_error(call: Call[TxnOffsetCommitRequestData]) -> KafkaError:
    """NONE if the group's offsets belong to an ongoing transaction."""
    request, broker = call.request, call.broker
    verified: asyncio.Future[KafkaError] = asyncio.get_running_loop().create_future()
    verify(
        broker,
        Writer(request.transactional_id, request.producer_id, request.producer_epoch),
        TopicPartition(OFFSETS_TOPIC, broker.groups.partition_of(request.group_id)),
        Support.of(call.version, abortable_since=ABORTABLE_SINCE, adds_since=ADDS_SINCE),
        lambda error: None if verified.done() else verified.set_result(error),
    )
    error = await verified
    return KafkaError.COORDINATOR_LOAD_IN_PROGRESS if error is KafkaError.NOT_ENOUGH_REPLICAS else error
