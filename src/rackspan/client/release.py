"""Whether a cluster's metadata.version is one that rackspan is tested on."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from rackspan.client.errors import FAILURES
from rackspan.wire.apis import METADATA_LEVELS, METADATA_VERSION, TESTED_UP_TO, ApiKey
from rackspan.wire.messages.api_versions import ApiVersionsRequestData, ApiVersionsResponseData
from rackspan.wire.messages.base import WireStruct

_NAMED: Final = ApiVersionsRequestData(client_software_name="rackspan", client_software_version="1")
"""From version 3 on, whose response has the features, a client has to name its software (KIP-511)."""


async def release_warnings(call: Callable[[ApiKey, WireStruct], Awaitable[Any]]) -> tuple[str, ...]:
    """One sentence about a metadata.version that is newer than those tested, else none; none either if it is not reported."""
    with suppress(*FAILURES):
        response: ApiVersionsResponseData = await call(ApiKey.API_VERSIONS, _NAMED)
        for feature in response.finalized_features:
            if feature.name == METADATA_VERSION and feature.max_version_level not in METADATA_LEVELS:
                return (
                    f"{METADATA_VERSION} of the cluster is {feature.max_version_level}, and rackspan is tested up to "
                    f"{METADATA_LEVELS[-1]} (Kafka {TESTED_UP_TO}): what a later Kafka has changed is not known here",
                )
    return ()
