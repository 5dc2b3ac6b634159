"""Brokers for added replicas: distributes each rack's quotas so that no partition gets a broker twice."""

from dataclasses import dataclass

import numpy as np

from rackspan.model.partitions import Bools, Int32s, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Additions:
    """Replicas that a partition gets: `row` and `broker` (index) of each, shape (M,)."""

    row: Int64s
    broker: Int64s


def distribute_additions(
    row: Int64s,
    rack: Int64s,
    quotas: Int64s,
    rack_of_broker: Int32s,
    held: Int32s,
    can_receive: Bools,
    *,
    optional: bool = False,
) -> Additions:
    """Give every addition a broker of its rack.

    `row` and `rack` (M,) are the additions, `quotas` (B,) how many each broker takes, summing to M rack by rack,
    `held` (P, width) the broker indices that each row had before, `can_receive` (B,). An `optional` addition that fits no quota gets −1.

    Constraints: the broker of an addition is in its rack and can receive; no partition gets a broker twice.
    Goal: the quotas; neighbours in row order, which are partitions of one topic, go to different brokers.
    Method: brokers in interleaved order against additions in row order, then conflicting neighbours swap. Where no swap
    helps, the least excess broker that fits gets it and the quotas differ by one.
    Bound: none is needed for legality; conflicts exist only where a rack may hold two replicas of a partition.
    Test: tests/reassign/optimizer/test_additions.py.
    """
    broker = np.full(len(row), -1, dtype=np.int64)
    order = np.lexsort((row, rack))
    starts = np.searchsorted(rack[order], np.arange(int(rack_of_broker.max(initial=0)) + 2))
    for code in range(len(starts) - 1):
        selected = order[starts[code] : starts[code + 1]]
        if len(selected):
            brokers = np.flatnonzero((rack_of_broker == code) & can_receive)
            broker[selected] = _interleaved(brokers, quotas[brokers])
            broker[selected] = _Swapper(row[selected], broker[selected], held, brokers, quotas).settled(optional)
    return Additions(row, broker)


def _interleaved(brokers: Int64s, quotas: Int64s) -> Int64s:
    """Each broker as often as its quota, spread evenly over the sequence."""
    repeated = np.repeat(np.arange(len(brokers)), quotas)
    nth = np.arange(len(repeated)) - np.repeat(np.cumsum(quotas) - quotas, quotas)
    return brokers[repeated[np.lexsort((repeated, (nth + 0.5) / quotas[repeated]))]]


class _Swapper:
    """Conflicts of one rack's additions, solved by swapping brokers between additions."""

    def __init__(self, row: Int64s, broker: Int64s, held: Int32s, brokers: Int64s, quotas: Int64s) -> None:
        self.row, self.broker, self.held = row, broker, held
        self.brokers, self.quotas = brokers, quotas
        self._siblings = _siblings(row)

    def settled(self, optional: bool) -> Int64s:
        for slot in np.flatnonzero(self._conflicting()).tolist():
            if not self._fits(slot, int(self.broker[slot])) and not self._swapped(slot):
                self.broker[slot] = -1 if optional else self._least_loaded(slot)
        return self.broker

    def _conflicting(self) -> Bools:
        conflicting = (self.held[self.row] == self.broker[:, None]).any(axis=1)
        # Rows are sorted, so a partition's additions are neighbours; equal brokers among them are found pairwise.
        for shift in range(1, max((len(sibling) for sibling in self._siblings.values()), default=1)):
            conflicting[shift:] |= (self.row[shift:] == self.row[:-shift]) & (
                self.broker[shift:] == self.broker[:-shift]
            )
        return np.asarray(conflicting)

    def _fits(self, slot: int, broker: int) -> bool:
        row = int(self.row[slot])
        if broker in self.held[row].tolist():
            return False
        return all(int(self.broker[other]) != broker for other in self._siblings.get(row, ()) if other != slot)

    def _swapped(self, slot: int) -> bool:
        """Swap with the nearest addition that leaves both without conflict."""
        selected, count = int(self.broker[slot]), len(self.broker)
        for step in range(1, count):
            other = (slot + step) % count
            theirs = int(self.broker[other])
            if theirs != selected and self._fits(slot, theirs) and self._fits(other, selected):
                self.broker[slot], self.broker[other] = theirs, selected
                return True
        return False

    def _least_loaded(self, slot: int) -> int:
        excess = (
            np.bincount(self.broker, minlength=int(self.brokers.max()) + 1)[self.brokers] - self.quotas[self.brokers]
        )
        fitting = [
            broker for broker in self.brokers[np.argsort(excess, kind="stable")].tolist() if self._fits(slot, broker)
        ]
        return int(fitting[0])


def _siblings(row: Int64s) -> dict[int, list[int]]:
    """Positions of the rows that have more than one addition in the rack."""
    repeated = np.flatnonzero(np.diff(row, append=-1) == 0)
    found: dict[int, list[int]] = {}
    for slot in np.unique(np.concatenate([repeated, repeated + 1])).tolist():
        found.setdefault(int(row[slot]), []).append(slot)
    return found
