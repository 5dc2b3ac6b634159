"""What a plan is: which replica lists change, what that costs, and the proof that less would not do."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rackspan.audit.loads import BELIEVED_BYTES_MAX
from rackspan.model.ids import NO_BROKER
from rackspan.model.partitions import Int32s, Int64s, unpadded
from rackspan.model.snapshot import ClusterSnapshot
from rackspan.reassign.conflicts import Conflict


@dataclass(frozen=True, slots=True)
class Spread:
    """The fewest and the most on one broker, among the brokers that stay."""

    fewest: int
    most: int


@dataclass(frozen=True, slots=True)
class Balance:
    """Replicas and preferred leaders per broker."""

    replicas: Spread
    leaders: Spread


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Partitions `rows` (N,) of the snapshot, ascending, get the replica lists `replicas` (N, width), −1 padded.

    `arrivals` (N,): copies each needs; `moves` is their sum, `lower_bound` what no plan can undercut, `gap_reason` says
    why they differ, if they do. `replicas_bound`: the least that the fullest broker can hold in any placement that keeps
    the racks. `bytes`: what is copied, as far as sizes are known; `unsized_moves` copies have none.
    `left_out`: partitions not looked at, in words. `infeasible`: what of the request cannot be met.
    """

    snapshot: ClusterSnapshot
    rows: Int64s
    replicas: Int32s
    arrivals: Int64s
    lower_bound: int
    gap_reason: str | None
    before: Balance
    after: Balance
    replicas_bound: int
    left_out: tuple[str, ...] = ()
    infeasible: tuple[Conflict, ...] = ()
    leaving: frozenset[int] = frozenset()

    @property
    def moves(self) -> int:
        """Replicas copied, |target − current| over all partitions. Reordering and removing copy nothing."""
        return int(self.arrivals.sum())

    @property
    def gap(self) -> int:
        return self.moves - self.lower_bound

    @property
    def entry_bytes(self) -> Int64s:
        """What each entry copies, (N,); 0 where the size is unknown."""
        size_bytes = self.snapshot.partitions.size_bytes[self.rows]
        return np.asarray(self.arrivals * np.clip(size_bytes, 0, BELIEVED_BYTES_MAX))

    @property
    def bytes(self) -> int:
        return int(self.entry_bytes.sum())

    @property
    def unsized_moves(self) -> int:
        return int(self.arrivals[self.snapshot.partitions.size_bytes[self.rows] < 0].sum())

    def __len__(self) -> int:
        """Reassignments: partitions whose list changes, reordered ones included."""
        return len(self.rows)

    def targets(self) -> Iterator[tuple[str, int, tuple[int, ...]]]:
        """Topic, partition and new replicas of each, in the snapshot's order."""
        rows = self.snapshot.partitions
        for row, replicas in zip(self.rows.tolist(), self.replicas, strict=True):
            yield self.snapshot.topics[rows.topic[row]].name, int(rows.partition[row]), unpadded(replicas)


def applied(plan: Plan) -> ClusterSnapshot:
    """The snapshot once the plan is done: new replicas in sync, drained brokers gone, the preferred replica leading.

    What a judge is given to say whether the plan ends well.
    """
    rows, width = plan.snapshot.partitions, max(plan.snapshot.partitions.replicas.shape[1], plan.replicas.shape[1])
    replicas, isr = _widened(rows.replicas, width), _widened(rows.isr, width)
    replicas[plan.rows] = isr[plan.rows] = _widened(plan.replicas, width)
    leader = rows.leader.copy()
    leader[plan.rows] = plan.replicas[:, 0] if len(plan.rows) else leader[plan.rows]
    after = replace(rows, replicas=replicas, isr=isr, leader=leader)
    # A broker drained for some topics only still holds the others.
    gone = plan.leaving - set(np.unique(replicas).tolist())
    left = tuple(broker for broker in plan.snapshot.brokers if broker.id not in gone)
    return replace(plan.snapshot, brokers=left, partitions=after)


def _widened(matrix: Int32s, width: int) -> Int32s:
    return np.pad(matrix, ((0, 0), (0, max(0, width - matrix.shape[1]))), constant_values=NO_BROKER)
