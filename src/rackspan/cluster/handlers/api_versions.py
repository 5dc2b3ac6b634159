"""ApiVersions (key 18), versions 0-5: the APIs and their versions. The cluster offers no features.

From v3 on a client must name its software and that software's version (KIP-511). From v5 on it may name the cluster and the
broker that it means to be connected to, both or neither, and has to start from its bootstrap servers again if they are others (KIP-1242).
"""

import re
from collections.abc import Mapping
from typing import Final

from rackspan.cluster.context import Call
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import NO_BROKER
from rackspan.wire.apis import SERVED, ApiKey
from rackspan.wire.messages.api_versions import ApiVersion, ApiVersionsRequestData, ApiVersionsResponseData

CLIENT_SOFTWARE_SINCE: Final = 3
CLIENT_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

LOWEST_ADVERTISED: Final[Mapping[ApiKey, int]] = {ApiKey.PRODUCE: 0}
"""librdkafka takes compression for unsupported unless Produce v0 is offered. Like Kafka 4, we then refuse v0 itself."""


def handle(call: Call[ApiVersionsRequestData]) -> ApiVersionsResponseData:
    software = (call.request.client_software_name, call.request.client_software_version)
    cluster_id, node_id = call.request.cluster_id, call.request.node_id
    names_both_or_neither = (cluster_id is None) == (node_id == NO_BROKER)
    is_named = call.version < CLIENT_SOFTWARE_SINCE or all(CLIENT_SOFTWARE.fullmatch(text) for text in software)
    if not names_both_or_neither or not is_named:
        return ApiVersionsResponseData(error_code=ErrorCode.INVALID_REQUEST)
    if cluster_id is not None and (cluster_id, node_id) != (call.broker.cluster_id, call.broker.id):
        return ApiVersionsResponseData(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    return _offered(ErrorCode.NONE)


def unsupported_version() -> ApiVersionsResponseData:
    """To a client that sends an unknown version of ApiVersions. It is written as version 0."""
    return _offered(ErrorCode.UNSUPPORTED_VERSION)


def _offered(error: ErrorCode) -> ApiVersionsResponseData:
    return ApiVersionsResponseData(
        error_code=error,
        api_keys=[
            ApiVersion(api_key=key, min_version=LOWEST_ADVERTISED.get(key, versions[0]), max_version=versions[-1])
            for key, versions in sorted(SERVED.items())
        ],
    )
