"""OR-tools' CP-SAT for plans that greedy search leaves open: fewer batches, or a proof that there are none.

Constraints: each broker in one batch; of every set that may not stop together one broker elsewhere. Sets of two are known;
larger ones are added when a solution breaks them, so that "infeasible" is always a proof and a solution is always judged by
the whole rule. Bound: CP-SAT's own, by deterministic time, so that equal inputs give equal plans.
"""

from typing import Final

import numpy as np

from rackspan.errors import required_module
from rackspan.model import Bools
from rackspan.restart.search.conflicts import Conflicts

CELLS_MOST: Final = 1_000
"""Brokers by batches. Beyond it a search ends without a result in any time that an operator waits."""

_PAIRS_MOST: Final = 200_000
_SECONDS: Final = 1.0
"""Deterministic time of one search, all rounds together."""

_SETS_A_ROUND: Final = 200


def is_small(conflicts: Conflicts, batches: int) -> bool:
    """Whether a search for so many batches is worth its time."""
    pairs = int(np.count_nonzero(conflicts.pairs)) // 2
    return conflicts.size * batches <= CELLS_MOST and pairs * batches <= _PAIRS_MOST


def searched_batches(conflicts: Conflicts, batches: int) -> tuple[list[Bools] | None, bool]:
    """All brokers in so many batches, None if none was found, and whether it is proven that there are none."""
    # Imported only here: it takes a second, and most plans are proven without it.
    cp_model = required_module("ortools.sat.python.cp_model", "the fewest batches are searched with it")

    model = cp_model.CpModel()
    cells = [
        [model.new_bool_var(f"{broker} in {batch}") for batch in range(batches)] for broker in range(conflicts.size)
    ]
    for row in cells:
        model.add_exactly_one(row)
    for batch in range(batches):
        model.add(sum(row[batch] for row in cells) <= conflicts.most)
        if conflicts.voter.any():
            model.add(sum(cells[voter][batch] for voter in np.flatnonzero(conflicts.voter)) <= conflicts.voters_most)
    for first, second in np.argwhere(np.triu(conflicts.pairs)).tolist():
        for batch in range(batches):
            model.add_bool_or(cells[first][batch].negated(), cells[second][batch].negated())
    for batch, broker in enumerate(_first_conflicting(conflicts, batches)):
        model.add(cells[broker][batch] == 1)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
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
        broken = [together for batch in found for together in _forbidden_sets(conflicts, batch)]
        if not broken:
            return [batch for batch in found if batch.any()], False
        for together in broken:
            for batch in range(batches):
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
