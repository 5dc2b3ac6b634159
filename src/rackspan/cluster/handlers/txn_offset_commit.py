"""TxnOffsetCommit (key 28), versions 0-5. Leader epochs arrive in v2, the member that commits in v3 (KIP-447); from v5 on the
group is added to the transaction here, before that it must have been (KIP-890).
"""

import asyncio
from typing import Final

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.coordination import OFFSETS_TOPIC
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups.requests import TxnOffsetCommit
from rackspan.cluster.handlers.common.group_requests import committed, errors_by_topic, exists, group_response
from rackspan.cluster.handlers.common.transaction_verification import Support, Writer, verify
from rackspan.model.ids import TopicPartition

ABORTABLE_SINCE: Final = 4
ADDS_SINCE: Final = 5


async def handle(call: Call) -> Body:
    body = call.body
    asked = committed(body)
    known = {partition: offset for partition, offset in asked.items() if exists(call, partition)}
    errors = dict.fromkeys(asked, KafkaError.UNKNOWN_TOPIC_OR_PARTITION)
    unverified = await _verified(call) if known else KafkaError.NONE
    if unverified is not KafkaError.NONE:
        errors |= dict.fromkeys(known, unverified)
    elif known:
        request = TxnOffsetCommit(
            *(body["group_id"], body["producer_id"], body["producer_epoch"], known),
            generation=body.get("generation_id", -1),
            member_id=body.get("member_id", ""),
            group_instance_id=body.get("group_instance_id"),
        )
        errors |= (await group_response(call, request)).errors
    return {"topics": errors_by_topic(call, errors, lambda: list(asked))}


async def _verified(call: Call) -> KafkaError:
    """Whether the group's offsets are part of a transaction that goes on."""
    body, broker = call.body, call.broker
    number = broker.groups.partition_of(body["group_id"])
    answer: asyncio.Future[KafkaError] = asyncio.get_running_loop().create_future()
    verify(
        broker,
        Writer(body["transactional_id"], body["producer_id"], body["producer_epoch"]),
        TopicPartition(OFFSETS_TOPIC, number),
        Support.of(call.version, abortable_since=ABORTABLE_SINCE, adds_since=ADDS_SINCE),
        lambda error: None if answer.done() else answer.set_result(error),
    )
    error = await answer
    return KafkaError.COORDINATOR_LOAD_IN_PROGRESS if error is KafkaError.NOT_ENOUGH_REPLICAS else error
