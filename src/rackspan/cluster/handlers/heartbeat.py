"""Heartbeat (key 12), versions 0-4. Static members from v3."""

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.groups.requests import Heartbeat
from rackspan.cluster.handlers.common.group_requests import group_response


async def handle(call: Call) -> Body:
    body = call.body
    request = Heartbeat(body["group_id"], body["generation_id"], body["member_id"], body.get("group_instance_id"))
    return {"error_code": call.broker.code((await group_response(call, request)).error)}
