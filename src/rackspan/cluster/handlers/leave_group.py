"""LeaveGroup (key 13), versions 0-5. One member until v2, whose error is the whole answer's; several from v3 (KIP-345)."""

from typing import Final

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups.requests import LeaveGroup, LeaveGroupResponse, LeavingMember
from rackspan.cluster.handlers.common.group_requests import group_response

SEVERAL_MEMBERS: Final = 3


async def handle(call: Call) -> Body:
    answer: LeaveGroupResponse = await group_response(call, LeaveGroup(call.body["group_id"], _members(call)))
    if call.version < SEVERAL_MEMBERS:
        return {"error_code": call.broker.code(_the_ones(answer))}
    return {
        "error_code": call.broker.code(answer.error),
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "error_code": call.broker.code(error),
            }
            for member, error in answer.members
        ],
    }


def _members(call: Call) -> tuple[LeavingMember, ...]:
    if call.version < SEVERAL_MEMBERS:
        return (LeavingMember(call.body["member_id"]),)
    return tuple(LeavingMember(one["member_id"], one["group_instance_id"]) for one in call.body["members"])


def _the_ones(answer: LeaveGroupResponse) -> KafkaError:
    if answer.error is KafkaError.NONE and answer.members:
        return answer.members[0][1]
    return answer.error
