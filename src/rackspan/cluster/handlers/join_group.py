"""JoinGroup (key 11), versions 0-9. A member id is required first from v4 on; static members from v5, skip_assignment from v9."""

from typing import Final

from rackspan.cluster.context import Call
from rackspan.cluster.core.groups.requests import JoinGroup, JoinGroupResponse, Protocol
from rackspan.cluster.handlers.common import group_response
from rackspan.wire.messages.group_members import JoinGroupRequestData, JoinGroupResponseData, JoinGroupResponseMember

REBALANCE_TIMEOUT_SINCE: Final = 1
MEMBER_ID_REQUIRED_SINCE: Final = 4
NULL_PROTOCOL_SINCE: Final = 7
SKIP_ASSIGNMENT_SINCE: Final = 9


async def handle(call: Call[JoinGroupRequestData]) -> JoinGroupResponseData:
    request = call.request
    has_rebalance_timeout = call.version >= REBALANCE_TIMEOUT_SINCE
    response: JoinGroupResponse = await group_response(
        call,
        JoinGroup(
            group_id=request.group_id,
            protocol_type=request.protocol_type,
            protocols=tuple(Protocol(protocol.name, protocol.metadata) for protocol in request.protocols),
            session_timeout_ms=request.session_timeout,
            rebalance_timeout_ms=request.rebalance_timeout if has_rebalance_timeout else request.session_timeout,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            client_id=call.header.client_id or "",
            client_host=f"/{call.client_host}",
            require_known_member_id=call.version >= MEMBER_ID_REQUIRED_SINCE,
            can_skip_assignment=call.version >= SKIP_ASSIGNMENT_SINCE,
        ),
    )
    no_protocol = None if call.version >= NULL_PROTOCOL_SINCE else ""
    return JoinGroupResponseData(
        error_code=call.broker.code(response.error),
        generation_id=response.generation,
        protocol_type=response.protocol_type,
        protocol_name=no_protocol if response.protocol is None else response.protocol,
        leader=response.leader,
        skip_assignment=response.skip_assignment,
        member_id=response.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.group_instance_id, metadata=member.metadata
            )
            for member in response.members
        ],
    )
