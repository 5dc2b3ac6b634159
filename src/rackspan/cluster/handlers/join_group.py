"""JoinGroup (key 11), versions 0-9. An id first from v4, static members from v5, skipping the assignment from v9."""

from typing import Final

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.groups.requests import JoinGroup, JoinGroupResponse, Protocol
from rackspan.cluster.handlers.common.group_requests import group_response

ID_FIRST: Final = 4
NULL_PROTOCOL: Final = 7
SKIP_ASSIGNMENT: Final = 9


async def handle(call: Call) -> Body:
    return _body(call, await group_response(call, _request(call)))


def _request(call: Call) -> JoinGroup:
    body = call.body
    session_ms = body["session_timeout"]
    return JoinGroup(
        group_id=body["group_id"],
        protocol_type=body["protocol_type"],
        protocols=tuple(Protocol(one["name"], bytes(one["metadata"])) for one in body["protocols"]),
        session_timeout_ms=session_ms,
        # Version 0 knew one timeout.
        rebalance_timeout_ms=body.get("rebalance_timeout", session_ms),
        member_id=body["member_id"],
        group_instance_id=body.get("group_instance_id"),
        client_id=call.header.client_id or "",
        client_host=f"/{call.client_host}",
        require_known_member_id=call.version >= ID_FIRST,
        can_skip_assignment=call.version >= SKIP_ASSIGNMENT,
    )


def _body(call: Call, answer: JoinGroupResponse) -> Body:
    nothing = None if call.version >= NULL_PROTOCOL else ""
    return {
        "error_code": call.broker.code(answer.error),
        "generation_id": answer.generation,
        "protocol_type": answer.protocol_type,
        "protocol_name": nothing if answer.protocol is None else answer.protocol,
        "leader": answer.leader,
        "skip_assignment": answer.skip_assignment,
        "member_id": answer.member_id,
        "members": [
            {"member_id": one.member_id, "group_instance_id": one.group_instance_id, "metadata": one.metadata}
            for one in answer.members
        ],
    }
