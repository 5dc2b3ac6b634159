"""Constraints: what must hold of partitions and of the cluster. Each has a name, a test, a reason and a remedy.

Begin with partitions.py, then cluster.py (brokers, controllers). They only read; nothing here proposes a placement.
"""

from rackspan.audit.constraints.cluster import cluster_findings
from rackspan.audit.constraints.partitions import (
    PARTITION_CONSTRAINTS,
    PartitionConstraint,
    partition_findings,
    partition_findings_by_row,
)

__all__ = [
    "PARTITION_CONSTRAINTS",
    "PartitionConstraint",
    "cluster_findings",
    "partition_findings",
    "partition_findings_by_row",
]
