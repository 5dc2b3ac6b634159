"""Constraints: what must hold of partitions and of the cluster. Each has a name, a test, a reason and a remedy.

Begin with partitions.py, then survival.py (losses), cluster.py (brokers, controllers) and remedies.py. They only read;
nothing here proposes a placement.
"""

from rackspan.audit.constraints.cluster import cluster_findings
from rackspan.audit.constraints.configs import config_findings
from rackspan.audit.constraints.constraint import PartitionConstraint
from rackspan.audit.constraints.partitions import (
    PARTITION_CONSTRAINTS,
    partition_findings,
)
from rackspan.audit.constraints.topics import leader_rack_findings, mixed_replication_factors

__all__ = [
    "PARTITION_CONSTRAINTS",
    "PartitionConstraint",
    "cluster_findings",
    "config_findings",
    "leader_rack_findings",
    "mixed_replication_factors",
    "partition_findings",
]
