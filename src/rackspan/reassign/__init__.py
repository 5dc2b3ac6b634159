"""The least movement that makes a cluster rack-safe, with a bound that proves it; and the judge of anyone's plan.

Begin with planner.py (the order of goals), then bounds.py (why less cannot do) and repair.py (how it is reached).
lint.py judges plans, ours or another tool's. Pure: nothing here touches a cluster; plans are values.
"""

from rackspan.reassign.document import ListedPartition, ReassignmentDocument
from rackspan.reassign.lint import FORCES_RACKS, lint
from rackspan.reassign.planner import plan
from rackspan.reassign.request import Request
from rackspan.reassign.result import Balance, Plan, Spread, applied

__all__ = [
    "FORCES_RACKS",
    "Balance",
    "ListedPartition",
    "Plan",
    "ReassignmentDocument",
    "Request",
    "Spread",
    "applied",
    "lint",
    "plan",
]
