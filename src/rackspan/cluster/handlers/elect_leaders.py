"""ElectLeaders (key 43), versions 0-2. Unclean election arrives in v1 (KIP-460)."""

from collections.abc import Iterable
from typing import Final

from rackspan.cluster.context import Call
from rackspan.cluster.core.admin_messages import AdminResponse, ElectLeaders
from rackspan.cluster.handlers.common import by_topic, partition_of, timeout_responses
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from rackspan.wire.messages.reassignments import (
    ElectLeadersRequestData,
    ElectLeadersResponseData,
    PartitionResult,
    ReplicaElectionResult,
)

PREFERRED: Final = 0
UNCLEAN: Final = 1


async def handle(call: Call[ElectLeadersRequestData]) -> ElectLeadersResponseData:
    request = call.request
    topics = request.topic_partitions
    partitions = None if topics is None else tuple(
        TopicPartition(topic.topic, number) for topic in topics for number in topic.partitions
    )  # fmt: skip
    if request.election_type not in (PREFERRED, UNCLEAN):
        return _unknown_election_type(call, partitions or ())
    responses: tuple[AdminResponse, ...] = await call.broker.requests.controller_response(
        lambda correlation_id: ElectLeaders(correlation_id, partitions, request.election_type == UNCLEAN),
        request.timeout,
        timeout_responses(partitions or (), AdminResponse),
    )
    await call.broker.metadata_updates.wait_until_caught_up(request.timeout)
    if partitions is None:
        # As Kafka does: a request for all partitions gets no result for those that need no election.
        responses = tuple(each for each in responses if each.error is not ErrorCode.ELECTION_NOT_NEEDED)
    return ElectLeadersResponseData(replica_election_results=_results(call, responses))


def _unknown_election_type(
    call: Call[ElectLeadersRequestData], partitions: Iterable[TopicPartition]
) -> ElectLeadersResponseData:
    message = f"Unknown election type {call.request.election_type}"
    responses = [AdminResponse(partition, ErrorCode.INVALID_REQUEST, message) for partition in partitions]
    return ElectLeadersResponseData(
        error_code=ErrorCode.INVALID_REQUEST, replica_election_results=_results(call, responses)
    )


def _results(call: Call[object], responses: Iterable[AdminResponse]) -> list[ReplicaElectionResult]:
    return [
        ReplicaElectionResult(
            topic=topic,
            partition_result=[
                PartitionResult(
                    partition_id=partition_of(response).partition,
                    error_code=call.broker.code(response.error),
                    error_message=response.message,
                )
                for response in of_topic
            ],
        )
        for topic, of_topic in by_topic(responses, partition_of).items()
    ]
