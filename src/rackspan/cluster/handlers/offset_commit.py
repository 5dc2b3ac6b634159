"""OffsetCommit (key 8), versions 2-9. Leader epochs arrive in v6, static members in v7. Topics must exist."""

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups.requests import OffsetCommit
from rackspan.cluster.handlers.common.group_requests import committed, errors_by_topic, exists, group_response


async def handle(call: Call) -> Body:
    body = call.body
    asked = committed(body)
    known = {partition: offset for partition, offset in asked.items() if exists(call, partition)}
    errors = dict.fromkeys(asked, KafkaError.UNKNOWN_TOPIC_OR_PARTITION)
    if known:
        request = OffsetCommit(
            body["group_id"],
            known,
            body["generation_id_or_member_epoch"],
            body["member_id"],
            body.get("group_instance_id"),
        )
        errors |= (await group_response(call, request)).errors
    return {"topics": errors_by_topic(call, errors, lambda: list(asked))}
