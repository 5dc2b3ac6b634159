"""CreatePartitions (key 37), versions 0-3: raises a topic's partition count. The placer or the request assigns the new partitions."""

from rackspan.cluster.context import Call
from rackspan.cluster.core.admin_messages import AdminResponse, CreatePartitions, MorePartitions
from rackspan.cluster.handlers.common import timeout_responses
from rackspan.model.ids import BrokerId
from rackspan.wire.messages.topics import (
    CreatePartitionsRequestData,
    CreatePartitionsResponseData,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def handle(call: Call[CreatePartitionsRequestData]) -> CreatePartitionsResponseData:
    request = call.request
    topics = tuple(map(_more_partitions, request.topics))
    responses = await call.broker.requests.controller_response(
        lambda correlation_id: CreatePartitions(correlation_id, topics, request.validate_only),
        request.timeout,
        timeout_responses((topic.topic for topic in topics), AdminResponse),
    )
    if not request.validate_only:
        await call.broker.metadata_updates.wait_until_caught_up(request.timeout)
    return CreatePartitionsResponseData(
        results=[
            CreatePartitionsTopicResult(
                name=response.key, error_code=call.broker.code(response.error), error_message=response.message
            )
            for response in responses
        ]
    )


def _more_partitions(topic: CreatePartitionsTopic) -> MorePartitions:
    assignments = topic.assignments
    if assignments is None:
        return MorePartitions(topic.name, topic.count, None)
    replicas = tuple(tuple(map(BrokerId, assignment.broker_ids)) for assignment in assignments)
    return MorePartitions(topic.name, topic.count, replicas)
