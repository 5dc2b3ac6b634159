"""Brokers for arrivals: each rack's quotas handed out so that no partition meets a broker twice."""

from dataclasses import dataclass

import numpy as np

from rackspan.model.partitions import Bools, Int32s, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Replicas that a partition gets: `row` and `broker` (index) of each, shape (M,)."""

    row: Int64s
    broker: Int64s


def hand_out(
    row: Int64s, rack: Int64s, quotas: Int64s, rack_of_broker: Int32s, held: Int32s, *, optional: bool = False
) -> Arrivals:
    """Give every arrival a broker of its rack.

    `row` and `rack` (M,) are the arrivals, `quotas` (B,) how many each broker takes, summing to M rack by rack,
    `held` (P, width) the broker indices that each row had before. An `optional` arrival that fits no quota gets −1.

    Constraints: an arrival's broker stands in its rack; no partition meets a broker twice.
    Goal: the quotas; neighbours in row order, which are partitions of one topic, go to different brokers.
    Method: brokers in interleaved order against arrivals in row order, then conflicting neighbours swap. Where no swap
    helps, the least taken broker that fits gets it and the quotas differ by one.
    Bound: none is needed for legality; conflicts exist only where a rack may hold two replicas of a partition.
    """
    broker = np.full(len(row), -1, dtype=np.int64)
    order = np.lexsort((row, rack))
    starts = np.searchsorted(rack[order], np.arange(int(rack_of_broker.max(initial=0)) + 2))
    for code in range(len(starts) - 1):
        mine = order[starts[code] : starts[code + 1]]
        if len(mine):
            brokers = np.flatnonzero(rack_of_broker == code)
            broker[mine] = _interleaved(brokers, quotas[brokers])
            broker[mine] = _Swapper(row[mine], broker[mine], held, brokers, quotas).settled(optional)
    return Arrivals(row, broker)


def _interleaved(brokers: Int64s, quotas: Int64s) -> Int64s:
    """Each broker as often as its quota says, spread evenly over the sequence."""
    repeated = np.repeat(np.arange(len(brokers)), quotas)
    nth = np.arange(len(repeated)) - np.repeat(np.cumsum(quotas) - quotas, quotas)
    return brokers[repeated[np.lexsort((repeated, (nth + 0.5) / quotas[repeated]))]]


class _Swapper:
    """Conflicts of one rack's arrivals, solved by swapping brokers between arrivals."""

    def __init__(self, row: Int64s, broker: Int64s, held: Int32s, brokers: Int64s, quotas: Int64s) -> None:
        self.row, self.broker, self.held = row, broker, held
        self.brokers, self.quotas = brokers, quotas
        self._siblings = _siblings(row)

    def settled(self, optional: bool) -> Int64s:
        for place in np.flatnonzero(self._conflicting()).tolist():
            if not self._fits(place, int(self.broker[place])) and not self._swapped(place):
                self.broker[place] = -1 if optional else self._least_taken(place)
        return self.broker

    def _conflicting(self) -> Bools:
        there = (self.held[self.row] == self.broker[:, None]).any(axis=1)
        # Rows are sorted, so a partition's arrivals are neighbours; equal brokers among them are found pairwise.
        for shift in range(1, max((len(one) for one in self._siblings.values()), default=1)):
            there[shift:] |= (self.row[shift:] == self.row[:-shift]) & (self.broker[shift:] == self.broker[:-shift])
        return np.asarray(there)

    def _fits(self, place: int, broker: int) -> bool:
        row = int(self.row[place])
        if broker in self.held[row].tolist():
            return False
        return all(int(self.broker[other]) != broker for other in self._siblings.get(row, ()) if other != place)

    def _swapped(self, place: int) -> bool:
        """Swap with the nearest arrival that leaves both without conflict."""
        mine, count = int(self.broker[place]), len(self.broker)
        for step in range(1, count):
            other = (place + step) % count
            theirs = int(self.broker[other])
            if theirs != mine and self._fits(place, theirs) and self._fits(other, mine):
                self.broker[place], self.broker[other] = theirs, mine
                return True
        return False

    def _least_taken(self, place: int) -> int:
        taken = (
            np.bincount(self.broker, minlength=int(self.brokers.max()) + 1)[self.brokers] - self.quotas[self.brokers]
        )
        fitting = [
            broker for broker in self.brokers[np.argsort(taken, kind="stable")].tolist() if self._fits(place, broker)
        ]
        return int(fitting[0])


def _siblings(row: Int64s) -> dict[int, list[int]]:
    """Places of the rows that have more than one arrival in the rack."""
    repeated = np.flatnonzero(np.diff(row, append=-1) == 0)
    found: dict[int, list[int]] = {}
    for place in np.unique(np.concatenate([repeated, repeated + 1])).tolist():
        found.setdefault(int(row[place]), []).append(place)
    return found
