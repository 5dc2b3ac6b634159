"""Balance: moves replicas from brokers that hold many to brokers that hold few, new ones above all."""

from dataclasses import dataclass

import numpy as np

from rackspan.model.partitions import Bools, Int32s, Int64s
from rackspan.reassign.optimizer.load_costs import LoadCosts, load_costs
from rackspan.reassign.optimizer.placement_flow import PLACEMENT_ARCS_MAX, place, placement_limits, uncounted
from rackspan.reassign.optimizer.rack_relaxation import RackRelaxation, proposed_moves, relax
from rackspan.reassign.problem import ReassignmentProblem

ROUNDS_MAX = 8
"""Exact flows over parts of a cluster that is too large for one. What the racks' flow leaves over is little: one or two do it."""

IDLE_ROUNDS_MAX = 2
"""Rounds that find nothing better before the search ends."""


@dataclass(frozen=True, slots=True, eq=False)
class BalancedTargets:
    """`targets` (P, width) broker indices, and what is proven of them.

    `moves_bound`: moves that every plan needs whose loads are as even; None where nothing is proven. `load_gap`: replicas that
    more even loads, if there are any, have on other brokers at most; None where nothing is proven.
    """

    targets: Int32s
    moves_bound: int | None
    load_gap: int | None


def balance_replicas(problem: ReassignmentProblem, targets: Int32s, movable: Bools, repaired: Bools) -> BalancedTargets:
    """`targets` (P, width, broker indices) with replicas moved until brokers are as even as racks and replica sets allow.

    `movable` (P,): legal partitions that may be touched; `repaired` (P,): those of them that moved into the constraints.

    Constraints: every partition stays as evenly spread over racks as it is; no broker twice; nothing comes to a fenced
    broker, and nothing leaves it.
    Goals, in order: the least sum of squared replicas per broker; the fewest moves, repair included; small partitions first.
    Method: one exact flow from partitions to brokers (placement_flow.py). Where that is too large: the flow of racks
    (rack_relaxation.py), its moves as far as each partition allows them, then exact flows over parts, until the loads and the
    moves are those of the flow of racks.
    Bound: the exact flow is best. For large clusters the flow of racks bounds both goals; a plan above it reports the gap. With
    replicas that count in no rack it does not, and nothing is proven. Test: tests/reassign/optimizer/test_balance.py.
    """
    rows = np.flatnonzero(movable)
    if not len(rows) or not problem.can_receive.any():
        # Nothing can move: no placement is more even, and none takes fewer moves.
        return BalancedTargets(targets, 0, 0)
    limits = placement_limits(problem, targets, rows, fenced_may_give=False)
    if limits is not None:
        placed = place(problem, targets, limits, even_first=True)
        return BalancedTargets(placed, _moves(problem, placed), 0)
    best = relax(problem, targets, rows)
    targets = _with_racks_flow(problem, targets, best, movable & ~repaired, bool((movable & repaired).any()))
    parts = _in_parts(problem, targets, rows, best)
    # The flow of racks holds replicas beside one that counts in no rack to their racks, so that it bounds nothing then.
    return BalancedTargets(parts.targets, None, None) if uncounted(problem, rows).any() else parts


def _with_racks_flow(
    problem: ReassignmentProblem, targets: Int32s, best: RackRelaxation | None, movable: Bools, again: bool
) -> Int32s:
    """The moves of the flow of racks, over rows that needed no repair. `again`: `best` covers others too."""
    flow = relax(problem, targets, np.flatnonzero(movable)) if again else best
    if flow is None:
        return targets
    row, from_broker, to_broker = proposed_moves(problem, flow)
    targets = targets.copy()
    column = (targets[row] == from_broker[:, None]).argmax(axis=1)
    targets[row, column] = to_broker
    return targets


def _in_parts(
    problem: ReassignmentProblem, targets: Int32s, rows: Int64s, best: RackRelaxation | None
) -> BalancedTargets:
    """Exact flows over some of the rows at a time, as long as they help and the bound is not reached."""
    steps = load_costs(problem)
    lowest = None if best is None else (_unevenness(steps, best.loads), best.moves)
    reached = _unevenness(steps, _loads(problem, targets)), _moves(problem, targets)
    idle = 0
    for turn in range(ROUNDS_MAX):
        if reached == lowest or idle == IDLE_ROUNDS_MAX:
            break
        part = _part(problem, targets, rows, None if best is None else best.loads, turn)
        limits = placement_limits(problem, targets, part, fenced_may_give=False)
        if limits is None:
            break
        targets = place(problem, targets, limits, even_first=True)
        before, reached = reached, (_unevenness(steps, _loads(problem, targets)), _moves(problem, targets))
        idle = idle + 1 if reached == before else 0
    if best is None or lowest is None:
        return BalancedTargets(targets, None, None)
    if reached[0] == lowest[0]:
        return BalancedTargets(targets, lowest[1], 0)
    gap = int(np.maximum(_loads(problem, targets) - best.loads, 0).sum())
    return BalancedTargets(targets, None, gap)


def _part(problem: ReassignmentProblem, targets: Int32s, rows: Int64s, loads: Int64s | None, turn: int) -> Int64s:
    """The rows that one exact flow takes: half of them that moved or are on a broker that holds too much, half any."""
    size = max(2, PLACEMENT_ARCS_MAX // len(problem.loads))
    present = _loads(problem, targets)
    too_full = np.append(present > (present.mean() if loads is None else loads), False)
    urgent = rows[too_full[targets[rows]].any(axis=1)]
    if not len(urgent):
        urgent = rows[_is_new(problem, targets)[rows].any(axis=1)]
    half = _every(urgent, size // 2, turn)
    return np.unique(np.concatenate([half, _every(rows, size - len(half), turn)]))


def _every(rows: Int64s, count: int, turn: int) -> Int64s:
    """At most `count` of the rows, evenly from all of them; others at each turn."""
    if len(rows) <= count:
        return rows
    return rows[(np.arange(count) * (len(rows) // max(1, count)) + turn) % len(rows)]


def _loads(problem: ReassignmentProblem, targets: Int32s) -> Int64s:
    return np.bincount(targets[targets >= 0], minlength=len(problem.loads))


def _moves(problem: ReassignmentProblem, targets: Int32s) -> int:
    return int(np.count_nonzero(_is_new(problem, targets)))


def _is_new(problem: ReassignmentProblem, targets: Int32s) -> Bools:
    """Which targets are on brokers that do not hold the partition now. Shape as `targets`."""
    new = targets >= 0
    for column in problem.replica_index.T:
        new &= targets != column[:, None]
    return np.asarray(new)


def _unevenness(steps: LoadCosts, loads: Int64s) -> int:
    """The cost of `loads` by the steps, as the flows count it."""
    starts = np.flatnonzero(np.diff(steps.broker, prepend=-1))
    filled_before = np.cumsum(steps.capacity) - steps.capacity
    filled_before -= filled_before[starts][steps.broker]
    units = np.clip(loads[steps.broker] - filled_before, 0, steps.capacity)
    return sum(map(int.__mul__, units.tolist(), steps.unit_cost.tolist()))
