"""The audit of a snapshot: which constraints its racks break, and what the loss of each rack would do.

Begin with judge.py, then batch.py (the input of every rule), constraints/ and outage.py; drift/ compares two snapshots.
The CLI, the plan linter, the embedded cluster and the Spark tables call these functions, so a rule exists once. Pure: it
never reads a cluster, a snapshot is its argument.
"""

from rackspan.audit.findings import Finding, Severity
from rackspan.audit.judge import Audit, audit, outage
from rackspan.audit.outage import RackLoss
from rackspan.audit.policy import ClusterPolicies, FleetPolicy, RackPolicy

__all__ = [
    "Audit",
    "ClusterPolicies",
    "Finding",
    "FleetPolicy",
    "RackLoss",
    "RackPolicy",
    "Severity",
    "audit",
    "outage",
]
