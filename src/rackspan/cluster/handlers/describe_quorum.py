"""DescribeQuorum (key 55), versions 0-2 (KIP-595, KIP-836, KIP-853): one controller, which votes alone; brokers observe.

The controller answers, whichever broker is asked. How far a broker has read is as fresh as its last heartbeat.
"""

from collections.abc import Sequence
from typing import Any, Final

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.messages import DescribeQuorum, DescribeQuorumResponse, Observer
from rackspan.cluster.host.controller_host import CONTROLLER_ID

METADATA_LOG: Final = "__cluster_metadata"
TIMEOUT_MS: Final = 30_000
"""The request carries none of its own."""

LEADER_EPOCH: Final = 1
"""Of a controller that is never lost."""
UNKNOWN_TIME: Final = -1


async def handle(call: Call) -> Body:
    asked = call.body["topics"]
    if [(one["topic_name"], _numbers(one)) for one in asked] != [(METADATA_LOG, [0])]:
        return {"topics": [_refused(one) for one in asked]}
    state = await call.broker.requests.controller_response(DescribeQuorum, TIMEOUT_MS, None)
    if state is None:
        return {"error_code": KafkaError.REQUEST_TIMED_OUT}
    return {
        "topics": [{"topic_name": METADATA_LOG, "partitions": [_partition(state)]}],
        # It has no listener that anybody but the brokers of this process could reach.
        "nodes": [{"node_id": CONTROLLER_ID, "listeners": []}],
    }


def _numbers(topic: dict[str, Any]) -> list[int]:
    return [one["partition_index"] for one in topic["partitions"]]


def _refused(topic: dict[str, Any]) -> dict[str, Any]:
    error = KafkaError.UNKNOWN_TOPIC_OR_PARTITION
    return {
        "topic_name": topic["topic_name"],
        "partitions": [{"partition_index": number, "error_code": error} for number in _numbers(topic)],
    }


def _partition(state: DescribeQuorumResponse) -> dict[str, Any]:
    return {
        "partition_index": 0,
        "error_code": KafkaError.NONE,
        "leader_id": CONTROLLER_ID,
        "leader_epoch": LEADER_EPOCH,
        "high_watermark": state.offset,
        "current_voters": [_replica(CONTROLLER_ID, state.offset, state.now, state.now)],
        "observers": _observers(state),
    }


def _observers(state: DescribeQuorumResponse) -> Sequence[dict[str, Any]]:
    return [
        _replica(one.broker, one.offset, one.last_heartbeat_ms, _caught_up_at(state, one)) for one in state.observers
    ]


def _caught_up_at(state: DescribeQuorumResponse, observer: Observer) -> int:
    return observer.last_heartbeat_ms if observer.offset >= state.offset else UNKNOWN_TIME


def _replica(number: int, end_offset: int, fetched_at: int, caught_up_at: int) -> dict[str, Any]:
    return {
        "replica_id": number,
        "log_end_offset": end_offset,
        "last_fetch_timestamp": fetched_at,
        "last_caught_up_timestamp": caught_up_at,
    }
