"""Which replicas can leave where a rack holds too many: partitions with the same candidates form one group."""

from dataclasses import dataclass
from itertools import islice

import numpy as np

from rackspan.model import NO_RACK, Bools, Int32s, Int64s
from rackspan.reassign.optimizer.repair_groups import RepairGroups
from rackspan.reassign.optimizer.row_groups import RowGroups, distribute_items, group_rows
from rackspan.reassign.problem import ReassignmentProblem


@dataclass(frozen=True, slots=True, eq=False)
class RemovalChoices:
    """RowGroups of partitions that share their candidates, as nodes and arcs of a flow.

    `rows` (N,): the partitions, `groups` groups them. A candidate a: group `arc_group[a]`, node `arc_node[a]` (one node
    a group and rack), broker `arc_broker[a]`; sorted by group, rack, broker. A node v takes `node_must[v]` removals
    for sure and up to `node_may[v]` more; group g takes `group_free[g]` of the latter. `arc_in_sync[a]`: the candidate
    is in sync, and one that is not should leave before it.
    """

    rows: Int64s
    groups: RowGroups
    arc_group: Int64s
    arc_node: Int64s
    arc_broker: Int64s
    arc_in_sync: Bools
    node_group: Int64s
    node_must: Int64s
    node_may: Int64s
    group_free: Int64s

    def removals_of(self, units: Int64s) -> tuple[Int64s, Int64s]:
        """Rows and brokers of the removals, given the units of flow on the arc of each candidate."""
        arc = np.repeat(np.arange(len(units)), units)
        return self.rows[distribute_items(self.groups, self.arc_group[arc])], self.arc_broker[arc]


def removal_choices(problem: ReassignmentProblem, repair_groups: RepairGroups, included: Int64s) -> RemovalChoices:
    """The choices for the rows of `repair_groups` at the positions `included`."""
    repair_group = repair_groups.row_groups.of_row[included]
    index = problem.replica_index[repair_groups.rows[included]].astype(np.int64)
    racks = problem.replica_racks[repair_groups.rows[included]].astype(np.int64)
    may_leave = (racks >= 0) & (
        (repair_groups.must_remove + repair_groups.may_remove)[repair_group[:, None], racks] > 0
    )
    some = may_leave.any(axis=1)
    repair_group, brokers = repair_group[some], len(problem.rack_map.broker_ids)
    slots = (racks * brokers + index) * 2 + in_sync(problem, repair_groups.rows[included])
    candidates = np.sort(np.where(may_leave, slots, -1)[some])
    target_factor = problem.target_factor[repair_groups.rows[included]][some]
    groups = group_rows(np.column_stack([candidates, target_factor, repair_groups.free_removals[repair_group]]))
    lead = candidates[groups.first]
    group, column = np.nonzero(lead >= 0)
    rack, broker = np.divmod(lead[group, column] // 2, brokers)
    starts = np.ones(len(group), dtype=np.bool_)
    starts[1:] = (group[1:] != group[:-1]) | (rack[1:] != rack[:-1])
    node_group, node_rack = group[starts], rack[starts]
    node_repair_group = repair_group[groups.first[node_group]]
    return RemovalChoices(
        rows=repair_groups.rows[included][some],
        groups=groups,
        arc_group=group,
        arc_node=np.cumsum(starts) - 1,
        arc_broker=broker,
        arc_in_sync=lead[group, column] % 2 == 1,
        node_group=node_group,
        node_must=repair_groups.must_remove[node_repair_group, node_rack],
        node_may=np.minimum(
            repair_groups.may_remove[node_repair_group, node_rack], repair_groups.free_removals[node_repair_group]
        ),
        group_free=repair_groups.free_removals[repair_group[groups.first]],
    )


def in_sync(problem: ReassignmentProblem, rows: Int64s) -> Bools:
    """Which replicas are in the ISR. Shape as `replica_index[rows]`."""
    isr = problem.rack_map.broker_index(problem.rows.isr[rows])
    found = np.zeros(problem.replica_index[rows].shape, dtype=np.bool_)
    for column in isr.T:
        found |= (problem.replica_index[rows] == column[:, None]) & (column[:, None] >= 0)
    return found


def keep_in_sync(problem: ReassignmentProblem, targets: Int32s, rows: Int64s) -> tuple[Int32s, int]:
    """`targets` (P, width) in which no row of `rows` loses every replica in sync and keeps one that is not; how many were.

    Kafka ends a reassignment once every replica of the target is in sync, and one that is out of sync may never be. So the
    replica in sync stays in the place of one out of sync in its own rack; one that counts in no rack in that of any.
    """
    held, synced = problem.replica_index[rows], in_sync(problem, rows)
    stays = (held[:, :, None] == targets[rows][:, None, :]).any(axis=2) & (held >= 0)
    lost = synced.any(axis=1) & ~(synced & stays).any(axis=1) & (stays & ~synced).any(axis=1)
    targets, racks, changed = targets.copy(), problem.replica_racks[rows], 0
    for at in np.flatnonzero(lost).tolist():
        pairs = (
            (kept, left)
            for left in np.flatnonzero(synced[at]).tolist()
            for kept in np.flatnonzero(stays[at] & ~synced[at]).tolist()
            if racks[at, left] in (racks[at, kept], NO_RACK)
        )
        for kept, left in islice(pairs, 1):
            row = targets[rows[at]]
            row[row == held[at, kept]] = held[at, left]
            changed += 1
    return targets, changed
