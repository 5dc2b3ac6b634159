"""ListConfigResources (key 74), versions 0-1: what has configs, by type (KIP-1142).

Version 0 lists client metrics alone, of which there are none here.
"""

from collections.abc import Iterable
from typing import Final

from rackspan.cluster.context import Call
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.configs import (
    ListConfigResourcesRequestData,
    ListConfigResourcesResponseConfigResource,
    ListConfigResourcesResponseData,
)

RESOURCE_TYPES_SINCE: Final = 1


def handle(call: Call[ListConfigResourcesRequestData]) -> ListConfigResourcesResponseData:
    resource_types: set[int] = {ConfigResourceType.CLIENT_METRICS}
    if call.version >= RESOURCE_TYPES_SINCE:
        resource_types = set(call.request.resource_types or ConfigResourceType)
    if not resource_types <= set(ConfigResourceType):
        return ListConfigResourcesResponseData(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponseData(
        config_resources=[
            ListConfigResourcesResponseConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type in sorted(resource_types)
            for name in _names(call, resource_type)
        ]
    )


def _names(call: Call[object], resource_type: int) -> Iterable[str]:
    """Client metrics have no configs of their own here."""
    image = call.broker.image
    match resource_type:
        case ConfigResourceType.TOPIC:
            return sorted(image.topics)
        case ConfigResourceType.BROKER | ConfigResourceType.BROKER_LOGGER:
            return [str(broker) for broker, state in image.brokers.items() if not state.fenced]
        case ConfigResourceType.GROUP:
            # As Kafka 4.3: a group whose last value was deleted is no longer listed.
            return sorted(
                resource.name
                for resource, values in image.configs.items()
                if resource.type is ConfigResourceType.GROUP and values
            )
        case _:
            return ()
