"""Which replica of each partition leads, when the replica sets are given: as level as those sets allow."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from rackspan.model.partitions import Int32s, Int64s
from rackspan.placement.fleet import Fleet
from rackspan.placement.strides import GOLDEN_SHARE
from rackspan.placement.water_fill import SAME_LEVEL, Float64s

STRETCHES: Final = 64
"""In how many goes leaders are guessed: enough that the last one's errors are few, few enough to stay array work."""

Handover: TypeAlias = tuple[int, int, int]
"""Giver, taker, partition."""


def leader_in_front(fleet: Fleet, columns: Int32s, wanted: Int64s) -> Int32s:
    """`columns` (replication factor, P) with each column's preferred leader in row 0.

    Constraints: only a broker that may lead leads, wherever a column has one.
    Goal: the levels (leaders held + given) / weight, sorted downwards, are lexicographically least for these sets.
    Method: a first guess at the rates `wanted` / replicas, off by a few; then, while a chain of partitions exists along
        which a leader can be handed on from a broker to one that stays below the level the first had, it is handed on.
        Without such a chain no choice of leaders is better under any convex measure.
    Bound: O(P × RF) and, for each of the few leaders misplaced by the guess (about one a broker), a breadth-first search.
    Source: Harvey, Ladner, Lovász, Tamir, Semi-matchings for bipartite graphs and load balancing, 2003.
    """
    leaders = _Leaders(fleet, columns, _guess(fleet, columns, wanted))
    leaders.level_out()
    row = (columns == leaders.leader).argmax(axis=0)
    ordered = columns.copy()
    ordered[row, np.arange(columns.shape[1])] = columns[0]
    ordered[0] = leaders.leader
    return ordered


def _guess(fleet: Fleet, columns: Int32s, wanted: Int64s) -> Int32s:
    """A leader for each column, so that each broker leads about as many as `wanted`.

    Stretch after stretch, each in proportion to the share each broker still should lead of what it still holds: what one
    stretch misses the next makes good.
    """
    leader = np.empty(columns.shape[1], dtype=np.int32)
    held = np.bincount(columns.reshape(-1), minlength=len(fleet))
    still = wanted.copy()
    for stretch in np.array_split(np.arange(columns.shape[1]), STRETCHES):
        part = columns[:, stretch]
        rate = np.where(fleet.may_lead, np.maximum(still, 0) / np.maximum(held, 1) + SAME_LEVEL, 0.0)
        leader[stretch] = _in_proportion(part, rate)
        held -= np.bincount(part.reshape(-1), minlength=len(fleet))
        still -= np.bincount(leader[stretch], minlength=len(fleet))
    return leader


def _in_proportion(columns: Int32s, rate: Float64s) -> Int32s:
    """One broker of each column, as evenly in proportion to `rate` (B,) as runs of like columns allow."""
    upto = np.cumsum(rate[columns], axis=0)
    column = np.arange(columns.shape[1])
    row = (upto <= column * GOLDEN_SHARE % 1.0 * upto[-1]).sum(axis=0)
    return np.asarray(columns[np.minimum(row, len(columns) - 1), column])


@dataclass(slots=True, eq=False)
class _Leaders:
    """Leaders being handed on.

    `leader`: index of each partition's, (P,). `count`: leaders given to each broker. `led[b]`: at least the partitions b
    leads now; what it has handed on is sifted out when next looked at. `settled`: those nobody can take a leader from.
    """

    fleet: Fleet
    columns: Int32s
    leader: Int32s
    count: Int64s = field(init=False)
    held: Float64s = field(init=False)
    led: list[Int64s] = field(init=False)
    settled: list[int] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.count = np.bincount(self.leader, minlength=len(self.fleet))
        self.held = self.fleet.shelved(self.fleet.leaders, len(self.leader))
        self.led = np.split(np.argsort(self.leader, kind="stable"), np.cumsum(self.count)[:-1])

    def level_out(self) -> None:
        while True:
            highest, level = self._highest()
            takes = self._level_with_one_more() < _below(level)
            if not takes.any():
                return
            chain = self._chain(highest, takes)
            for giver, taker, partition in chain:
                self._hand_on(giver, taker, partition)
            if not chain:
                # Whoever it can reach stands too high to help it, and later chains start no higher than this one.
                self.settled.append(highest)

    def _highest(self) -> tuple[int, float]:
        level = np.where(self.count > 0, (self.held + self.count) / self.fleet.weight, -np.inf)
        level[~self.fleet.may_lead & (self.count > 0)] = np.inf
        level[self.settled] = -np.inf
        broker = int(level.argmax())
        return broker, float(level[broker])

    def _level_with_one_more(self) -> Float64s:
        return np.where(self.fleet.may_lead, (self.held + self.count + 1) / self.fleet.weight, np.inf)

    def _chain(self, start: int, takes: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[Handover]:
        """The shortest way to hand a leader on from `start` to a broker that `takes`; empty if there is none."""
        came: dict[int, Handover] = {}
        waiting = deque([start])
        while waiting:
            giver = waiting.popleft()
            for taker, partition in self._neighbours(giver):
                if taker == start or taker in came:
                    continue
                came[taker] = (giver, taker, partition)
                if takes[taker]:
                    return _back_to(start, taker, came)
                waiting.append(taker)
        return []

    def _neighbours(self, giver: int) -> list[tuple[int, int]]:
        """Every broker that follows in a partition `giver` leads, with one such partition."""
        mine = self.led[giver]
        mine = self.led[giver] = mine[self.leader[mine] == giver]
        takers, at = np.unique(self.columns[:, mine], return_index=True)
        return list(zip(takers.tolist(), mine[at % max(len(mine), 1)].tolist(), strict=True))

    def _hand_on(self, giver: int, taker: int, partition: int) -> None:
        self.leader[partition] = taker
        self.count[giver] -= 1
        self.count[taker] += 1
        self.led[taker] = np.append(self.led[taker], partition)


def _back_to(start: int, taker: int, came: dict[int, Handover]) -> list[Handover]:
    chain = [came[taker]]
    while chain[-1][0] != start:
        chain.append(came[chain[-1][0]])
    return chain


def _below(level: float) -> float:
    return level if level == np.inf else level - SAME_LEVEL * max(1.0, abs(level))
