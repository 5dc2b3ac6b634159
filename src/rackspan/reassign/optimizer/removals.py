"""Which replicas can leave where a rack holds too many: partitions with the same candidates form one group."""

from dataclasses import dataclass

import numpy as np

from rackspan.model.partitions import Bools, Int64s
from rackspan.reassign.optimizer.repair_groups import Kinds
from rackspan.reassign.optimizer.row_groups import Groups, deal, grouped
from rackspan.reassign.problem import Standing


@dataclass(frozen=True, slots=True, eq=False)
class EvictionChoices:
    """Groups of partitions that share their candidates, as nodes and arcs of a flow.

    `rows` (N,): the partitions, `groups` groups them. A candidate a: group `arc_group[a]`, node `arc_node[a]` (one node
    a group and rack), broker `arc_broker[a]`; sorted by group, rack, broker. A node v takes `node_must[v]` evictions
    for sure and up to `node_may[v]` more; group g takes `group_free[g]` of the latter. `arc_in_sync[a]`: the candidate
    is in sync, and one that is not should leave before it.
    """

    rows: Int64s
    groups: Groups
    arc_group: Int64s
    arc_node: Int64s
    arc_broker: Int64s
    arc_in_sync: Bools
    node_group: Int64s
    node_must: Int64s
    node_may: Int64s
    group_free: Int64s

    def dealt(self, units: Int64s) -> tuple[Int64s, Int64s]:
        """Rows and brokers of the evictions, given how many units each candidate gives up."""
        arc = np.repeat(np.arange(len(units)), units)
        return self.rows[deal(self.groups, self.arc_group[arc])], self.arc_broker[arc]


def eviction_choices(now: Standing, kinds: Kinds, included: Int64s) -> EvictionChoices:
    """The choices of those rows of `kinds` that `included` names (positions in `kinds.rows`)."""
    kind = kinds.groups.of_row[included]
    index = now.replica_index[kinds.rows[included]].astype(np.int64)
    racks = now.replica_racks[kinds.rows[included]].astype(np.int64)
    may_leave = (racks >= 0) & ((kinds.must_evict + kinds.may_evict)[kind[:, None], racks] > 0)
    some = may_leave.any(axis=1)
    kind, brokers = kind[some], len(now.homes.broker_ids)
    slots = (racks * brokers + index) * 2 + _in_sync(now, kinds.rows[included])
    candidates = np.sort(np.where(may_leave, slots, -1)[some], axis=1)
    wanted = now.wanted_factor[kinds.rows[included]][some]
    groups = grouped(np.column_stack([candidates, wanted, kinds.free_evictions[kind]]))
    lead = candidates[groups.first]
    group, column = np.nonzero(lead >= 0)
    rack, broker = np.divmod(lead[group, column] // 2, brokers)
    starts = np.ones(len(group), dtype=np.bool_)
    starts[1:] = (group[1:] != group[:-1]) | (rack[1:] != rack[:-1])
    node_group, node_rack = group[starts], rack[starts]
    node_kind = kind[groups.first[node_group]]
    return EvictionChoices(
        rows=kinds.rows[included][some],
        groups=groups,
        arc_group=group,
        arc_node=np.cumsum(starts) - 1,
        arc_broker=broker,
        arc_in_sync=lead[group, column] % 2 == 1,
        node_group=node_group,
        node_must=kinds.must_evict[node_kind, node_rack],
        node_may=np.minimum(kinds.may_evict[node_kind, node_rack], kinds.free_evictions[node_kind]),
        group_free=kinds.free_evictions[kind[groups.first]],
    )


def _in_sync(now: Standing, rows: Int64s) -> Bools:
    """Which replicas are in the ISR. Shape as `replica_index[rows]`."""
    isr = now.homes.broker_index(now.rows.isr[rows])
    found = np.zeros(now.replica_index[rows].shape, dtype=np.bool_)
    for column in isr.T:
        found |= (now.replica_index[rows] == column[:, None]) & (column[:, None] >= 0)
    return found
