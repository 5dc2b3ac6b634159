"""DescribeGroups (key 15), versions 0-6. A group nobody knows is Dead; from v6 on that is an error too (KIP-1043)."""

from typing import Final

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups import GroupState
from rackspan.cluster.core.groups.requests import DescribedGroup

NOT_FOUND: Final = 6


def handle(call: Call) -> Body:
    return {"groups": [_group(call, call.broker.groups.describe(group_id)) for group_id in call.body["groups"]]}


def _group(call: Call, group: DescribedGroup) -> Body:
    unknown = call.version >= NOT_FOUND and group.state == GroupState.DEAD.value
    return {
        "error_code": call.broker.code(KafkaError.GROUP_ID_NOT_FOUND if unknown else group.error),
        "error_message": f"Group {group.group_id} not found." if unknown else None,
        "group_id": group.group_id,
        "group_state": group.state,
        "protocol_type": group.protocol_type,
        "protocol_data": group.protocol,
        "members": [
            {
                "member_id": one.member_id,
                "group_instance_id": one.group_instance_id,
                "client_id": one.client_id,
                "client_host": one.client_host,
                "member_metadata": one.metadata,
                "member_assignment": one.assignment,
            }
            for one in group.members
        ],
    }
