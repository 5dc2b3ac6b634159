"""What AlterConfigs and IncrementalAlterConfigs share."""

from collections.abc import Sequence

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.messages import AdminResponse, AlterConfigs, AlterResource
from rackspan.cluster.handlers.common.admin_responses import timed_out

TIMEOUT_MS = 30_000
"""These requests carry none of their own."""


async def alter(call: Call, resources: Sequence[AlterResource], *, replace: bool) -> Body:
    validate_only = call.body["validate_only"]
    results = await call.broker.requests.controller_response(
        lambda correlation_id: AlterConfigs(correlation_id, tuple(resources), validate_only, replace),
        TIMEOUT_MS,
        timed_out(resources, AdminResponse),
    )
    if not validate_only:
        await call.broker.metadata_updates.wait_until_caught_up(TIMEOUT_MS)
    return {
        "responses": [
            {
                "error_code": call.broker.code(result.error),
                "error_message": result.message,
                "resource_type": resource.resource_type,
                "resource_name": resource.name,
            }
            for resource, result in zip(resources, results, strict=True)
        ]
    }
