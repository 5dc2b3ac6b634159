"""Which of the chosen brokers may stop together: the search's view of the rule, by pairs and by the partitions beyond them."""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from rackspan.model import Bools, Int32s, Int64s, any_in_row, count_in_row
from rackspan.restart.stopping import InSyncRows


@dataclass(frozen=True)
class Conflicts:
    """The chosen brokers 0 to n - 1, and what forbids to stop them together.

    `rows`: the partitions with replicas in sync on them; `local` (E, W): the chosen broker of each, −1 for any other.
    `voter` (n,): in the process of a voter; `voters_most`: how many of those one batch may stop. `most`: brokers in a batch, 0
    if the controllers have no majority whichever broker is stopped.
    """

    rows: InSyncRows
    local: Int32s
    voter: Bools
    voters_most: int
    most: int

    @property
    def size(self) -> int:
        return len(self.voter)

    @cached_property
    def blocked(self) -> Bools:
        """The brokers that may not stop even without any other. Shape (n,)."""
        if self.most < 1:
            return np.ones(self.size, dtype=np.bool_)
        blocked = self.voter & (self.voters_most < 1)
        for column in self.local.T:
            harmed = self._blocks_without(column[:, None] == self.local)
            blocked[column[harmed & (column >= 0)]] = True
        return blocked

    @cached_property
    def pairs(self) -> Bools:
        """Which two brokers may not stop together. Shape (n, n), False on the diagonal."""
        pairs = np.zeros((self.size, self.size), dtype=np.bool_)
        if self.most < 2:
            pairs[:] = True
        if self.voters_most < 2:
            pairs |= self.voter[:, None] & self.voter[None, :]
        for first, second in combinations(range(self.local.shape[1]), 2):
            both = np.flatnonzero((self.local[:, first] >= 0) & (self.local[:, second] >= 0))
            if len(both) == 0:
                continue
            rows, stopped = self.rows.take(both), np.zeros((len(both), self.local.shape[1]), dtype=np.bool_)
            stopped[:, [first, second]] = True
            harmed = both[rows.blocks(rows.in_sync & ~stopped)]
            pairs[self.local[harmed, first], self.local[harmed, second]] = True
        pairs |= pairs.T
        np.fill_diagonal(pairs, val=False)
        return pairs

    @cached_property
    def beyond_pairs(self) -> Int64s:
        """The rows with three chosen brokers of which no two conflict: they may forbid what no pair does."""
        triples = np.zeros(len(self.local), dtype=np.bool_)
        apart = ~self.pairs
        for columns in combinations(range(self.local.shape[1]), 3):
            brokers = [self.local[:, column] for column in columns]
            free = np.logical_and.reduce([broker >= 0 for broker in brokers])
            for broker, other in combinations(brokers, 2):
                free &= apart[broker, other]
            triples |= free
        return np.flatnonzero(triples)

    @cached_property
    def _rows_of(self) -> list[Int64s]:
        """The rows beyond pairs of each broker."""
        local = self.local[self.beyond_pairs]
        row, column = np.nonzero(local >= 0)
        broker = local[row, column]
        order = np.argsort(broker, kind="stable")
        return list(np.split(self.beyond_pairs[row[order]], np.searchsorted(broker[order], np.arange(1, self.size))))

    def fits(self, broker: int, batch: Bools) -> bool:
        """Whether a broker may stop with a batch, given as a mask (n,), which may stop without it."""
        if bool((self.pairs[broker] & batch).any()) or np.count_nonzero(batch) >= self.most:
            return False
        if self.voter[broker] and np.count_nonzero(batch & self.voter) >= self.voters_most:
            return False
        rows = self._rows_of[broker]
        return len(rows) == 0 or not self._forbids(rows, broker, batch)

    def _forbids(self, rows: Int64s, broker: int, batch: Bools) -> bool:
        stopped = np.append(batch, False)
        stopped[broker] = True
        stops, judged = stopped[self.local[rows]], self.rows.take(rows)
        return bool(judged.blocks(judged.in_sync & ~stops).any())

    def may_stop(self, batch: Bools) -> bool:
        """Whether the whole rule allows a batch."""
        if np.count_nonzero(batch) > self.most or np.count_nonzero(batch & self.voter) > self.voters_most:
            return False
        return not bool(self._blocks_without(np.append(batch, False)[self.local]).any())

    def forbidding(self, batch: Bools) -> Int64s:
        """The rows that forbid a batch."""
        return np.flatnonzero(self._blocks_without(np.append(batch, False)[self.local]))

    def without(self, brokers: Bools) -> "Conflicts":
        """The same for the chosen brokers that are not in `brokers`; those stay up."""
        kept = np.append(np.where(brokers, -1, np.cumsum(~brokers) - 1), -1).astype(np.int32)
        local = kept[self.local]
        used = any_in_row(local >= 0)
        return Conflicts(self.rows.take(used), local[used], self.voter[~brokers], self.voters_most, self.most)

    @cached_property
    def chosen_count(self) -> Int64s:
        """Chosen brokers in sync of each row."""
        return count_in_row(self.local >= 0)

    def _blocks_without(self, stopped: Bools) -> Bools:
        return self.rows.blocks(self.rows.in_sync & ~stopped)


def chosen_conflicts(
    rows: InSyncRows, chosen: npt.NDArray[np.int64], brokers: int, voter: Bools, voters_most: int, most: int
) -> Conflicts:
    """The conflicts among the `chosen` broker indices, of `brokers` in all. Rows that can forbid nothing are left out."""
    place = np.full(brokers + 1, -1, dtype=np.int32)
    place[chosen] = np.arange(len(chosen), dtype=np.int32)
    local = np.where(rows.in_sync, place[rows.brokers], np.int32(-1))
    used = any_in_row(local >= 0) & (rows.least > 0)
    return Conflicts(rows.take(used), local[used], voter, voters_most, most)
