"""Partitions to repair, grouped: those whose replicas are on the same racks need the same additions and removals."""

from dataclasses import dataclass

import numpy as np

from rackspan.model import NO_RACK, Bools, Int64s
from rackspan.reassign.optimizer.bounds import Needs
from rackspan.reassign.optimizer.row_groups import RowGroups, group_rows
from rackspan.reassign.problem import ReassignmentProblem


@dataclass(frozen=True, slots=True, eq=False)
class RepairGroups:
    """G groups of equal partitions among the rows `rows` (N,).

    Per group: `additions` (G,); `least_additions` and `most_additions` (G, racks), what each rack must and may receive;
    `must_remove` and `may_remove` (G, racks); `free_removals` (G,), removals beyond the musts; `own_rack` (G,).
    """

    rows: Int64s
    row_groups: RowGroups
    additions: Int64s
    least_additions: Int64s
    most_additions: Int64s
    must_remove: Int64s
    may_remove: Int64s
    free_removals: Int64s
    own_rack: Int64s

    @property
    def reachable(self) -> Bools:
        """RepairGroups whose additions find brokers that can receive them. Only fenced brokers stand in the way. Shape (G,)."""
        least = (self.least_additions <= self.most_additions).all(axis=1)
        return np.asarray(least & (self.most_additions.sum(axis=1) >= self.additions))


def repair_groups(problem: ReassignmentProblem, needed: Needs, rows: Int64s) -> RepairGroups:
    """Group `rows`; for one partition of each group, what it must and may add and remove in each rack."""
    racks, can_receive = problem.replica_racks[rows], problem.can_receive[problem.replica_index[rows]]
    # A fenced broker cannot receive, so it takes no position from those that can.
    slots = np.sort(np.where(racks == NO_RACK, -1, racks * 2 + can_receive))
    target_factor, own = problem.target_factor[rows], problem.own_rack[rows]
    groups = group_rows(
        np.column_stack([slots, target_factor, own, needed.additions[rows], needed.removals[rows]]).astype(np.int64)
    )
    first = groups.first
    held, usable = slots_per_rack(slots[first], problem.shares.racks)
    least, most = problem.shares.least[target_factor[first], :-1], problem.shares.most[target_factor[first], :-1]
    additions, removals = needed.additions[rows][first], needed.removals[rows][first]
    must = np.maximum(held - most, 0)
    free = removals - must.sum(axis=1)
    lacking = np.maximum(least - held, 0)
    # Replicas that count in no rack can stand for what a rack lacks: then not all of it must come.
    short = lacking.sum(axis=1) > additions
    allowed = np.where(short[:, None], lacking, np.maximum(most - held, 0))
    usable_brokers = np.bincount(
        problem.rack_map.rack_codes[problem.can_receive & (problem.rack_map.rack_codes >= 0)],
        minlength=problem.shares.racks,
    )
    return RepairGroups(
        rows=rows,
        row_groups=groups,
        additions=additions,
        least_additions=np.where(short[:, None], 0, lacking),
        most_additions=np.minimum(allowed, np.maximum(usable_brokers - usable, 0)),
        must_remove=must,
        may_remove=np.where(free[:, None] > 0, np.maximum(np.minimum(held, most) - least, 0), 0),
        free_removals=free,
        own_rack=own[first].astype(np.int64),
    )


def slots_per_rack(slots: Int64s, racks: int) -> tuple[Int64s, Int64s]:
    """Replicas on each rack, and those of them on brokers that can receive. Shape (G, racks) each.

    A slot is twice the rack code, plus one where the broker can receive; negative slots count nowhere.
    """
    group = np.repeat(np.arange(len(slots)), slots.shape[1])[slots.ravel() >= 0]
    slot = slots.ravel()[slots.ravel() >= 0]
    cell = group * racks + slot // 2
    held = np.bincount(cell, minlength=len(slots) * racks)
    usable = np.bincount(cell[slot % 2 == 1], minlength=len(slots) * racks)
    return held.reshape(len(slots), racks), usable.reshape(len(slots), racks)
