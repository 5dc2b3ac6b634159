"""AlterConfigs (key 33), versions 0-2: sets the named configs and deletes all others. Deprecated by Kafka, still sent by old tools."""

from typing import Final

from rackspan.cluster.context import Call
from rackspan.cluster.core.admin_messages import AlterResource, ConfigOp
from rackspan.cluster.handlers.common import alter_resources
from rackspan.wire.messages.configs import (
    AlterConfigsRequestData,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponseData,
)

SET: Final = 0


async def handle(call: Call[AlterConfigsRequestData]) -> AlterConfigsResponseData:
    resources = [_changes(resource) for resource in call.request.resources]
    altered = await alter_resources(call, resources, replace=True, validate_only=call.request.validate_only)
    return AlterConfigsResponseData(
        responses=[
            AlterConfigsResourceResponse(
                error_code=call.broker.code(response.error),
                error_message=response.message,
                resource_type=resource.resource_type,
                resource_name=resource.name,
            )
            for resource, response in altered
        ]
    )


def _changes(resource: AlterConfigsResource) -> AlterResource:
    ops = tuple(ConfigOp(config.name, SET, config.value) for config in resource.configs)
    return AlterResource(resource.resource_type, resource.resource_name, ops)
