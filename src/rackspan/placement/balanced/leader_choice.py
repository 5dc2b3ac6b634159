"""Chooses the preferred leader of each partition among given replicas, so that each broker leads its quota."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from rackspan.model.partitions import Bools, Int32s, Int64s
from rackspan.placement.balanced.broker_table import BrokerTable
from rackspan.placement.balanced.strides import GOLDEN_SHARE
from rackspan.placement.balanced.water_fill import SAME_LEVEL, Float64s

STRETCHES: Final = 64
"""Leaders are guessed in so many stretches: enough for few errors in the last one, few enough to stay array work."""

Handover: TypeAlias = tuple[int, int, int]
"""Broker that leads too many, broker that takes over, partition."""


def choose_leaders(table: BrokerTable, columns: Int32s, target: Int64s) -> tuple[Int32s, bool]:
    """`columns` (replication factor, P) with each column's preferred leader in row 0, and whether all brokers lead `target`.

    Constraints: each column keeps its replicas per rack, each broker its number of replicas.
    Goal: broker b leads target[b] partitions.
    Method: a first guess at the rates target / replicas, off by a few. Then, while a broker leads too many, leadership
        moves along the shortest chain of partitions to one that leads too few (augmenting paths: what no chain reaches,
        these replica sets do not allow). Where there is no chain, a broker that leads too few is exchanged with one of
        its own rack that holds a partition led by one that leads too many; the sets then allow it.
    Bound: O(P × RF) and, for each of the few leaders misplaced by the guess (about one a broker), one breadth-first search.
    Source: our own. Test: tests/placement/balanced/test_leader_choice.py.
    """
    leaders = _Leaders(table, columns.copy(), _guess(table, columns, target), target)
    reached = leaders.reach_target()
    row = (leaders.columns == leaders.leader).argmax(axis=0)
    ordered = leaders.columns
    ordered[row, np.arange(columns.shape[1])] = ordered[0]
    ordered[0] = leaders.leader
    return ordered, reached


def _guess(table: BrokerTable, columns: Int32s, target: Int64s) -> Int32s:
    """A leader for each column, so that each broker leads about `target` partitions.

    Stretch after stretch, each in proportion to what a broker still has to lead of what it still holds, so that an error
    in one stretch is corrected in the next.
    """
    leader = np.empty(columns.shape[1], dtype=np.int32)
    held = np.bincount(columns.reshape(-1), minlength=len(table))
    remaining = target.copy()
    for stretch in np.array_split(np.arange(columns.shape[1]), STRETCHES):
        part = columns[:, stretch]
        rate = np.where(table.may_lead, np.maximum(remaining, 0) / np.maximum(held, 1) + SAME_LEVEL, 0.0)
        leader[stretch] = _in_proportion(part, rate)
        held -= np.bincount(part.reshape(-1), minlength=len(table))
        remaining -= np.bincount(leader[stretch], minlength=len(table))
    return leader


def _in_proportion(columns: Int32s, rate: Float64s) -> Int32s:
    """One broker of each column, in proportion to `rate` (B,), as evenly as runs of equal columns allow."""
    upto = np.cumsum(rate[columns], axis=0)
    column = np.arange(columns.shape[1])
    row = (upto <= column * GOLDEN_SHARE % 1.0 * upto[-1]).sum(axis=0)
    return np.asarray(columns[np.minimum(row, len(columns) - 1), column])


@dataclass(slots=True, eq=False)
class _Leaders:
    """The leaders while they move to their targets.

    `leader`: broker index of each partition's leader, (P,). `surplus`: leaders each broker has above its target.
    `led[b]`: at least the partitions b leads now; those it no longer leads are removed on the next read.
    """

    table: BrokerTable
    columns: Int32s
    leader: Int32s
    target: Int64s
    surplus: Int64s = field(init=False)
    led: list[Int64s] = field(init=False)

    def __post_init__(self) -> None:
        count = np.bincount(self.leader, minlength=len(self.table))
        self.surplus = count - self.target
        self.led = np.split(np.argsort(self.leader, kind="stable"), np.cumsum(count)[:-1])

    def reach_target(self) -> bool:
        """Move leaders until every broker has its target, or none can move. Returns whether all have it."""
        over = np.flatnonzero(self.surplus > 0).tolist()
        while over:
            giver = next((broker for broker in over if self._move_one_leader(broker)), None)
            if giver is None:
                return False
            over = [broker for broker in over if self.surplus[broker] > 0]
        return True

    def _move_one_leader(self, giver: int) -> bool:
        """Move one leader away from `giver`; False where there is no way."""
        chain = self._chain(giver, self.surplus < 0) or self._after_exchange(giver)
        for leader, taker, partition in chain:
            self._move_leader(leader, taker, partition)
        return bool(chain)

    def _after_exchange(self, giver: int) -> list[Handover]:
        """Exchange a broker that leads too few with one of its rack in a partition of `giver`; it can then take the lead."""
        for taker in np.flatnonzero(self.surplus < 0).tolist():
            follows = np.flatnonzero((self.columns == taker).any(axis=0) & (self.leader != taker))
            for partition in self._led_by(giver).tolist():
                if self._exchange(taker, partition, follows):
                    return [(giver, taker, partition)]
        return []

    def _exchange(self, taker: int, partition: int, follows: Int64s) -> bool:
        """Swap `taker` into `partition` and a broker of the same rack out of it, into one that `taker` only `follows`."""
        for row, other in enumerate(self.columns[:, partition].tolist()):
            if self.table.rack[other] != self.table.rack[taker]:
                continue
            free = follows[~(self.columns[:, follows] == other).any(axis=0)]
            if len(free):
                self.columns[self.columns[:, free[0]] == taker, free[0]] = other
                self.columns[row, partition] = taker
                return True
        return False

    def _chain(self, start: int, takes: Bools) -> list[Handover]:
        """The shortest chain of handovers from `start` to a broker that `takes`; empty if there is none."""
        reached_by: dict[int, Handover] = {}
        waiting = deque([start])
        while waiting:
            giver = waiting.popleft()
            for taker, partition in self._neighbours(giver):
                if taker == start or taker in reached_by:
                    continue
                reached_by[taker] = (giver, taker, partition)
                if takes[taker]:
                    return _back_to(start, taker, reached_by)
                waiting.append(taker)
        return []

    def _neighbours(self, giver: int) -> list[tuple[int, int]]:
        """Every broker that follows in a partition that `giver` leads, with one such partition."""
        mine = self._led_by(giver)
        takers, at = np.unique(self.columns[:, mine], return_index=True)
        return list(zip(takers.tolist(), mine[at % max(len(mine), 1)].tolist(), strict=True))

    def _led_by(self, broker: int) -> Int64s:
        mine = self.led[broker]
        self.led[broker] = mine[self.leader[mine] == broker]
        return self.led[broker]

    def _move_leader(self, giver: int, taker: int, partition: int) -> None:
        self.leader[partition] = taker
        self.surplus[giver] -= 1
        self.surplus[taker] += 1
        self.led[taker] = np.append(self.led[taker], partition)


def _back_to(start: int, taker: int, reached_by: dict[int, Handover]) -> list[Handover]:
    chain = [reached_by[taker]]
    while chain[-1][0] != start:
        chain.append(reached_by[chain[-1][0]])
    return chain
