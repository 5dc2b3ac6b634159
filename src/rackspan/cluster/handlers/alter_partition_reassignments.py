"""AlterPartitionReassignments (key 45), versions 0-1: new replicas for partitions, or null to cancel a reassignment (KIP-455)."""

from rackspan.cluster.context import Call
from rackspan.cluster.core.admin_messages import AdminResponse, AlterPartitionReassignments, ReassignablePartition
from rackspan.cluster.handlers.common import by_topic, partition_of, timeout_responses
from rackspan.model.ids import BrokerId, TopicPartition
from rackspan.wire.messages.reassignments import (
    AlterPartitionReassignmentsRequestData,
    AlterPartitionReassignmentsRequestReassignablePartition,
    AlterPartitionReassignmentsResponseData,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


async def handle(call: Call[AlterPartitionReassignmentsRequestData]) -> AlterPartitionReassignmentsResponseData:
    request = call.request
    reassignments = tuple(
        _reassignment(topic.name, partition) for topic in request.topics for partition in topic.partitions
    )
    responses: tuple[AdminResponse, ...] = await call.broker.requests.controller_response(
        lambda correlation_id: AlterPartitionReassignments(
            correlation_id, reassignments, request.allow_replication_factor_change
        ),
        request.timeout,
        timeout_responses((reassignment.partition for reassignment in reassignments), AdminResponse),
    )
    await call.broker.metadata_updates.wait_until_caught_up(request.timeout)
    return AlterPartitionReassignmentsResponseData(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=[
            ReassignableTopicResponse(
                name=topic,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=partition_of(response).partition,
                        error_code=call.broker.code(response.error),
                        error_message=response.message,
                    )
                    for response in of_topic
                ],
            )
            for topic, of_topic in by_topic(responses, partition_of).items()
        ],
    )


def _reassignment(
    topic: str, partition: AlterPartitionReassignmentsRequestReassignablePartition
) -> ReassignablePartition:
    replicas = None if partition.replicas is None else tuple(map(BrokerId, partition.replicas))
    return ReassignablePartition(TopicPartition(topic, partition.partition_index), replicas)
