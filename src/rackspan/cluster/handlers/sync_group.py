"""SyncGroup (key 14), versions 0-5. Static members from v3 on; from v5 on protocol type and name are required."""

from typing import Final

from rackspan.cluster.context import Call
from rackspan.cluster.core.groups.requests import SyncGroup, SyncGroupResponse
from rackspan.cluster.handlers.common import group_response
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.group_members import SyncGroupRequestData, SyncGroupResponseData

PROTOCOL_REQUIRED_SINCE: Final = 5


async def handle(call: Call[SyncGroupRequestData]) -> SyncGroupResponseData:
    response = await _response(call)
    return SyncGroupResponseData(
        error_code=call.broker.code(response.error),
        protocol_type=response.protocol_type,
        protocol_name=response.protocol,
        assignment=response.assignment,
    )


async def _response(call: Call[SyncGroupRequestData]) -> SyncGroupResponse:
    request = call.request
    if call.version >= PROTOCOL_REQUIRED_SINCE and None in (request.protocol_type, request.protocol_name):
        return SyncGroupResponse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    response: SyncGroupResponse = await group_response(
        call,
        SyncGroup(
            request.group_id,
            request.generation_id,
            request.member_id,
            request.group_instance_id,
            request.protocol_type,
            request.protocol_name,
            {member.member_id: member.assignment for member in request.assignments},
        ),
    )
    return response
