"""Which replica of each partition leads, when replica sets are given: as many for each broker as wanted."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from rackspan.model.partitions import Bools, Int32s, Int64s
from rackspan.placement.balanced.broker_table import Fleet
from rackspan.placement.balanced.strides import GOLDEN_SHARE
from rackspan.placement.balanced.water_fill import SAME_LEVEL, Float64s

STRETCHES: Final = 64
"""In how many goes leaders are guessed: enough that the last one's errors are few, few enough to stay array work."""

Handover: TypeAlias = tuple[int, int, int]
"""Giver, taker, partition."""


def leader_in_front(fleet: Fleet, columns: Int32s, wanted: Int64s) -> tuple[Int32s, bool]:
    """`columns` (replication factor, P) with each column's preferred leader in row 0, and whether all lead as `wanted`.

    Constraints: each column keeps its replicas per rack, each broker its number of replicas.
    Goal: broker b leads wanted[b] partitions.
    Method: a first guess at the rates wanted / replicas, off by a few. Then, while a broker leads too many, a leader is
        handed on along the shortest chain of partitions to one that leads too few (augmenting paths: what no chain
        reaches, these replica sets do not allow). Where there is none, a broker that leads too few changes place with
        one of its own rack that holds a partition led by one that leads too many; the sets then allow it.
    Bound: O(P × RF) and, for each of the few leaders misplaced by the guess (about one a broker), one breadth-first search.
    """
    leaders = _Leaders(fleet, columns.copy(), _guess(fleet, columns, wanted), wanted)
    reached = leaders.hand_out()
    row = (leaders.columns == leaders.leader).argmax(axis=0)
    ordered = leaders.columns
    ordered[row, np.arange(columns.shape[1])] = ordered[0]
    ordered[0] = leaders.leader
    return ordered, reached


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

    `leader`: index of each partition's, (P,). `surplus`: leaders each broker has beyond those wanted. `led[b]`: at least
    the partitions b leads now; what it has handed on is sifted out when next looked at.
    """

    fleet: Fleet
    columns: Int32s
    leader: Int32s
    wanted: Int64s
    surplus: Int64s = field(init=False)
    led: list[Int64s] = field(init=False)

    def __post_init__(self) -> None:
        count = np.bincount(self.leader, minlength=len(self.fleet))
        self.surplus = count - self.wanted
        self.led = np.split(np.argsort(self.leader, kind="stable"), np.cumsum(count)[:-1])

    def hand_out(self) -> bool:
        """Until everybody leads as many as wanted, or nobody can be helped; returns which."""
        over = np.flatnonzero(self.surplus > 0).tolist()
        while over:
            giver = next((one for one in over if self._relieve(one)), None)
            if giver is None:
                return False
            over = [one for one in over if self.surplus[one] > 0]
        return True

    def _relieve(self, giver: int) -> bool:
        """Take one leader from `giver`."""
        chain = self._chain(giver, self.surplus < 0) or self._after_exchange(giver)
        for one, taker, partition in chain:
            self._hand_on(one, taker, partition)
        return bool(chain)

    def _after_exchange(self, giver: int) -> list[Handover]:
        """Let a broker that leads too few into a partition of `giver`, by changing places with one of its rack there."""
        for taker in np.flatnonzero(self.surplus < 0).tolist():
            follows = np.flatnonzero((self.columns == taker).any(axis=0) & (self.leader != taker))
            for partition in self._led_by(giver).tolist():
                if self._exchange(taker, partition, follows):
                    return [(giver, taker, partition)]
        return []

    def _exchange(self, taker: int, partition: int, follows: Int64s) -> bool:
        """Swap `taker` into `partition`, out of one of those it `follows` in; its counterpart there is of the same rack."""
        for row, other in enumerate(self.columns[:, partition].tolist()):
            if self.fleet.rack[other] != self.fleet.rack[taker]:
                continue
            free = follows[~(self.columns[:, follows] == other).any(axis=0)]
            if len(free):
                self.columns[self.columns[:, free[0]] == taker, free[0]] = other
                self.columns[row, partition] = taker
                return True
        return False

    def _chain(self, start: int, takes: Bools) -> list[Handover]:
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
        mine = self._led_by(giver)
        takers, at = np.unique(self.columns[:, mine], return_index=True)
        return list(zip(takers.tolist(), mine[at % max(len(mine), 1)].tolist(), strict=True))

    def _led_by(self, broker: int) -> Int64s:
        mine = self.led[broker]
        self.led[broker] = mine[self.leader[mine] == broker]
        return self.led[broker]

    def _hand_on(self, giver: int, taker: int, partition: int) -> None:
        self.leader[partition] = taker
        self.surplus[giver] -= 1
        self.surplus[taker] += 1
        self.led[taker] = np.append(self.led[taker], partition)


def _back_to(start: int, taker: int, came: dict[int, Handover]) -> list[Handover]:
    chain = [came[taker]]
    while chain[-1][0] != start:
        chain.append(came[chain[-1][0]])
    return chain
