"""FindCoordinator (key 10), versions 0-6: who coordinates a group or a transactional id. Several keys from v4.

The first to ask has the coordinators' topic made, as in Kafka.
"""

from typing import Any, Final

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.coordination import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, partition_for
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.handlers.common.topic_creation import internal_partition, partition_count

SEVERAL_KEYS: Final = 4
TOPICS: Final = {0: OFFSETS_TOPIC, 1: TRANSACTIONS_TOPIC}


async def handle(call: Call) -> Body:
    key_type = call.body.get("key_type", 0)
    if call.version >= SEVERAL_KEYS:
        return {"coordinators": [await _found(call, key, key_type) for key in call.body["coordinator_keys"]]}
    return await _found(call, call.body["key"], key_type)


async def _found(call: Call, key: str, key_type: int) -> Body:
    topic = TOPICS.get(key_type)
    if topic is None:
        return _nobody(key, KafkaError.INVALID_REQUEST, f"coordinators of type {key_type} are not known here")
    partition = partition_for(key, partition_count(topic, call.broker.settings.extra_configs))
    state = await internal_partition(call.broker, topic, partition)
    where = call.broker.endpoints([state.leader]) if state is not None else []
    if not where:
        return _nobody(key, KafkaError.COORDINATOR_NOT_AVAILABLE, f"{topic}-{partition} has no leader; ask again")
    return {"key": key, "error_code": KafkaError.NONE, "error_message": None, **_address(where[0])}


def _nobody(key: str, error: KafkaError, why: str) -> dict[str, Any]:
    return {"key": key, "error_code": error, "error_message": why, "node_id": -1, "host": "", "port": -1}


def _address(endpoint: dict[str, Any]) -> dict[str, Any]:
    return {name: endpoint[name] for name in ("node_id", "host", "port")}
