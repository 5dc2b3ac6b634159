"""What tests read of a plan."""

from rackspan.model import ClusterSnapshot
from rackspan.model.partitions import Int64s
from rackspan.reassign import PlanCost, ReassignmentPlan, snapshot_rows


def cost(plan: ReassignmentPlan) -> PlanCost:
    """Of a plan that the planner made, or that a file states in full."""
    assert plan.cost is not None
    return plan.cost


def rows(snapshot: ClusterSnapshot, plan: ReassignmentPlan) -> Int64s:
    """The rows of the snapshot that the plan changes, in the order of its steps."""
    return snapshot_rows(snapshot, plan.columns())


def targets(plan: ReassignmentPlan) -> list[tuple[str, int, tuple[int, ...]]]:
    """Topic, partition and new replicas, by topic and partition."""
    return sorted((one.topic, one.partition, one.replicas) for one in plan.partitions())


def originals(plan: ReassignmentPlan) -> dict[tuple[str, int], tuple[int, ...]]:
    return {one.topic_partition: one.undo for one in plan.partitions()}
