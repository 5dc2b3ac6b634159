"""The judge: what is wrong with a cluster's racks, and what losing one would do. Written once, here.

Begin with judge.py, then constraints.py. The CLI, the plan linter, the embedded cluster and the Spark tables all call
these functions; none has a second copy of a rule. Pure: it never asks a cluster, it is given a snapshot.
"""

from rackspan.audit.findings import Finding, Severity
from rackspan.audit.judge import Audit, audit, outage
from rackspan.audit.outage import RackLoss
from rackspan.audit.policy import RackPolicy

__all__ = ["Audit", "Finding", "RackLoss", "RackPolicy", "Severity", "audit", "outage"]
