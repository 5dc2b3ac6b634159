"""How far a reassignment is, partition by partition, whatever tool executes it.

Agrees with kafka-reassign-partitions --verify: done is its "completed", in progress its "still in progress", all else its
"no active reassignment". A move to other replicas than those of the file, which it calls "in progress" too, differs. Source: ReassignPartitionsCommand.findPartitionReassignmentStates of Apache Kafka 4.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rackspan.plan.execution.observed import ObservedCluster
from rackspan.reassign import PartitionReassignment, ReassignmentPlan


class VerifiedState(StrEnum):
    DONE = "done"
    IN_PROGRESS = "in progress"
    NOT_STARTED = "not started"
    """On the replicas that the plan replaces; only a plan with its originals shows it."""
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class VerifiedPartition:
    """`reason`: what the cluster has instead; None where it is as planned."""

    reassignment: PartitionReassignment
    state: VerifiedState
    reason: str | None = None


def verify(plan: ReassignmentPlan, cluster: ObservedCluster) -> list[VerifiedPartition]:
    """In the order of topic and partition."""
    partitions = sorted(plan.partitions(), key=lambda partition: partition.topic_partition)
    return [VerifiedPartition(partition, *_state(plan, partition, cluster)) for partition in partitions]


def _state(
    plan: ReassignmentPlan, partition: PartitionReassignment, cluster: ObservedCluster
) -> tuple[VerifiedState, str | None]:
    if partition.topic_partition in cluster.in_flight:
        target = cluster.in_flight[partition.topic_partition].target
        if set(target) == set(partition.replicas):
            return VerifiedState.IN_PROGRESS, None
        return VerifiedState.DIFFERS, f"moves to {','.join(map(str, target))}"
    replicas = cluster.replicas.get(partition.topic_partition)
    if replicas is None:
        return VerifiedState.DIFFERS, "it is not in the cluster"
    if _is_another_topic(plan, partition.topic, cluster):
        return VerifiedState.DIFFERS, "its topic was deleted and created again"
    if replicas == partition.replicas:
        return VerifiedState.DONE, None
    at = ",".join(map(str, replicas))
    return (
        VerifiedState.NOT_STARTED if replicas == partition.undo else VerifiedState.DIFFERS
    ), f"its replicas are {at}"


def _is_another_topic(plan: ReassignmentPlan, topic: str, cluster: ObservedCluster) -> bool:
    planned, current = plan.topic_ids.get(topic), cluster.topic_ids.get(topic)
    return planned is not None and current is not None and planned != current


def all_done(verified: Sequence[VerifiedPartition]) -> bool:
    return all(partition.state is VerifiedState.DONE for partition in verified)


def counted(verified: Sequence[VerifiedPartition]) -> Iterator[tuple[VerifiedState, int]]:
    for state in VerifiedState:
        yield state, sum(partition.state is state for partition in verified)
