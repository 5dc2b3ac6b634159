"""FindCoordinator (key 10), versions 0-6: the coordinator of a group or a transactional id. Several keys from v4 on.

The first such request causes the coordinators' topic to be created, as in Kafka.
"""

from typing import Final

from rackspan.cluster.context import Call
from rackspan.cluster.core.coordination import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, partition_for
from rackspan.cluster.handlers.common import internal_partition, partition_count
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.groups import (
    FindCoordinatorRequestData,
    FindCoordinatorResponseCoordinator,
    FindCoordinatorResponseData,
)

SEVERAL_KEYS_SINCE: Final = 4
TOPICS: Final = {0: OFFSETS_TOPIC, 1: TRANSACTIONS_TOPIC}
"""By key type."""


async def handle(call: Call[FindCoordinatorRequestData]) -> FindCoordinatorResponseData:
    if call.version >= SEVERAL_KEYS_SINCE:
        keys = call.request.coordinator_keys
        return FindCoordinatorResponseData(coordinators=[await _coordinator(call, key) for key in keys])
    found = await _coordinator(call, call.request.key)
    return FindCoordinatorResponseData(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


async def _coordinator(call: Call[FindCoordinatorRequestData], key: str) -> FindCoordinatorResponseCoordinator:
    key_type = call.request.key_type
    topic = TOPICS.get(key_type)
    if topic is None:
        return _error(key, ErrorCode.INVALID_REQUEST, f"coordinators of type {key_type} are not known here")
    if topic == OFFSETS_TOPIC:
        call.broker.traffic.add_group_client(key, call.header.client_id)
    partition = partition_for(key, partition_count(topic, call.broker.settings.extra_configs))
    state = await internal_partition(call.broker, topic, partition)
    leaders = call.broker.endpoints([state.leader]) if state is not None else []
    if not leaders:
        return _error(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic}-{partition} has no leader; ask again")
    return FindCoordinatorResponseCoordinator(
        key=key, node_id=leaders[0].id, host=leaders[0].host, port=leaders[0].port
    )


def _error(key: str, error: ErrorCode, message: str) -> FindCoordinatorResponseCoordinator:
    return FindCoordinatorResponseCoordinator(
        key=key, error_code=error, error_message=message, node_id=-1, host="", port=-1
    )
