"""Constraints: what must hold of partitions and of the cluster. Each has a name, a test, a reason and a remedy.

Begin with partitions.py, then survival.py (losses), cluster.py (brokers, controllers) and remedies.py. They only read;
nothing here proposes a placement.
"""

from rackspan.audit.constraints.cluster import cluster_findings
from rackspan.audit.constraints.configs import config_findings, throttle_findings
from rackspan.audit.constraints.constraint import PartitionConstraint
from rackspan.audit.constraints.known_words import FindingColumns, Findings, KnownWords
from rackspan.audit.constraints.partitions import (
    PARTITION_CONSTRAINTS,
    finding_columns,
    partition_findings,
)
from rackspan.audit.constraints.topics import leader_rack_findings, mixed_replication_factors

__all__ = [
    "PARTITION_CONSTRAINTS",
    "FindingColumns",
    "Findings",
    "KnownWords",
    "PartitionConstraint",
    "cluster_findings",
    "config_findings",
    "finding_columns",
    "leader_rack_findings",
    "mixed_replication_factors",
    "partition_findings",
    "throttle_findings",
]
