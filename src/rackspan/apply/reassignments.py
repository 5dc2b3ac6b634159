"""AlterPartitionReassignments (key 45): starting reassignments, and cancelling them (KIP-455).

Errors as in changes.py. Both may be sent twice: what is under way already stays, what is over is ignored.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kafka.errors import (
    ElectionNotNeededError,
    NoError,
    NoReassignmentInProgressError,
    PreferredLeaderNotAvailableError,
    for_code,
)
from kafka.protocol.admin import AlterPartitionReassignmentsRequest, ElectLeadersRequest

from rackspan.apply.refusals import change_failed
from rackspan.apply.requests import batches, patience_ms, response_of, send_to_controller
from rackspan.model.ids import TopicPartition
from rackspan.sources.live.connection import ClusterConnection

RIGHT = "Alter on Cluster"

ELECTION_BATCH = 1_000
"""Partitions in one request, as large a batch as a controller writes at once without delay."""

_PREFERRED = 0
"""ElectLeaders' type of election; 1 is unclean."""


def start_moves(connection: ClusterConnection, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None:
    """Each partition gets these replicas, preferred leader first. Kafka may take some and refuse others: the error
    names the first that it refused."""
    connection.run(_alter, connection, targets)


def cancel_moves(connection: ClusterConnection, partitions: Sequence[TopicPartition]) -> None:
    """Each partition gets back the replicas that it had before."""
    connection.run(_alter, connection, dict.fromkeys(partitions))


def elect_preferred_leaders(connection: ClusterConnection, partitions: Sequence[TopicPartition]) -> None:
    """ElectLeaders (key 43): each partition is led by its first replica. One that cannot lead now is passed over."""
    connection.run(_elect, connection, partitions)


async def _elect(connection: ClusterConnection, partitions: Sequence[TopicPartition]) -> None:
    for batch in batches(partitions, ELECTION_BATCH):
        topics: dict[str, list[int]] = {}
        for name, partition in batch:
            topics.setdefault(name, []).append(partition)
        listed = [ElectLeadersRequest.TopicPartitions(topic=name, partitions=ids) for name, ids in topics.items()]
        request = ElectLeadersRequest(
            election_type=_PREFERRED, topic_partitions=listed, timeout_ms=patience_ms(connection)
        )
        what = "preferred leaders were not elected"
        response = await response_of(send_to_controller(connection, request), what, RIGHT)
        _refuse(what, response)
        for topic in response.replica_election_results:
            for one in topic.partition_result:
                if for_code(one.error_code) not in (NoError, ElectionNotNeededError, PreferredLeaderNotAvailableError):
                    _refuse(f"the preferred leader of {topic.topic}-{one.partition_id} was not elected", one)


async def _alter(connection: ClusterConnection, targets: Mapping[TopicPartition, tuple[int, ...] | None]) -> None:
    request = AlterPartitionReassignmentsRequest(timeout_ms=patience_ms(connection), topics=list(_topics(targets)))
    response = await response_of(send_to_controller(connection, request), "no partition was reassigned", RIGHT)
    _refuse("no partition was reassigned", response)
    for topic in response.responses:
        for one in topic.partitions:
            topic_partition = TopicPartition(topic.name, one.partition_index)
            replicas = targets[topic_partition]
            done = "cancelled" if replicas is None else f"reassigned to {','.join(map(str, replicas))}"
            _refuse(f"{topic_partition} was not {done}", one)


def _topics(targets: Mapping[TopicPartition, tuple[int, ...] | None]) -> Sequence[Any]:
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    partitions: dict[str, list[Any]] = {}
    for (name, partition), replicas in targets.items():
        listed = None if replicas is None else list(replicas)
        entry = topic.ReassignablePartition(partition_index=partition, replicas=listed)
        partitions.setdefault(name, []).append(entry)
    return [topic(name=name, partitions=entries) for name, entries in partitions.items()]


def _refuse(what: str, response: Any) -> None:
    kind = for_code(response.error_code)
    if kind not in (NoError, NoReassignmentInProgressError):
        raise change_failed(what, RIGHT, kind(response.error_message))
