"""Whether a run may start or resume on a cluster, and which replicas the partitions have before it."""

from collections.abc import Iterator
from dataclasses import replace

from rackspan.errors import InvalidJournal, ReassignmentStopped, UsageError
from rackspan.plan.execution.decision import RunLimits
from rackspan.plan.execution.events import RunState
from rackspan.plan.execution.mismatch import (
    WAIT,
    changed_since,
    mismatch,
    missing_receivers,
    other_cluster,
    running_beside,
)
from rackspan.plan.execution.observed import ObservedCluster, ReassignmentStatus, reassignment_status
from rackspan.reassign import Direction, PartitionReassignment, ReassignmentPlan, reassignment_columns


def plan_to_start(plan: ReassignmentPlan, direction: Direction, cluster: ObservedCluster) -> ReassignmentPlan:
    """The plan as its journal will hold it: with the ids of this cluster, and with every original.

    `cluster` shows every topic of the plan. Errors: ReassignmentStopped, with the first reason not to start.
    """
    complete = with_ids(with_originals(plan, cluster), cluster)
    for why in _reasons_against(plan, complete, direction, cluster):
        raise ReassignmentStopped(why)
    return complete


def refuse_unnamed_cluster(plan: ReassignmentPlan) -> None:
    """A change is made only to the cluster that the plan, or its user, names. Errors: UsageError."""
    if plan.cluster_id is None:
        raise UsageError("the plan names no cluster; confirm the one that is meant with --cluster-id ID")


def refuse_to_resume(state: RunState, plan: ReassignmentPlan, cluster: ObservedCluster, journal: str) -> None:
    """Refuse another plan's journal, and another cluster. Errors: InvalidJournal, ReassignmentStopped."""
    if not state.plan.same_targets(plan):
        raise InvalidJournal(f"{journal}: the journal of another plan; name the --journal of this one")
    if why := other_cluster(state.plan, cluster):
        raise ReassignmentStopped(why)


def refuse_to_repeat(state: RunState, cluster: ObservedCluster) -> None:
    """Refuse a run of which nothing is left where partitions are not as it left them: it would end as done at once.

    `cluster` shows every topic of the plan. A run that has throttles to restore resumes for these. Errors:
    ReassignmentStopped.
    """
    if state.remaining or state.own:
        return
    if why := changed_since(state.plan, state.direction, cluster):
        raise ReassignmentStopped(why)


def refuse_a_limit_below(plan: ReassignmentPlan, direction: Direction, limits: RunLimits) -> None:
    """A run that could not move its largest partition would never complete. Errors: UsageError."""
    largest = max(plan.partitions(), key=lambda partition: len(partition.additions(direction)))
    copies = len(largest.additions(direction))
    if limits.moves is not None and copies > limits.moves:
        raise UsageError(f"--max-moves {limits.moves}: {largest.name} alone copies {copies}; allow {copies} or more")


def with_originals(plan: ReassignmentPlan, cluster: ObservedCluster) -> ReassignmentPlan:
    """The plan with its undo filled in from the cluster where a file of another tool has none."""
    if plan.has_undo:
        return plan
    return replace(
        plan,
        steps=tuple(
            replace(
                step, columns=reassignment_columns(_with_original(partition, cluster) for partition in step.partitions)
            )
            for step in plan.steps
        ),
    )


def with_ids(plan: ReassignmentPlan, cluster: ObservedCluster) -> ReassignmentPlan:
    """The plan with the ids of the cluster and of its topics, so that a later run recognizes them."""
    topics = {partition.topic for partition in plan.partitions()}
    ids = {name: topic_id for name in sorted(topics) if (topic_id := cluster.topic_ids.get(name)) is not None}
    return replace(plan, cluster_id=plan.cluster_id or cluster.cluster_id, topic_ids={**ids, **plan.topic_ids})


def _with_original(partition: PartitionReassignment, cluster: ObservedCluster) -> PartitionReassignment:
    return partition if partition.undo else replace(partition, undo=cluster.replicas.get(partition.topic_partition, ()))


def _reasons_against(
    plan: ReassignmentPlan, complete: ReassignmentPlan, direction: Direction, cluster: ObservedCluster
) -> Iterator[str]:
    if why := other_cluster(plan, cluster):
        yield why
    if direction is Direction.ORIGINALS and not plan.has_undo:
        yield "the plan does not say where replicas were; name the --journal of the run that moved them"
    for topic_partition in sorted(cluster.in_flight):
        if topic_partition in complete.by_partition:
            yield f"{topic_partition} is being reassigned already, and not by this journal; {WAIT}"
    if why := mismatch(complete, complete.partitions(), cluster):
        yield why
    if why := running_beside(complete, cluster):
        yield why
    undone = [
        partition
        for partition in complete.partitions()
        if reassignment_status(partition, direction, cluster) is not ReassignmentStatus.DONE
    ]
    if why := missing_receivers(undone, direction, cluster):
        yield why
