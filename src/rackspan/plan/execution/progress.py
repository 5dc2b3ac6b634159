"""Progress of a run, in steps and copies."""

from dataclasses import dataclass

from rackspan.plan.execution.events import RunState
from rackspan.plan.execution.observed import ObservedCluster
from rackspan.reassign import PartitionReassignment, Step


@dataclass(frozen=True, slots=True)
class Progress:
    """Step `step` of `steps`; of `copies` replicas to copy, `copied` are in sync; `moving` partitions are under way."""

    step: int
    steps: int
    copied: int
    copies: int
    moving: int


def progress(state: RunState, cluster: ObservedCluster) -> Progress:
    step, copies = state.step, {step.number: step.copies(state.direction) for step in state.plan.steps}
    done = sum(copies[number] for number in state.done)
    return Progress(
        step=min(len(state.done) + 1, len(copies)),
        steps=len(copies),
        copied=done + (_copied(step, state, cluster) if step is not None else 0),
        copies=sum(copies.values()),
        moving=sum(topic_partition in state.plan.by_partition for topic_partition in cluster.in_flight),
    )


def _copied(step: Step, state: RunState, cluster: ObservedCluster) -> int:
    return sum(_in_sync(one, state, cluster) for one in step.partitions)


def _in_sync(one: PartitionReassignment, state: RunState, cluster: ObservedCluster) -> int:
    return len(set(one.additions(state.direction)) & set(cluster.isr.get(one.topic_partition, ())))
