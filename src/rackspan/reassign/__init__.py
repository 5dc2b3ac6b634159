"""The least movement that makes a cluster rack-safe, with a bound that proves it; and a linter for any plan.

Begin with reassignment_plan.py (the value that all of it is about) and planner.py (the order of goals), then
optimizer/repair.py (how the fewest moves are found) and optimizer/bounds.py (why fewer cannot do). lint.py judges plans,
ours or another tool's. Pure: nothing here touches a cluster or a file.
Depends on: audit, flow, model.
"""

from rackspan.reassign.document import ListedPartition, ReassignmentDocument
from rackspan.reassign.intermediate import refuses_midway
from rackspan.reassign.lint import FORCES_RACKS, known_reassignments, lint
from rackspan.reassign.plan_cost import Balance, Conflict, LoadRange, PlanCost
from rackspan.reassign.planner import bytes_copied, plan
from rackspan.reassign.reassignment_plan import (
    Direction,
    PartitionReassignment,
    ReassignmentColumns,
    ReassignmentPlan,
    Step,
    reassignment_columns,
    rows_held,
    snapshot_after,
    snapshot_rows,
)
from rackspan.reassign.request import ReassignmentRequest

__all__ = [
    "FORCES_RACKS",
    "Balance",
    "Conflict",
    "Direction",
    "ListedPartition",
    "LoadRange",
    "PartitionReassignment",
    "PlanCost",
    "ReassignmentColumns",
    "ReassignmentDocument",
    "ReassignmentPlan",
    "ReassignmentRequest",
    "Step",
    "bytes_copied",
    "known_reassignments",
    "lint",
    "plan",
    "reassignment_columns",
    "refuses_midway",
    "rows_held",
    "snapshot_after",
    "snapshot_rows",
]
