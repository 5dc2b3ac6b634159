"""The search for few batches of a restart: which brokers may stop together, greedy batches, CP-SAT, and how few there can be.

Begin with Conflicts: the search's view of the rule, by pairs and by the partitions beyond them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final

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
        order = np.argsort(broker)
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
    place = np.full(brokers, -1, dtype=np.int32)
    place[chosen] = np.arange(len(chosen), dtype=np.int32)
    local = np.where(rows.in_sync, place[rows.brokers], np.int32(-1))
    used = any_in_row(local >= 0) & (rows.least > 0)
    return Conflicts(rows.take(used), local[used], voter, voters_most, most)


_CLIQUE_STARTS: Final = 20
"""Brokers with the most conflicts from which a clique is grown. One is a proof, so more starts only improve it."""

_DENSE_STARTS: Final = 5


@dataclass(frozen=True, slots=True)
class LowerBound:
    """At least so many batches, and why in words."""

    batches: int
    reason: str


def lower_bound(conflicts: Conflicts) -> LowerBound:
    """The largest of all bounds that need no search; none is ever above the fewest. Test: tests/restart/test_planner.py.

    No broker of `conflicts` is blocked.
    Safety is a rule over sets, so pairs are not enough: three replicas of which one must stay in sync forbid only all three.
    """
    if conflicts.size == 0:
        return LowerBound(0, "no broker to restart")
    candidates = [
        LowerBound(1, "one batch at least"),
        LowerBound(
            -(-conflicts.size // conflicts.most), f"{conflicts.size} brokers, {conflicts.most} in a batch at most"
        ),
        *_by_voters(conflicts),
        *_by_partition(conflicts),
        _by_clique(conflicts),
    ]
    return max(candidates, key=lambda bound: bound.batches)


def dense_bound(conflicts: Conflicts) -> LowerBound:
    """By sets of brokers of which any three conflict: a batch has at most two of them.

    Such a set is grown from the brokers with the most forbidden triples. It costs more than the other bounds, so it is
    for plans that these do not prove.
    """
    thirds = _third_brokers(conflicts)
    often: dict[int, int] = {}
    for (first, second), others in thirds.items():
        for broker in (first, second):
            often[broker] = often.get(broker, 0) + others.bit_count()
    best: list[int] = []
    for start in sorted(often, key=lambda broker: (-often[broker], broker))[:_DENSE_STARTS]:
        best = max(best, _grown(thirds, start, conflicts.size), key=len)
    return LowerBound(-(-len(best) // 2), f"of {len(best)} brokers no three may stop together")


def _by_voters(conflicts: Conflicts) -> Iterator[LowerBound]:
    voters = int(np.count_nonzero(conflicts.voter))
    if voters:
        yield LowerBound(
            -(-voters // conflicts.voters_most), f"{voters} controllers, {conflicts.voters_most} may stop together"
        )


def _by_partition(conflicts: Conflicts) -> Iterator[LowerBound]:
    if len(conflicts.rows):
        # At least one: otherwise its chosen brokers were blocked.
        may_stop = conflicts.rows.in_sync_count - conflicts.rows.least
        needed = -(-conflicts.chosen_count // may_stop)
        worst = int(np.argmax(needed))
        yield LowerBound(
            int(needed[worst]),
            f"a partition has {conflicts.chosen_count[worst]} of them, and {may_stop[worst]} may stop together",
        )


def _by_clique(conflicts: Conflicts) -> LowerBound:
    pairs, best = conflicts.pairs, 0
    degree = pairs.sum(axis=1)
    for start in np.argsort(-degree, kind="stable")[:_CLIQUE_STARTS].tolist():
        members, candidates = 1, pairs[start].copy()
        while candidates.any():
            # The candidate with the most conflicts among the candidates.
            among = np.where(candidates, pairs[:, candidates].sum(axis=1), -1)
            candidates &= pairs[int(np.argmax(among))]
            members += 1
        best = max(best, members)
    return LowerBound(best, f"of {best} brokers no two may stop together")


def _third_brokers(conflicts: Conflicts) -> dict[tuple[int, int], int]:
    """For two brokers, in ascending order, the bits of those that may not stop with both of them."""
    rows = conflicts.beyond_pairs
    local, judged = conflicts.local[rows], conflicts.rows.take(rows)
    triples = set[tuple[int, int, int]]()
    for columns in combinations(range(local.shape[1]), 3):
        stopped = np.zeros(local.shape, dtype=np.bool_)
        stopped[:, columns] = True
        chosen = (local[:, columns] >= 0).all(axis=1)
        harmed = local[:, columns][judged.blocks(judged.in_sync & ~stopped) & chosen]
        triples.update(map(tuple, np.unique(np.sort(harmed, axis=1), axis=0).tolist()))
    thirds: dict[tuple[int, int], int] = {}
    for triple in triples:
        for pair in combinations(triple, 2):
            (third,) = set(triple) - set(pair)
            thirds[pair] = thirds.get(pair, 0) | 1 << third
    return thirds


def _grown(thirds: dict[tuple[int, int], int], start: int, size: int) -> list[int]:
    members = [start]
    candidates = (1 << size) - 1 & ~(1 << start)
    while candidates:
        best, best_left = -1, -1
        for broker in _bits(candidates):
            left = candidates
            for member in members:
                left &= thirds.get((min(member, broker), max(member, broker)), 0)
            if left.bit_count() > best_left:
                best, best_left = broker, left.bit_count()
        for member in members:
            candidates &= thirds.get((min(member, best), max(member, best)), 0)
        members.append(best)
    return members if len(members) > 2 else []


def _bits(bits: int) -> list[int]:
    return [place for place in range(bits.bit_length()) if bits >> place & 1]


def greedy_batches(conflicts: Conflicts, racks: Int32s, bound: int) -> list[Bools]:
    """Batches as masks (n,) that hold every broker once. `racks`: the rack code of each; stops once `bound` is met.

    Method: the fewest batches of several greedy orders: saturation (Brélaz's DSATUR) on the pairs that conflict, and first fit
    by rack, by degree and by id; each broker enters the first batch that the whole rule allows it.
    Bound: `lower_bound` says how far the result can be from the fewest. Test: tests/restart/test_planner.py.
    """
    size = conflicts.size
    degree = conflicts.pairs.sum(axis=1)
    orders = (np.lexsort((np.arange(size), racks)), np.lexsort((np.arange(size), -degree)), np.arange(size))
    best = _saturated(conflicts, degree)
    for order in orders:
        if len(best) <= bound:
            break
        tried = _first_fit(conflicts, order.tolist())
        best = min(best, tried, key=len)
    return best


def _first_fit(conflicts: Conflicts, order: Sequence[int]) -> list[Bools]:
    batches: list[Bools] = []
    for broker in order:
        _put(conflicts, broker, batches)
    return batches


def _put(conflicts: Conflicts, broker: int, batches: list[Bools]) -> int:
    for number, batch in enumerate(batches):
        if conflicts.fits(broker, batch):
            batch[broker] = True
            return number
    batches.append(np.zeros(conflicts.size, dtype=np.bool_))
    batches[-1][broker] = True
    return len(batches) - 1


def _saturated(conflicts: Conflicts, degree: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> list[Bools]:
    """Next comes the broker that conflicts with the most batches, then the one of the highest degree, then the first."""
    size = conflicts.size
    batches: list[Bools] = []
    conflicting = np.zeros((size, size), dtype=np.bool_)  # (broker, batch)
    saturation = np.zeros(size, dtype=np.int64)
    left = np.ones(size, dtype=np.bool_)
    while left.any():
        broker = int(np.argmax(np.where(left, saturation * (size + 1) + degree, -1)))
        number = _put(conflicts, broker, batches)
        left[broker] = False
        fresh = conflicts.pairs[broker] & ~conflicting[:, number]
        conflicting[:, number] |= fresh
        saturation[fresh] += 1
    return batches


CELLS_MOST: Final = 1_000
"""Brokers by batches. Beyond it a search ends without a result in any time that an operator waits."""

_PAIRS_MOST: Final = 200_000
_SECONDS: Final = 1.0
"""Deterministic time of one search, all rounds together."""

_SETS_A_ROUND: Final = 200


def is_small(conflicts: Conflicts, batches: int) -> bool:
    """Whether a search for so many batches is worth its time."""
    pairs = int(np.count_nonzero(np.triu(conflicts.pairs)))
    return conflicts.size * batches <= CELLS_MOST and pairs * batches <= _PAIRS_MOST


def searched_batches(
    conflicts: Conflicts, batches: int, first: tuple[Conflicts, Bools] | None = None
) -> tuple[list[Bools] | None, bool]:
    """All brokers in so many batches, None if none was found, and whether it is proven that there are none.

    `first`: other conflicts of the first batch, in which its mask (n,) has brokers that it holds in any case. It may be empty.
    Constraints: each broker in one batch; of every set that may not stop together one broker elsewhere. Sets of two are known;
    larger ones are added when a solution breaks them, so that "infeasible" is always a proof and a solution is always judged by
    the whole rule. Method: OR-tools' CP-SAT. Bound: CP-SAT's own, by deterministic time, so that equal inputs give equal
    plans. Test: tests/restart/test_planner.py.
    """
    # Imported only here: it takes a second, and most plans are proven without it.
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    rules = [conflicts] * batches
    cells = [
        [model.new_bool_var(f"{broker} in {batch}") for batch in range(batches)] for broker in range(conflicts.size)
    ]
    if first is None:
        for batch, broker in enumerate(_first_conflicting(conflicts, batches)):
            model.add(cells[broker][batch] == 1)
    else:
        rules[0], held = first
        for broker in range(conflicts.size):
            if held[broker] or rules[0].blocked[broker]:
                model.add(cells[broker][0] == int(held[broker]))
    for row in cells:
        model.add_exactly_one(row)
    for batch, rule in enumerate(rules):
        model.add(sum(row[batch] for row in cells) <= rule.most)
        model.add(sum(cells[voter][batch] for voter in np.flatnonzero(rule.voter)) <= rule.voters_most)
        for first_broker, second_broker in np.argwhere(np.triu(rule.pairs)).tolist():
            model.add_bool_or(cells[first_broker][batch].negated(), cells[second_broker][batch].negated())
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    # CP-SAT would take Ctrl-C as a time limit, and the command go on.
    solver.parameters.catch_sigint_signal = False
    seconds_left = _SECONDS
    while seconds_left > 0:
        solver.parameters.max_deterministic_time = seconds_left
        status = solver.solve(model)
        seconds_left -= solver.response_proto.deterministic_time
        if status == cp_model.INFEASIBLE:
            return None, True
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None, False
        found = [np.array([bool(solver.value(row[batch])) for row in cells]) for batch in range(batches)]
        broken = [
            (rule, together)
            for batch, rule in zip(found, rules, strict=True)
            for together in _forbidden_sets(rule, batch)
        ]
        if not broken:
            return [batch for at, batch in enumerate(found) if batch.any() or (first and at == 0)], False
        for broken_rule, together in broken:
            for batch, rule in enumerate(rules):
                if rule is broken_rule:
                    model.add_bool_or(cells[broker][batch].negated() for broker in together)
    return None, False


def _first_conflicting(conflicts: Conflicts, batches: int) -> list[int]:
    """Brokers of which no two may stop together, one for each batch: batches are alike, so they may be dealt out."""
    members: list[int] = []
    candidates = np.ones(conflicts.size, dtype=np.bool_)
    while candidates.any() and len(members) < batches:
        broker = int(np.argmax(np.where(candidates, conflicts.pairs.sum(axis=1), -1)))
        members.append(broker)
        candidates &= conflicts.pairs[broker]
    return members


def _forbidden_sets(conflicts: Conflicts, batch: Bools) -> list[list[int]]:
    """The brokers of a batch that a partition forbids together, of some partitions."""
    rows = conflicts.forbidding(batch)[:_SETS_A_ROUND]
    chosen = conflicts.local[rows]
    return [sorted({broker for broker in row.tolist() if broker >= 0 and batch[broker]}) for row in chosen]
