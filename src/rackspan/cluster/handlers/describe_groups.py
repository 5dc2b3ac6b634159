"""DescribeGroups (key 15), versions 0-6. The state of an unknown group is Dead; from v6 on that is an error too (KIP-1043)."""

from typing import Final

from rackspan.cluster.context import Call
from rackspan.cluster.core.groups import GroupState
from rackspan.cluster.core.groups.requests import DescribeGroupResponse
from rackspan.cluster.handlers.common import GROUP_OPERATIONS, NOT_REQUESTED
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.groups import (
    DescribedGroupMember,
    DescribeGroupsRequestData,
    DescribeGroupsResponseData,
    DescribeGroupsResponseDescribedGroup,
)

NOT_FOUND_SINCE: Final = 6


def handle(call: Call[DescribeGroupsRequestData]) -> DescribeGroupsResponseData:
    groups = map(call.broker.groups.describe, call.request.groups)
    return DescribeGroupsResponseData(groups=[_group(call, group) for group in groups])


def _group(call: Call[DescribeGroupsRequestData], group: DescribeGroupResponse) -> DescribeGroupsResponseDescribedGroup:
    unknown = call.version >= NOT_FOUND_SINCE and group.state == GroupState.DEAD.value
    error = ErrorCode.GROUP_ID_NOT_FOUND if unknown else group.error
    authorized = call.request.include_authorized_operations and error is ErrorCode.NONE
    return DescribeGroupsResponseDescribedGroup(
        error_code=call.broker.code(error),
        error_message=f"Group {group.group_id} not found." if unknown else None,
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol,
        authorized_operations=GROUP_OPERATIONS if authorized else NOT_REQUESTED,
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in group.members
        ],
    )
