"""What an executor's Python keeps of the snapshots that it judged, so that the next task does not judge them again to compare.

Constraints: rows are those that judging the snapshot now would give: an id has a hash of the content, and members have the policy.
Method: Spark keeps a Python process from one task to the next; the snapshots that were judged last are kept up to a number of
partitions. Another process judges again, so that nothing depends on where a task runs. Bound: KEPT_PARTITIONS_MAX. Source: our own.
Test: tests/pipeline/judging/test_kept.py.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import pyarrow as pa

from rackspan.audit import ClusterMembers, Finding, RackLoss
from rackspan.audit.loads import BrokerLoads
from rackspan.pipeline.judging.tasks import TaskSnapshot
from rackspan.pipeline.schemas import TABLES

KEPT_PARTITIONS_MAX: Final = 1_000_000
"""Some 150 MB in each Python process."""

RowsByTable: TypeAlias = Mapping[str, pa.Table]


@dataclass(slots=True)
class ClusterSums:
    """The sums over the parts of one snapshot. `losses` has an entry for each loss, with that of each part."""

    loads: list[BrokerLoads] = field(default_factory=list)
    losses: list[list[RackLoss]] = field(default_factory=list)
    throttled: list[Finding] = field(default_factory=list)
    """What is found unless anything in the cluster may be `moving`."""
    moving: bool = False


@dataclass(frozen=True, slots=True)
class JudgedSnapshot:
    """The rows of a snapshot about partitions and topics, and its sums for the rows about the cluster."""

    members: ClusterMembers
    partitions: int
    rows: RowsByTable
    sums: ClusterSums


class KeptSnapshots:
    """The snapshots that were judged last, by id."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, JudgedSnapshot] = OrderedDict()
        self.partitions = 0

    def of(self, snapshot: TaskSnapshot) -> JudgedSnapshot | None:
        """The rows of a snapshot in the tables that it is compared in, if they are kept."""
        kept = self._kept.get(snapshot.stored.snapshot_id)
        needed = {name for name in snapshot.compared if TABLES[name].as_changes}
        return kept if kept is not None and kept.members == snapshot.members and needed <= kept.rows.keys() else None

    def keep(self, snapshot: TaskSnapshot, judged: JudgedSnapshot) -> None:
        """Keep a snapshot instead of those that were judged longest ago, and of the one before it, which nothing is compared with."""
        before = () if snapshot.before is None else (snapshot.before.snapshot_id,)
        for identity in (*before, snapshot.stored.snapshot_id):
            self._drop(identity)
        self._kept[snapshot.stored.snapshot_id] = judged
        self.partitions += judged.partitions
        while self.partitions > KEPT_PARTITIONS_MAX:
            self._drop(next(iter(self._kept)))

    def _drop(self, identity: str) -> None:
        if identity in self._kept:
            self.partitions -= self._kept.pop(identity).partitions
