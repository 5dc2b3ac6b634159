"""DescribeCluster (key 60), versions 0-2. From v2 on a client may request fenced brokers too."""

from typing import Final

from rackspan.cluster.context import Call
from rackspan.cluster.core.metadata import BrokerImage
from rackspan.cluster.handlers.common import CLUSTER_OPERATIONS, NOT_REQUESTED
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.brokers import (
    DescribeClusterBroker,
    DescribeClusterRequestData,
    DescribeClusterResponseData,
)

BROKERS: Final = 1
"""The endpoint type; controllers have no listener for clients here."""


def handle(call: Call[DescribeClusterRequestData]) -> DescribeClusterResponseData:
    if call.request.endpoint_type != BROKERS:
        return DescribeClusterResponseData(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="this is a broker; controllers have no listener for clients",
        )
    brokers = sorted(call.broker.image.brokers.items())
    return DescribeClusterResponseData(
        endpoint_type=BROKERS,
        cluster_id=call.broker.cluster_id,
        controller_id=call.broker.id,
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if call.request.include_cluster_authorized_operations
        else NOT_REQUESTED,
        brokers=[_broker(broker) for _, broker in brokers if call.request.include_fenced_brokers or not broker.fenced],
    )


def _broker(broker: BrokerImage) -> DescribeClusterBroker:
    return DescribeClusterBroker(
        broker_id=broker.id, host=broker.host, port=broker.port, rack=broker.rack, is_fenced=broker.fenced
    )
