"""DescribeCluster (key 60), versions 0-2. Fenced brokers are told of in v2, to who asks for them."""

from typing import Any, Final

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.errors import KafkaError

BROKERS: Final = 1
"""The endpoint type; controllers have no listener for clients here."""


def handle(call: Call) -> Body:
    if call.body.get("endpoint_type", BROKERS) != BROKERS:
        return {
            "error_code": KafkaError.MISMATCHED_ENDPOINT_TYPE,
            "error_message": "this is a broker; controllers have no listener for clients",
        }
    fenced_too = call.body.get("include_fenced_brokers", False)
    return {
        "endpoint_type": BROKERS,
        "cluster_id": call.broker.cluster_id,
        "controller_id": call.broker.id,
        "brokers": [
            _broker(one) for _, one in sorted(call.broker.image.brokers.items()) if fenced_too or not one.fenced
        ],
    }


def _broker(one: Any) -> dict[str, Any]:
    return {"broker_id": one.id, "host": one.host, "port": one.port, "rack": one.rack, "is_fenced": one.fenced}
