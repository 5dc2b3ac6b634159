"""Progress of a run, in steps, copies and bytes."""

from collections.abc import Mapping
from dataclasses import dataclass

from rackspan.model import TopicPartition
from rackspan.plan.execution.events import RunState
from rackspan.plan.execution.observed import ObservedCluster
from rackspan.reassign import Direction, PartitionReassignment, ReassignmentPlan, Step


@dataclass(frozen=True, slots=True)
class CopySizes:
    """Bytes that a run copies: of one copy by partition, and of all copies by the number of the step."""

    of_partition: Mapping[TopicPartition, int]
    of_step: Mapping[int, int]


def copy_sizes(plan: ReassignmentPlan, direction: Direction, sizes: Mapping[TopicPartition, int]) -> CopySizes:
    """`sizes`: bytes of one copy of each partition whose size is known."""

    def of(step: Step) -> int:
        return sum(
            sizes.get(partition.topic_partition, 0) * len(partition.additions(direction))
            for partition in step.partitions
        )

    return CopySizes(sizes, {step.number: of(step) for step in plan.steps})


@dataclass(frozen=True, slots=True)
class Progress:
    """Step `step` of `steps`; of `copies` replicas to copy, `copied` are in sync; `moving` partitions are under way.

    `bytes` of what is copied; `bytes_copied` of it are in sync, or on a broker that is not in sync yet; both as far as sizes
    are known.
    """

    step: int
    steps: int
    copied: int
    copies: int
    moving: int
    bytes: int
    bytes_copied: int


NO_SIZES = CopySizes({}, {})


def progress(state: RunState, cluster: ObservedCluster, sizes: CopySizes = NO_SIZES) -> Progress:
    copies = {step.number: step.copies(state.direction) for step in state.plan.steps}
    in_sync = [
        (partition, _in_sync(partition, state, cluster))
        for step in state.open_steps
        if copies[step.number]
        for partition in step.partitions
    ]
    return Progress(
        step=min(len(state.done) + 1, len(copies)),
        steps=len(copies),
        copied=sum(copies[number] for number in state.done) + sum(copied for _, copied in in_sync),
        copies=sum(copies.values()),
        moving=sum(topic_partition in state.plan.by_partition for topic_partition in cluster.in_flight),
        bytes=sum(sizes.of_step.values()),
        bytes_copied=sum(sizes.of_step.get(number, 0) for number in state.done)
        + sum(
            sizes.of_partition.get(partition.topic_partition, 0) * copied + _arriving(partition, state, cluster, sizes)
            for partition, copied in in_sync
        ),
    )


def _in_sync(partition: PartitionReassignment, state: RunState, cluster: ObservedCluster) -> int:
    return len(set(partition.additions(state.direction)) & set(cluster.isr.get(partition.topic_partition, ())))


def _arriving(partition: PartitionReassignment, state: RunState, cluster: ObservedCluster, sizes: CopySizes) -> int:
    """Bytes of copies that are not in sync yet. A log that grew since its size was read counts as one of that size."""
    whole, in_sync = (
        sizes.of_partition.get(partition.topic_partition, 0),
        cluster.isr.get(partition.topic_partition, ()),
    )
    found = cluster.copied_bytes.get(partition.topic_partition, {})
    arriving = set(partition.additions(state.direction)) - set(in_sync)
    return sum(min(whole, found.get(broker, 0)) for broker in arriving)


def awaited(state: RunState, cluster: ObservedCluster) -> dict[TopicPartition, tuple[int, ...]]:
    """The brokers that each move of the plan under way waits for: those of its target that are not in sync."""
    missing = {
        topic_partition: tuple(sorted(set(moving.target) - set(cluster.isr.get(topic_partition, ()))))
        for topic_partition, moving in sorted(cluster.in_flight.items())
        if topic_partition in state.plan.by_partition
    }
    return {topic_partition: brokers for topic_partition, brokers in missing.items() if brokers}
