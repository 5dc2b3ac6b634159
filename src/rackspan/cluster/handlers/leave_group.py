"""LeaveGroup (key 13), versions 0-5. One member until v2, whose error is the response's; several members from v3 on (KIP-345)."""

from typing import Final

from rackspan.cluster.context import Call
from rackspan.cluster.core.groups.requests import LeaveGroup, LeaveGroupResponse, LeavingMember
from rackspan.cluster.handlers.common import group_response
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.group_members import LeaveGroupRequestData, LeaveGroupResponseData, MemberResponse

SEVERAL_MEMBERS_SINCE: Final = 3


async def handle(call: Call[LeaveGroupRequestData]) -> LeaveGroupResponseData:
    response: LeaveGroupResponse = await group_response(call, LeaveGroup(call.request.group_id, _members(call)))
    if call.version < SEVERAL_MEMBERS_SINCE:
        return LeaveGroupResponseData(error_code=call.broker.code(_error_of_only_member(response)))
    return LeaveGroupResponseData(
        error_code=call.broker.code(response.error),
        members=[
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=call.broker.code(error),
            )
            for member, error in response.members
        ],
    )


def _members(call: Call[LeaveGroupRequestData]) -> tuple[LeavingMember, ...]:
    if call.version < SEVERAL_MEMBERS_SINCE:
        return (LeavingMember(call.request.member_id),)
    return tuple(LeavingMember(member.member_id, member.group_instance_id) for member in call.request.members)


def _error_of_only_member(response: LeaveGroupResponse) -> ErrorCode:
    return response.members[0][1] if response.members else response.error
