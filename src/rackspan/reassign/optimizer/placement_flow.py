"""Where the replicas of some partitions go at least cost: one exact min-cost flow from partitions to brokers."""

from dataclasses import dataclass

import numpy as np

from rackspan.flow import NetworkBuilder, solve
from rackspan.model.partitions import Bools, Int32s, Int64s
from rackspan.reassign.optimizer.load_costs import load_costs
from rackspan.reassign.optimizer.removals import in_sync
from rackspan.reassign.optimizer.row_groups import RowGroups, distribute_items, group_rows
from rackspan.reassign.problem import ReassignmentProblem

PLACEMENT_ARCS_MAX = 400_000
"""Arcs of one exact flow. Larger problems are solved in parts (balance.py) or by racks (repair.py)."""

SIZE_CLASSES = 16
"""Size classes of partitions: of two plans with as many moves, the one that moves smaller classes is chosen."""


@dataclass(frozen=True, slots=True, eq=False)
class PlacementLimits:
    """What the rows `rows` (N,) may become, in groups of equal rows.

    Per group: `stays` (G, B), whether a broker holds a replica that may stay or leave; `open` (G, B), whether a broker may hold one
    afterwards; `replicas` (G,), how many of them the flow places; `least` and `most` (G, racks) of them in each rack;
    `unit_cost` (G, B), what choosing a broker costs beside a move: ties between equally many moves. `kept` (N, width):
    replicas that keep their broker whatever happens, −1 elsewhere.

    A replica that counts in no rack can stand for one that any rack lacks. A group with such replicas has no `least`; it may
    hold `fill` (G, racks) in each rack, and `above` (G,) more in all, up to `most`. `above` is −1 for every other group.
    """

    rows: Int64s
    groups: RowGroups
    stays: Bools
    open: Bools
    replicas: Int64s
    least: Int64s
    most: Int64s
    fill: Int64s
    above: Int64s
    unit_cost: Int64s
    kept: Int32s


def placement_limits(
    problem: ReassignmentProblem, targets: Int32s, rows: Int64s, *, fenced_may_give: bool
) -> PlacementLimits | None:
    """The limits of `rows`, whose `targets` (P, width) are legal; None where they need more than PLACEMENT_ARCS_MAX arcs.

    A target on a broker that counts in no rack stays there. So does one on a fenced broker, unless `fenced_may_give`: then
    it may leave too, but nothing comes to a fenced broker.
    """
    brokers, codes = len(problem.rack_map.broker_ids), problem.rack_map.rack_codes
    receives = problem.can_receive & (codes >= 0)
    gives = codes >= 0 if fenced_may_give else receives
    now, then = problem.replica_index[rows], targets[rows]
    free = np.where((now >= 0) & gives[now], now, -1)
    kept = np.where((then >= 0) & ~gives[then], then, -1).astype(np.int32)
    synced = in_sync(problem, rows)
    slots = np.sort(np.where(free >= 0, free * 2 + synced, -1))
    grouped = _alike(problem, rows, slots, then, kept)
    if grouped is None:
        return None
    groups, own, size_class, alone = grouped
    first = groups.first
    stays, kept_at = _broker_mask(free[first], brokers), _broker_mask(kept[first], brokers)
    out_of_sync = _broker_mask(np.where(synced, -1, free)[first], brokers)
    elsewhere = (own[first] >= 0)[:, None] & (codes != own[first][:, None])
    factor = np.minimum(np.count_nonzero(then[first] >= 0, axis=1), len(problem.shares.least) - 1)
    counts = problem.rack_map.counts_at(then[first])
    kept_counts = problem.rack_map.counts_at(kept[first])
    share, most_share = problem.shares.least[factor, :-1], problem.shares.most[factor, :-1]
    least, most = np.maximum(np.minimum(share, counts) - kept_counts, 0), np.maximum(most_share, counts) - kept_counts
    free_of_least = alone[first] >= 0
    # What is above the shares of all racks together is as much as an even spread has, whatever other racks lack.
    extra = np.maximum(factor - share.sum(axis=1), np.maximum(counts - share, 0).sum(axis=1))
    extra -= np.maximum(kept_counts - share, 0).sum(axis=1)
    return PlacementLimits(
        rows=rows,
        groups=groups,
        stays=stays,
        open=np.asarray((receives | stays) & ~kept_at),
        replicas=np.count_nonzero(then[first] >= 0, axis=1) - np.count_nonzero(kept[first] >= 0, axis=1),
        least=np.where(free_of_least[:, None], 0, least),
        most=most,
        fill=np.where(free_of_least[:, None], np.minimum(np.maximum(share - kept_counts, 0), most), most - least),
        above=np.where(free_of_least, extra, -1),
        # Equally many moves: what is in sync stays, what is replaced stays in its rack, small partitions move.
        unit_cost=np.where(stays, out_of_sync * SIZE_CLASSES, elsewhere * SIZE_CLASSES + size_class[first][:, None]),
        kept=kept,
    )


def _alike(
    problem: ReassignmentProblem, rows: Int64s, slots: Int32s, then: Int32s, kept: Int32s
) -> tuple[RowGroups, Int32s, Int64s, Int64s] | None:
    """Groups of rows that may be exchanged: equal in the replicas free to go, the targets that stay, the own rack and the size class.

    Returns them, and of each row its own rack, its size class, and its number if it is a group of its own, else -1. All sizes are
    alike where classes of them would need more than PLACEMENT_ARCS_MAX arcs; None where that is not enough.
    """
    brokers = len(problem.rack_map.broker_ids)
    own, size_class = problem.own_rack[rows], _size_classes(problem, rows)
    # The limits of a row with replicas that count in no rack follow from where its targets are: it is a group of its own.
    alone = np.where(uncounted(problem, rows), np.arange(len(rows)), -1)
    alike = np.column_stack([slots, np.sort(kept), np.count_nonzero(then >= 0, axis=1), own, alone])
    groups = group_rows(np.column_stack([alike, size_class]))
    if len(groups) * brokers > PLACEMENT_ARCS_MAX:
        size_class = np.zeros(len(rows), dtype=np.int64)
        groups = group_rows(alike)
    return (groups, own, size_class, alone) if len(groups) * brokers <= PLACEMENT_ARCS_MAX else None


def place(problem: ReassignmentProblem, targets: Int32s, limits: PlacementLimits, *, even_first: bool) -> Int32s:
    """`targets` with those rows that `limits` covers placed anew. Shape (P, as wide as needed).

    Constraints: each row within its limits; no broker twice.
    Goals, in order: with `even_first`, the least sum of squared replicas per broker, then the fewest moves, then ties;
    without, the fewest moves, then ties, then the least sum of squares.
    Method: group → rack → broker → load costs. Units of a group go to its rows in turn, which keeps every limit
    (row_groups.distribute_items): racks are stretches of the items, and so are brokers.
    Bound: the flow is certified cheapest, and every legal placement of the rows is such a flow, so none is better.
    Test: tests/reassign/optimizer/test_placement_flow.py.
    """
    builder = NetworkBuilder()
    inside = np.zeros(len(problem.rows), dtype=np.bool_)
    inside[limits.rows] = True
    fixed = np.concatenate([targets[~inside].ravel(), limits.kept.ravel()])
    brokers = builder.nodes(np.bincount(fixed[fixed >= 0], minlength=len(problem.loads)))
    (sink,) = builder.nodes(np.zeros(1, dtype=np.int64)).tolist()
    steps = load_costs(problem)
    step_cost, move_cost, tie_cost = _weights(limits, steps.unit_cost, len(brokers), even_first)
    size = limits.groups.size
    least = limits.least * size[:, None]
    group_nodes = builder.nodes(limits.replicas * size - least.sum(axis=1))
    used_group, used_rack = np.nonzero(limits.most > 0)
    rack_node = np.full(limits.most.shape, -1, dtype=np.int64)
    rack_node[used_group, used_rack] = builder.nodes(least[used_group, used_rack])
    fill = limits.fill[used_group, used_rack] * size[used_group]
    builder.add(group_nodes[used_group], rack_node[used_group, used_rack], fill)
    _add_arcs_above(builder, limits, group_nodes, rack_node)
    codes = problem.rack_map.rack_codes
    group, broker = np.nonzero(limits.open & (rack_node[:, codes] >= 0) & (codes >= 0))
    order = np.lexsort((broker, codes[broker], group))
    group, broker = group[order], broker[order]
    moved = ~limits.stays[group, broker]
    cost = move_cost * moved + tie_cost * limits.unit_cost[group, broker]
    placed = builder.add(rack_node[group, codes[broker]], brokers[broker], size[group], cost)
    builder.add(brokers[steps.broker], np.full(len(steps.broker), sink), steps.capacity, steps.unit_cost * step_cost)
    units = solve(builder.network(sink)).flow[placed]
    arc = np.repeat(np.arange(len(units)), units)
    return _with_items(targets, limits, distribute_items(limits.groups, group[arc]), broker[arc])


def _add_arcs_above(builder: NetworkBuilder, limits: PlacementLimits, group_nodes: Int64s, rack_node: Int64s) -> None:
    """Arcs group → above → rack, of the groups whose replicas may be in any racks as long as few are above the shares."""
    limited = np.flatnonzero(limits.above > 0)
    above = builder.nodes(np.zeros(len(limited), dtype=np.int64))
    builder.add(group_nodes[limited], above, limits.above[limited] * limits.groups.size[limited])
    more = (limits.most - limits.fill)[limited]
    at, rack = np.nonzero(more > 0)
    builder.add(above[at], rack_node[limited[at], rack], more[at, rack] * limits.groups.size[limited[at]])


def even_repair(problem: ReassignmentProblem, targets: Int32s, rows: Int64s) -> Int32s:
    """`targets` with the repaired `rows` placed so that no other plan of as few moves has more even loads.

    Where the rows are too many for one exact flow, `targets` as they are: the flow over groups that repaired them is as even
    up to partitions that would get a broker twice.
    """
    limits = placement_limits(problem, targets, rows, fenced_may_give=True)
    return targets if limits is None else place(problem, targets, limits, even_first=False)


def _weights(limits: PlacementLimits, steps: Int64s, brokers: int, even_first: bool) -> tuple[int, int, int]:
    """What a step of load, a move and a tie weigh. A cycle of improvements visits a broker once: a goal outweighs as many
    of the next. Of steps of load it takes two at most."""
    ties = int(limits.unit_cost.max()) + 1
    if even_first:
        move = 2 * brokers * ties + 1
        return 2 * brokers * (move + ties) + 1, move, 1
    tie = int(steps.max(initial=0) - steps.min(initial=0)) + 1
    return 1, (2 * brokers + 1) * ties * tie, tie


def _with_items(targets: Int32s, limits: PlacementLimits, position: Int64s, broker: Int64s) -> Int32s:
    """Rows made of what they keep and of the brokers that the flow gave them."""
    order = np.argsort(position, kind="stable")
    position, broker = position[order], broker[order]
    nth = np.arange(len(position)) - np.searchsorted(position, position)
    width = int(nth.max(initial=-1)) + 1
    given = np.full((len(limits.rows), width), -1, dtype=np.int32)
    given[position, nth] = broker
    rows = np.hstack([limits.kept, given])
    result = np.pad(targets, ((0, 0), (0, max(0, rows.shape[1] - targets.shape[1]))), constant_values=-1)
    result[limits.rows] = np.pad(rows, ((0, 0), (0, result.shape[1] - rows.shape[1])), constant_values=-1)
    return result


def uncounted(problem: ReassignmentProblem, rows: Int64s) -> Bools:
    """Rows with a replica that counts in no rack. Shape (len(rows),)."""
    return np.asarray(((problem.replica_index[rows] >= 0) & (problem.replica_racks[rows] < 0)).any(axis=1))


def _size_classes(problem: ReassignmentProblem, rows: Int64s) -> Int64s:
    """Classes of equally many distinct sizes, the smallest 0. Shape as `rows`."""
    distinct, rank = np.unique(problem.rows.size_bytes[rows], return_inverse=True)
    return np.asarray(rank.astype(np.int64) * SIZE_CLASSES // max(1, len(distinct), SIZE_CLASSES))


def _broker_mask(index: Int32s, brokers: int) -> Bools:
    mask = np.zeros((len(index), brokers), dtype=np.bool_)
    row, column = np.nonzero(index >= 0)
    mask[row, index[row, column]] = True
    return mask
