"""The order of a plan's steps, plan files, and what a run of a plan does next.

Begin with order.py (risk first, then size), then plan_file.py (plans as files), reassignment_file.py (the files of
kafka-reassign-partitions) and verification.py (how far a reassignment has come). execution/ decides the effects of a run.
Which replicas move is decided in `reassign`; `apply` carries out the effects on a cluster.
"""

from rackspan.plan.difference import partition_differences, plan_difference
from rackspan.plan.execution.decision import RunLimits
from rackspan.plan.order import StepLimits, order_steps
from rackspan.plan.plan_file import plan_document, read_plan

__all__ = [
    "RunLimits",
    "StepLimits",
    "order_steps",
    "partition_differences",
    "plan_difference",
    "plan_document",
    "read_plan",
]
