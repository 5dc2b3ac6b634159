"""Config changes sent to the controller for AlterConfigs and IncrementalAlterConfigs."""

from collections.abc import Iterator, Sequence

from rackspan.cluster.context import Call
from rackspan.cluster.core.messages import AdminResponse, AlterConfigs, AlterResource
from rackspan.cluster.handlers.common.admin_responses import ADMIN_TIMEOUT_MS, timeout_responses


async def alter_resources(
    call: Call[object], resources: Sequence[AlterResource], *, replace: bool, validate_only: bool
) -> Iterator[tuple[AlterResource, AdminResponse]]:
    """Each resource with the controller's response. `replace` deletes the configs that a resource does not name."""
    responses = await call.broker.requests.controller_response(
        lambda correlation_id: AlterConfigs(correlation_id, tuple(resources), validate_only, replace),
        ADMIN_TIMEOUT_MS,
        timeout_responses(resources, AdminResponse),
    )
    if not validate_only:
        await call.broker.metadata_updates.wait_until_caught_up(ADMIN_TIMEOUT_MS)
    return zip(resources, responses, strict=True)
