"""DeleteGroups (key 42), versions 0-3: deletes groups without members, and their committed offsets.

The error message of v3 is for streams groups, whose topology may be kept elsewhere (KIP-1331).
"""

from rackspan.cluster.context import Call
from rackspan.cluster.core.groups.requests import DeleteGroup
from rackspan.cluster.handlers.common import group_response
from rackspan.wire.messages.groups import DeletableGroupResult, DeleteGroupsRequestData, DeleteGroupsResponseData


async def handle(call: Call[DeleteGroupsRequestData]) -> DeleteGroupsResponseData:
    # Each group once, also where the request repeats it.
    group_ids = dict.fromkeys(call.request.groups_names)
    return DeleteGroupsResponseData(results=[await _delete(call, group_id) for group_id in group_ids])


async def _delete(call: Call[object], group_id: str) -> DeletableGroupResult:
    response = await group_response(call, DeleteGroup(group_id))
    return DeletableGroupResult(group_id=group_id, error_code=call.broker.code(response.error))
