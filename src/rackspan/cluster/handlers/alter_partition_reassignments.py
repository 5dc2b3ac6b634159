"""AlterPartitionReassignments (key 45), versions 0-1: new replicas for partitions, or null to go back (KIP-455)."""

from typing import Any

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.messages import AdminResponse, AlterPartitionReassignments, ReassignablePartition
from rackspan.cluster.handlers.common.admin_responses import timed_out
from rackspan.cluster.handlers.common.topics import by_topic, named
from rackspan.model.ids import TopicPartition


async def handle(call: Call) -> Body:
    asked = tuple(
        ReassignablePartition(TopicPartition(topic["name"], one["partition_index"]), one["replicas"])
        for topic in call.body["topics"]
        for one in topic["partitions"]
    )
    change_factor = call.body.get("allow_replication_factor_change", True)
    results: tuple[AdminResponse, ...] = await call.broker.requests.controller_response(
        lambda correlation_id: AlterPartitionReassignments(correlation_id, asked, change_factor),
        call.body["timeout"],
        timed_out((one.partition for one in asked), AdminResponse),
    )
    await call.broker.metadata_updates.wait_until_caught_up(call.body["timeout"])
    return {
        "allow_replication_factor_change": change_factor,
        "responses": [
            {"name": topic, "partitions": [_altered(call, one) for one in listed]}
            for topic, listed in by_topic(results, lambda one: named(one).topic).items()
        ],
    }


def _altered(call: Call, one: AdminResponse) -> dict[str, Any]:
    return {
        "partition_index": named(one).partition,
        "error_code": call.broker.code(one.error),
        "error_message": one.message,
    }
