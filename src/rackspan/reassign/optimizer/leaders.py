"""Balances preferred leaders by reordering replica lists, which copies nothing."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rackspan.flow import NetworkBuilder, solve
from rackspan.model.partitions import Bools, Int32s, Int64s

BULK_ROUNDS = 16
"""Rounds of flow before single paths finish the work. One or two suffice where floor/ceil can be reached; where replica
sets forbid it each round distinguishes loads more finely.
"""


@dataclass(slots=True, eq=False)
class _Leadership:
    """The preferred leader of each partition, while it changes.

    `replicas` (N, width) broker indices, `leader` (N,) one of each row, `loads` (B,) partitions led, rows that may not
    change included. `may_lead` (B,).
    """

    replicas: Int32s
    leader: Int64s
    loads: Int64s
    may_lead: Bools

    def alternatives(self) -> tuple[Int64s, Int64s]:
        """Every (row, other replica that may lead it)."""
        may = (self.replicas >= 0) & (self.replicas != self.leader[:, None]) & self.may_lead[self.replicas]
        row, column = np.nonzero(may)
        return row, self.replicas[row, column].astype(np.int64)

    def shift(self, rows: Int64s, to: Int64s) -> None:
        np.subtract.at(self.loads, self.leader[rows], 1)
        np.add.at(self.loads, to, 1)
        self.leader[rows] = to


def even_leaders(
    targets: Int32s, may_change: Bools, may_lead: Bools, led_besides: Int64s | None = None
) -> tuple[Int64s, Int64s]:
    """Rows whose preferred leader should change, and the broker index that should be first.

    `targets` (P, width) broker indices, −1 for padding and unknown; `may_change` (P,); `may_lead` (B,); `led_besides`
    (B,) preferred leaders of partitions that are not in `targets`, which count and stay.

    Constraints: a partition's leader is one of its replicas; no fenced broker becomes preferred leader.
    Goals, in order: the least sum of squared leaderships per broker (floor/ceil of the mean wherever the replica sets
    allow it); few changes.
    Method: leaders flow from broker to broker along partitions that both hold, one min-cost flow over brokers a round.
    A partition offers each of its followers but can take only one, so a round may fall short; then single paths, from
    brokers that lead most towards those that lead two fewer, finish it.
    Bound: when no such path is left, no reordering is better (a path visits a broker once, so it needs no partition
    twice). Test: tests/reassign/optimizer/test_leaders.py.
    """
    rows = np.flatnonzero(may_change & (targets[:, 0] >= 0))
    known = targets[:, 0][targets[:, 0] >= 0]
    before = targets[rows, 0].astype(np.int64)
    loads = np.bincount(known, minlength=len(may_lead)) + (0 if led_besides is None else led_besides)
    state = _Leadership(targets[rows], before.copy(), loads, may_lead)
    for _ in range(BULK_ROUNDS):
        if _is_balanced(state.loads, may_lead) or not _shift_in_bulk(state):
            break
    while not _is_balanced(state.loads, may_lead) and _shift_single_path(state):
        pass
    changed = np.flatnonzero(state.leader != before)
    return rows[changed], state.leader[changed]


def leaders_among(targets: Int32s, rows: Int64s, choices: Bools, may_lead: Bools) -> tuple[Int64s, Int64s]:
    """Rows whose preferred leader should change, and the broker index that should be first.

    `targets` and `may_lead` as in `even_leaders`; `rows` (N,) may change, `choices` (N, width) marks the replicas in
    `targets[rows]` of which one should be first, at least one in each row.

    Constraint: in each of `rows` a marked replica is first. Goals, method and bound: those of `even_leaders`, for which
    a replica that is not marked does not exist. Where the marked replicas of each row are in one rack, leaders are as
    level as can be in each rack.
    """
    if not len(rows):
        return rows, rows
    nth = np.arange(len(rows))
    marked, first = targets[rows], choices.argmax(axis=1)
    leader = marked[nth, first]
    marked[~choices] = -1
    marked[nth, first] = -1
    marked[nth, 0] = leader
    narrowed = targets.copy()
    narrowed[rows] = marked
    may_change = np.zeros(len(targets), dtype=np.bool_)
    may_change[rows] = True
    shifted, to = even_leaders(narrowed, may_change, may_lead)
    narrowed[shifted, 0] = to
    changed = np.flatnonzero(narrowed[:, 0] != targets[:, 0])
    return changed, narrowed[changed, 0].astype(np.int64)


def _is_balanced(loads: Int64s, may_lead: Bools) -> bool:
    able = loads[may_lead]
    return not len(able) or int(loads.max()) - int(able.min()) <= 1


def _shift_in_bulk(state: _Leadership) -> bool:
    """One round of flow over brokers. False when nothing moved."""
    row, to = state.alternatives()
    brokers = len(state.loads)
    pair, pair_of, count = np.unique(state.leader[row] * brokers + to, return_inverse=True, return_counts=True)
    units = _shifts(state.loads, pair // brokers, pair % brokers, count)
    by_pair = np.argsort(pair_of, kind="stable")
    nth = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    moved = by_pair[nth < units[pair_of[by_pair]]]
    _, once = np.unique(row[moved], return_index=True)
    state.shift(row[moved][once], to[moved][once])
    return len(once) > 0


def _shifts(loads: Int64s, tail: Int64s, head: Int64s, capacity: Int64s) -> Int64s:
    """Leaderships to shift along each pair of brokers."""
    builder = NetworkBuilder()
    brokers = builder.nodes(loads)
    (sink,) = builder.nodes(np.zeros(1, dtype=np.int64)).tolist()
    along = builder.add(brokers[tail], brokers[head], capacity, 1)
    # Any evening is worth more shifts than a path can have.
    worth = len(loads) + 1
    broker, below, above = _steps(loads)
    builder.add(brokers[broker], np.full(len(broker), sink), above - below, (below + above) * worth)
    return solve(builder.network(sink)).flow[along]


def _steps(loads: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Each broker's staircase of leaderships, as broker, from, to: fine around the mean and around what it leads problem."""
    mean, most = int(loads.sum()) // len(loads), int(loads.sum())
    reach = np.concatenate((np.arange(9), 8 + np.cumsum(2 ** np.arange(1, 32))))
    reach = np.concatenate((-reach, reach))
    edges = np.clip(
        np.hstack([loads[:, None] + reach, np.broadcast_to(mean + reach, (len(loads), len(reach)))]), 0, most
    )
    edges = np.sort(np.hstack([edges, np.broadcast_to([0, most], (len(loads), 2))]))
    broker, column = np.nonzero(edges[:, 1:] > edges[:, :-1])
    return broker, edges[broker, column], edges[broker, column + 1]


def _shift_single_path(state: _Leadership) -> bool:
    """Shift one leadership along a path from a broker to one that leads at least two fewer. False where none is left."""
    row, to = state.alternatives()
    brokers = len(state.loads)
    shiftable = np.zeros((brokers, brokers), dtype=np.bool_)
    shiftable[state.leader[row], to] = True
    for load in np.unique(state.loads)[::-1].tolist():
        path = _path(shiftable, state.loads, load)
        if path:
            _shift_along(state, path)
            return True
    return False


def _path(shiftable: Bools, loads: Int64s, load: int) -> list[int]:
    """Brokers from one that leads `load` to one that leads at most load − 2, breadth first; empty where there is none."""
    came_from = np.where(loads == load, -1, -2)
    frontier = np.flatnonzero(loads == load)
    while len(frontier):
        reached = shiftable[frontier].any(axis=0) & (came_from == -2)
        fresh = np.flatnonzero(reached)
        came_from[fresh] = frontier[shiftable[np.ix_(frontier, fresh)].argmax(axis=0)]
        low = fresh[loads[fresh] <= load - 2]
        if len(low):
            return _back(came_from, int(low[0]))
        frontier = fresh
    return []


def _back(came_from: Int64s, broker: int) -> list[int]:
    path = [broker]
    while came_from[path[0]] >= 0:
        path.insert(0, int(came_from[path[0]]))
    return path


def _shift_along(state: _Leadership, path: list[int]) -> None:
    for from_broker, to_broker in reversed(list(pairwise(path))):
        led = np.flatnonzero(state.leader == from_broker)
        row = led[(state.replicas[led] == to_broker).any(axis=1).argmax()]
        state.shift(np.array([row]), np.array([to_broker]))
