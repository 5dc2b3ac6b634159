"""IncrementalAlterConfigs (key 44), versions 0-1: sets, deletes, appends to and subtracts from single keys (KIP-339)."""

from rackspan.cluster.context import Call
from rackspan.cluster.core.admin_messages import AlterResource, ConfigOp
from rackspan.cluster.handlers.common import alter_resources
from rackspan.wire.messages.configs import (
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsRequestData,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponseData,
)


async def handle(call: Call[IncrementalAlterConfigsRequestData]) -> IncrementalAlterConfigsResponseData:
    resources = [_changes(resource) for resource in call.request.resources]
    altered = await alter_resources(call, resources, replace=False, validate_only=call.request.validate_only)
    return IncrementalAlterConfigsResponseData(
        responses=[
            IncrementalAlterConfigsResponseAlterConfigsResourceResponse(
                error_code=call.broker.code(response.error),
                error_message=response.message,
                resource_type=resource.resource_type,
                resource_name=resource.name,
            )
            for resource, response in altered
        ]
    )


def _changes(resource: IncrementalAlterConfigsRequestAlterConfigsResource) -> AlterResource:
    ops = tuple(ConfigOp(config.name, config.config_operation, config.value) for config in resource.configs)
    return AlterResource(resource.resource_type, resource.resource_name, ops)
