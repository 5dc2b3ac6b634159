"""AlterPartitionReassignments (key 45): starting reassignments, and cancelling them (KIP-455).

Errors as in changes.py. Both may be sent twice: what is under way already stays, what is over is ignored.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from rackspan.apply.requests import patience_ms, response_of
from rackspan.client.cluster import ClusterConnection
from rackspan.client.errors import change_failed, error_response, message_of
from rackspan.client.requests import batches, by_topic
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.reassignments import (
    AlterPartitionReassignmentsRequestData,
    AlterPartitionReassignmentsRequestReassignablePartition,
    AlterPartitionReassignmentsResponseData,
    ElectLeadersRequestData,
    ElectLeadersRequestTopicPartitions,
    ElectLeadersResponseData,
    PartitionResult,
    ReassignablePartitionResponse,
    ReassignableTopic,
)

_Result = (
    ElectLeadersResponseData | PartitionResult | AlterPartitionReassignmentsResponseData | ReassignablePartitionResponse
)

_AS_REQUIRED: Final = (ErrorCode.NONE, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
_ELECTED: Final = (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)

RIGHT = "Alter on Cluster"

ELECTION_BATCH = 1_000
"""Partitions in one request, as large a batch as a controller writes at once without delay."""

REFUSED_NAMED = 3
"""Partitions that an error names before it counts the rest."""

_PREFERRED = 0
"""ElectLeaders' type of election; 1 is unclean."""


async def elect_preferred_leaders(connection: ClusterConnection, partitions: Sequence[TopicPartition]) -> None:
    """ElectLeaders (key 43): each partition is led by its first replica. One that cannot lead now is passed over."""
    for batch in batches(partitions, ELECTION_BATCH):
        request = ElectLeadersRequestData(
            election_type=_PREFERRED,
            topic_partitions=[
                ElectLeadersRequestTopicPartitions(topic=name, partitions=ids) for name, ids in by_topic(batch).items()
            ],
            timeout=patience_ms(connection),
        )
        what = "preferred leaders were not elected"
        response: ElectLeadersResponseData = await response_of(
            connection.call_controller(ApiKey.ELECT_LEADERS, request), what, RIGHT
        )
        _refuse(what, response)
        for topic in response.replica_election_results:
            for elected in topic.partition_result:
                if elected.error_code not in _ELECTED:
                    _refuse(f"the preferred leader of {topic.topic}-{elected.partition_id} was not elected", elected)


async def alter(connection: ClusterConnection, targets: Mapping[TopicPartition, tuple[int, ...] | None]) -> None:
    """AlterPartitionReassignments (key 45): each partition gets these replicas, or with None those that it had before."""
    request = AlterPartitionReassignmentsRequestData(timeout=patience_ms(connection), topics=_topics(targets))
    what = "no partition was reassigned"
    response: AlterPartitionReassignmentsResponseData = await response_of(
        connection.call_controller(ApiKey.ALTER_PARTITION_REASSIGNMENTS, request), what, RIGHT
    )
    _refuse(what, response)
    refused = [
        (_not_done(name, targets[name]), result)
        for topic in response.responses
        for result in topic.partitions
        for name in [TopicPartition(topic.name, result.partition_index)]
        if result.error_code not in _AS_REQUIRED
    ]
    if refused:
        # The others of the request are carried out: the first that are not are named, and the others counted.
        *others, (what, last) = refused[:REFUSED_NAMED]
        words = [f"{name}: {message_of(error_response(result))}" for name, result in others]
        more = f"{len(refused) - REFUSED_NAMED} more were refused; " if len(refused) > REFUSED_NAMED else ""
        _refuse("; ".join([*words, f"{more}{what}"]), last)


def _not_done(name: TopicPartition, replicas: tuple[int, ...] | None) -> str:
    done = "cancelled" if replicas is None else f"reassigned to {','.join(map(str, replicas))}"
    return f"{name} was not {done}"


def _topics(targets: Mapping[TopicPartition, tuple[int, ...] | None]) -> list[ReassignableTopic]:
    return [
        ReassignableTopic(
            name=name,
            partitions=[
                AlterPartitionReassignmentsRequestReassignablePartition(
                    partition_index=number, replicas=targets[TopicPartition(name, number)]
                )
                for number in numbers
            ],
        )
        for name, numbers in by_topic(targets).items()
    ]


def _refuse(what: str, response: _Result) -> None:
    if response.error_code not in _AS_REQUIRED:
        raise change_failed(what, RIGHT, error_response(response))
