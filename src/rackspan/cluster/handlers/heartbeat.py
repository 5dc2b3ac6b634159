"""Heartbeat (key 12), versions 0-4. Static members from v3 on."""

from rackspan.cluster.context import Call
from rackspan.cluster.core.groups.requests import Heartbeat
from rackspan.cluster.handlers.common import group_response
from rackspan.wire.messages.group_members import HeartbeatRequestData, HeartbeatResponseData


async def handle(call: Call[HeartbeatRequestData]) -> HeartbeatResponseData:
    request = call.request
    heartbeat = Heartbeat(request.group_id, request.generation_id, request.member_id, request.group_instance_id)
    return HeartbeatResponseData(error_code=call.broker.code((await group_response(call, heartbeat)).error))
