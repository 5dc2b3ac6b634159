"""The audit of a snapshot: which constraints its racks break, and what the loss of each rack would do.

Begin with judge.py, then batch.py (the input of every rule), constraints/ and outage.py; drift/ compares two snapshots.
The CLI, the plan linter, the embedded cluster and the Spark tables call these functions, so a rule exists once. Pure: it
never reads a cluster, a snapshot is its argument.
Depends on: model.
"""

from rackspan.audit.batch import ClusterMembers, PartitionBatch, effective_min_isr, requirements, snapshot_batch
from rackspan.audit.constraints.cancel import HarmfulCancel, harmful_cancels
from rackspan.audit.findings import Finding, Severity, in_order
from rackspan.audit.judge import Audit, RackLosses, assumptions, audit, outage, rack_losses, racks_down
from rackspan.audit.leader_racks import leader_choices
from rackspan.audit.outage import LostRack, RackLoss, TopicHarm, losses_each_rack
from rackspan.audit.policy import ClusterPolicies, FleetPolicy, RackPolicy

__all__ = [
    "Audit",
    "ClusterMembers",
    "ClusterPolicies",
    "Finding",
    "FleetPolicy",
    "HarmfulCancel",
    "LostRack",
    "PartitionBatch",
    "RackLoss",
    "RackLosses",
    "RackPolicy",
    "Severity",
    "TopicHarm",
    "assumptions",
    "audit",
    "effective_min_isr",
    "harmful_cancels",
    "in_order",
    "leader_choices",
    "losses_each_rack",
    "outage",
    "rack_losses",
    "racks_down",
    "requirements",
    "snapshot_batch",
]
