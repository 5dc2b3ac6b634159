"""SyncGroup (key 14), versions 0-5. Static members from v3; protocol type and name, which are then a must, from v5."""

from typing import Final

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups.requests import SyncGroup, SyncGroupResponse
from rackspan.cluster.handlers.common.group_requests import group_response

PROTOCOL_NAMED: Final = 5


async def handle(call: Call) -> Body:
    body = call.body
    if call.version >= PROTOCOL_NAMED and None in (body["protocol_type"], body["protocol_name"]):
        return _body(call, SyncGroupResponse(KafkaError.INCONSISTENT_GROUP_PROTOCOL))
    request = SyncGroup(
        body["group_id"],
        body["generation_id"],
        body["member_id"],
        body.get("group_instance_id"),
        body.get("protocol_type"),
        body.get("protocol_name"),
        {one["member_id"]: bytes(one["assignment"]) for one in body["assignments"]},
    )
    return _body(call, await group_response(call, request))


def _body(call: Call, answer: SyncGroupResponse) -> Body:
    return {
        "error_code": call.broker.code(answer.error),
        "protocol_type": answer.protocol_type,
        "protocol_name": answer.protocol,
        "assignment": answer.assignment,
    }
