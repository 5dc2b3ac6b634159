"""ListGroups (key 16), versions 0-5: the groups this broker coordinates. By state from v4, by type from v5."""

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.groups.queries import GROUP_TYPE


def handle(call: Call) -> Body:
    found = call.broker.groups.list_groups(call.body.get("states_filter", ()), call.body.get("types_filter", ()))
    return {
        "groups": [
            {
                "group_id": group.group_id,
                "protocol_type": group.protocol_type,
                "group_state": group.state,
                "group_type": GROUP_TYPE,
            }
            for group in found
        ]
    }
