"""TxnOffsetCommit (key 28), versions 0-5. Leader epochs arrive in v2, the member that commits in v3 (KIP-447)."""

from rackspan.cluster.answers import Body, Call
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups.requests import TxnOffsetCommit
from rackspan.cluster.handlers.group_errors import ask_groups, committed, errors_by_topic, exists


async def handle(call: Call) -> Body:
    body = call.body
    asked = committed(body)
    known = {partition: offset for partition, offset in asked.items() if exists(call, partition)}
    errors = dict.fromkeys(asked, KafkaError.UNKNOWN_TOPIC_OR_PARTITION)
    if known:
        request = TxnOffsetCommit(
            *(body["group_id"], body["producer_id"], body["producer_epoch"], known),
            generation=body.get("generation_id", -1),
            member_id=body.get("member_id", ""),
            group_instance_id=body.get("group_instance_id"),
        )
        errors |= (await ask_groups(call, request)).errors
    return {"topics": errors_by_topic(call, errors, lambda: list(asked))}
