"""ListConfigResources (key 74), versions 0-1: what has configs, by kind (KIP-1142). Version 0 knows client metrics alone,
of which there are none here.
"""

from collections.abc import Iterable
from typing import Final

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.errors import KafkaError

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32
KINDS: Final = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


def handle(call: Call) -> Body:
    wanted = call.body.get("resource_types", (CLIENT_METRICS,)) or KINDS
    if not set(wanted) <= set(KINDS):
        return {"error_code": KafkaError.UNSUPPORTED_VERSION, "config_resources": []}
    return {
        "config_resources": [
            {"resource_name": name, "resource_type": kind}
            for kind in sorted(set(wanted))
            for name in _names(call, kind)
        ]
    }


def _names(call: Call, kind: int) -> Iterable[str]:
    """Groups and client metrics have no configs of their own here."""
    image = call.broker.image
    if kind == TOPIC:
        return sorted(image.topics)
    if kind in (BROKER, BROKER_LOGGER):
        return [str(broker) for broker, one in sorted(image.brokers.items()) if not one.fenced]
    return ()
