"""DeleteGroups (key 42), versions 0-2: groups without members, and all they have committed."""

from typing import Any

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.groups.requests import DeleteGroup
from rackspan.cluster.handlers.common.group_requests import group_response


async def handle(call: Call) -> Body:
    return {"results": [await _deleted(call, group_id) for group_id in dict.fromkeys(call.body["groups_names"])]}


async def _deleted(call: Call, group_id: str) -> dict[str, Any]:
    answer = await group_response(call, DeleteGroup(group_id))
    return {"group_id": group_id, "error_code": call.broker.code(answer.error)}
