"""ListGroups (key 16), versions 0-5: the groups this broker coordinates. By state from v4 on, by type from v5 on."""

from rackspan.cluster.context import Call
from rackspan.cluster.core.groups.coordinator import GROUP_TYPE
from rackspan.wire.messages.groups import (
    ListGroupsRequestData,
    ListGroupsResponseData,
    ListGroupsResponseListedGroup,
)


def handle(call: Call[ListGroupsRequestData]) -> ListGroupsResponseData:
    groups = call.broker.groups.list_groups(call.request.states_filter, call.request.types_filter)
    return ListGroupsResponseData(
        groups=[
            ListGroupsResponseListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=GROUP_TYPE,
            )
            for group in groups
        ]
    )
