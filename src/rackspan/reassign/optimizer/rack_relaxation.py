"""The most even loads and the fewest moves to them, of a problem that forgets which two replicas one partition has.

Partitions whose replicas are on the same racks are one group, so that a million of them are a small flow. Its cost is a bound for
every plan; most often there is a plan that reaches it, and `proposed_moves` makes it.
"""

from dataclasses import dataclass

import numpy as np

from rackspan.flow import NetworkBuilder, solve
from rackspan.model.partitions import Int32s, Int64s
from rackspan.reassign.optimizer.additions import distribute_additions
from rackspan.reassign.optimizer.load_costs import load_costs
from rackspan.reassign.optimizer.row_groups import RowGroups, group_rows
from rackspan.reassign.problem import ReassignmentProblem

RELAXED_ARCS_MAX = 4_000_000
"""Arcs of the flow. Where every broker is a rack of its own and partitions are many, there is no bound by racks."""


@dataclass(frozen=True, slots=True, eq=False)
class RackLimits:
    """Replicas of one row of each group, those apart that stay where they are: `counts` (G, racks) now, `least` and `most` of them in
    each rack afterwards, `placed` (G,) in all."""

    counts: Int64s
    least: Int64s
    most: Int64s
    placed: Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of a broker and a group with replicas on it, shape (K,). `count`: how many rows of the group. `rows`: those rows, pair after
    pair, the smallest first."""

    broker: Int64s
    group: Int64s
    count: Int64s
    rows: Int64s


@dataclass(frozen=True, slots=True, eq=False)
class RackRelaxation:
    """Rows `rows` (N,) in groups by racks, and the flow that is best for them.

    `leave` (K,): how many rows of a pair give the replica away. `arrivals` (G, racks), `quotas` (B,): where replicas come to. `loads`
    (B,) afterwards.
    """

    rows: Int64s
    groups: RowGroups
    limits: RackLimits
    pairs: Pairs
    leave: Int64s
    arrivals: Int64s
    quotas: Int64s
    loads: Int64s

    @property
    def moves(self) -> int:
        return int(self.quotas.sum())


def relax(problem: ReassignmentProblem, targets: Int32s, rows: Int64s) -> RackRelaxation | None:
    """The best flow for `rows`, whose `targets` are legal; None beyond RELAXED_ARCS_MAX arcs.

    Constraints: each group keeps its racks' limits as a whole; a row takes no more new replicas in a rack than the rack has
    brokers that it does not use yet. That no broker comes twice to a row is left out, so no plan is better than this.
    Goals, in order: the least sum of squared replicas per broker; the fewest moves; few of them into another rack.
    Method: group → rack → broker where a replica stays, group → rack → pool of the rack → broker where it moves, at a cost;
    then load costs. A step of load outweighs every chain of moves.
    Bound: a flow of at most RELAXED_ARCS_MAX arcs, certified cheapest. Test: tests/reassign/optimizer/test_rack_relaxation.py.
    """
    codes = problem.rack_map.rack_codes
    open_ = problem.can_receive & (codes >= 0)
    now, then = problem.replica_index[rows], targets[rows]
    free = np.where((now >= 0) & open_[now], now, -1)
    kept = np.where((then >= 0) & ~open_[then], then, -1)
    groups = _groups(problem, free, kept, then)
    if len(groups) * problem.shares.racks > RELAXED_ARCS_MAX:
        return None
    limits = _limits(problem, groups, free, kept, then)
    pairs = _pairs(problem, rows, groups, free)
    elsewhere = np.ones(len(problem.rows), dtype=np.bool_)
    elsewhere[rows] = False
    fixed = np.concatenate([targets[elsewhere].ravel(), kept.ravel()])
    held = np.bincount(free[free >= 0], minlength=len(codes))
    return _solved(problem, rows, groups, limits, pairs, fixed[fixed >= 0], len(rows) - held)


def _groups(problem: ReassignmentProblem, free: Int32s, kept: Int32s, then: Int32s) -> RowGroups:
    """Rows are alike if they have as many replicas in the same racks, movable ones and others."""
    parts = (free, kept, np.where(kept >= 0, -1, then))
    alike = [np.sort(problem.rack_map.codes_at(part)) for part in parts]
    return group_rows(np.column_stack([*alike, np.count_nonzero(then >= 0, axis=1)]))


def _limits(problem: ReassignmentProblem, groups: RowGroups, free: Int32s, kept: Int32s, then: Int32s) -> RackLimits:
    counts, kept_counts, then_counts = (problem.rack_map.counts_at(held[groups.first]) for held in (free, kept, then))
    factor = np.count_nonzero(then[groups.first] >= 0, axis=1)
    table = np.minimum(factor, len(problem.shares.least) - 1)
    return RackLimits(
        counts=counts,
        least=np.maximum(np.minimum(problem.shares.least[table, :-1], then_counts) - kept_counts, 0),
        most=np.maximum(problem.shares.most[table, :-1], then_counts) - kept_counts,
        placed=factor - np.count_nonzero(kept[groups.first] >= 0, axis=1),
    )


def _pairs(problem: ReassignmentProblem, rows: Int64s, groups: RowGroups, free: Int32s) -> Pairs:
    row, column = np.nonzero(free >= 0)
    pair = free[row, column].astype(np.int64) * max(1, len(groups)) + groups.of_row[row]
    order = np.lexsort((problem.rows.size_bytes[rows[row]], pair))
    distinct, count = np.unique(pair, return_counts=True)
    broker, group = np.divmod(distinct, max(1, len(groups)))
    return Pairs(broker, group, count, row[order])


def _solved(
    problem: ReassignmentProblem,
    rows: Int64s,
    groups: RowGroups,
    limits: RackLimits,
    pairs: Pairs,
    fixed: Int64s,
    vacancies: Int64s,
) -> RackRelaxation:
    """Build and solve the flow. `fixed`: the brokers of replicas that stay, one an entry; `vacancies` (B,): rows without a replica there."""
    codes, racks = problem.rack_map.rack_codes, problem.shares.racks
    most, size = limits.most, groups.size
    builder = NetworkBuilder()
    brokers = builder.nodes(np.bincount(fixed, minlength=len(codes)))
    (sink,) = builder.nodes(np.zeros(1, dtype=np.int64)).tolist()
    cell = _add_groups(builder, limits, size)
    used_group, used_rack = np.nonzero(cell >= 0)
    pools = builder.nodes(np.zeros(racks, dtype=np.int64))
    # Changing the rack costs a little beside the move: staying within it is always open to a row, a change is not.
    move_cost = 2 * len(codes) + 1
    step_cost = 2 * len(codes) * (move_cost + 1) + 1
    here = cell[pairs.group, codes[pairs.broker]]
    usable = here >= 0
    stay = builder.add(here[usable], brokers[pairs.broker[usable]], pairs.count[usable])
    receivers = np.flatnonzero(problem.can_receive & (codes >= 0))
    fresh = np.bincount(codes[receivers], minlength=racks) - limits.counts
    fresh_units = (np.minimum(most, np.maximum(fresh, 0)) * size[:, None])[used_group, used_rack]
    arrive = builder.add(cell[used_group, used_rack], pools[used_rack], fresh_units, move_cost)
    into = builder.add(pools[codes[receivers]], brokers[receivers], vacancies[receivers])
    steps = load_costs(problem)
    out = builder.add(
        brokers[steps.broker], np.full(len(steps.broker), sink), steps.capacity, steps.unit_cost * step_cost
    )
    flow = solve(builder.network(sink)).flow
    leave, arrivals = pairs.count.copy(), np.zeros(most.shape, dtype=np.int64)
    leave[usable] -= flow[stay]
    arrivals[used_group, used_rack] = flow[arrive]
    quotas, loads = np.zeros(len(codes), dtype=np.int64), np.zeros(len(codes), dtype=np.int64)
    quotas[receivers] = flow[into]
    np.add.at(loads, steps.broker, flow[out])
    return RackRelaxation(rows, groups, limits, pairs, leave, arrivals, quotas, loads)


def _add_groups(builder: NetworkBuilder, limits: RackLimits, size: Int64s) -> Int64s:
    """Nodes of the groups, and of each group in each rack, with the arcs between them. Returns the latter, -1 for none."""
    least, most = limits.least, limits.most
    groups = builder.nodes((limits.placed - least.sum(axis=1)) * size)
    group, rack = np.nonzero(most > 0)
    cell = np.full(most.shape, -1, dtype=np.int64)
    cell[group, rack] = builder.nodes((least * size[:, None])[group, rack])
    present = np.clip(limits.counts, least, most)
    for low, high, cost in ((least, present, 0), (present, most, 1)):
        builder.add(groups[group], cell[group, rack], ((high - low) * size[:, None])[group, rack], cost)
    return cell


@dataclass(frozen=True, slots=True, eq=False)
class _Exchanges:
    """Replicas that leave a broker: `row` (position in the rows), `broker`, and the rack that the new one comes to. Shape (M,)."""

    row: Int64s
    broker: Int64s
    rack: Int64s


def proposed_moves(problem: ReassignmentProblem, relaxation: RackRelaxation) -> tuple[Int64s, Int64s, Int64s]:
    """Rows of the problem, the broker that each gives a replica away from, and the one that gets it. Shape (M,) each.

    Every row of the relaxation holds all its replicas and is legal, and stays legal. What the relaxation allows for a group but
    not for one row, or for no row without a broker twice, is left out.
    """
    exchanges = _exchanges(problem, relaxation)
    row = relaxation.rows[exchanges.row]
    quotas = _trimmed(problem, relaxation.quotas, exchanges.rack)
    added = distribute_additions(
        row,
        exchanges.rack,
        quotas,
        problem.rack_map.rack_codes,
        problem.replica_index,
        problem.can_receive,
        optional=True,
    )
    placed = added.broker >= 0
    return row[placed], exchanges.broker[placed], added.broker[placed]


def _exchanges(problem: ReassignmentProblem, relaxation: RackRelaxation) -> _Exchanges:
    row, broker = _leaving(relaxation)
    codes, racks, groups = problem.rack_map.rack_codes, relaxation.limits.counts.shape[1], len(relaxation.groups)
    from_rack = codes[broker].astype(np.int64)
    group = relaxation.groups.of_row[row]
    cell = group * racks + from_rack
    left = np.bincount(cell, minlength=groups * racks).reshape(groups, racks)
    # Of what leaves a rack, as many as come back stay in it. The others go to racks that receive more than they give.
    nth = _nth(row * racks + from_rack)
    order = np.lexsort((nth, cell))
    rank = np.empty(len(row), dtype=np.int64)
    rank[order] = _nth(cell[order])
    across = rank < np.maximum(left - relaxation.arrivals, 0)[group, from_rack]
    fits = ~across | (nth < (relaxation.limits.counts - relaxation.limits.least)[group, from_rack])
    rack = from_rack.copy()
    changing = np.flatnonzero(across & fits)
    changing = changing[np.lexsort((row[changing], _nth(row[changing]), group[changing]))]
    extra = np.maximum(relaxation.arrivals - left, 0)
    offered_group, offered_rack = np.nonzero(extra)
    offered = np.repeat(offered_rack, extra[offered_group, offered_rack])
    offered_starts = np.concatenate(([0], np.cumsum(extra.sum(axis=1))))
    position = offered_starts[group[changing]] + _nth(group[changing])
    enough = position < offered_starts[group[changing] + 1]
    rack[changing[enough]] = offered[position[enough]]
    fits[changing[~enough]] = False
    into = np.flatnonzero(across & fits)
    spare = (relaxation.limits.most - relaxation.limits.counts)[group[into], rack[into]]
    fits[into] &= _nth(row[into] * racks + rack[into]) < spare
    return _Exchanges(row[fits], broker[fits], rack[fits])


def _leaving(relaxation: RackRelaxation) -> tuple[Int64s, Int64s]:
    """Rows (positions) that give a replica, and the broker. Small partitions first where every choice is legal; else those
    that have given least."""
    rigid = (
        (relaxation.limits.least == relaxation.limits.counts) & (relaxation.limits.most == relaxation.limits.counts)
    ).all(axis=1)
    given = np.zeros(len(relaxation.rows), dtype=np.int64)
    starts = np.concatenate(([0], np.cumsum(relaxation.pairs.count)))
    chosen: list[Int64s] = [np.zeros(0, dtype=np.int64)]
    pairs = np.flatnonzero(relaxation.leave)
    for pair in pairs.tolist():
        able = relaxation.pairs.rows[starts[pair] : starts[pair + 1]]
        if not rigid[relaxation.pairs.group[pair]]:
            able = able[np.argsort(given[able], kind="stable")]
        selected = able[: relaxation.leave[pair]]
        given[selected] += 1
        chosen.append(selected)
    return np.concatenate(chosen), np.repeat(relaxation.pairs.broker[pairs], relaxation.leave[pairs])


def _nth(key: Int64s) -> Int64s:
    """How many equal keys stand before each."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    nth = np.empty(len(key), dtype=np.int64)
    nth[order] = np.arange(len(key)) - np.searchsorted(ordered, ordered)
    return nth


def _trimmed(problem: ReassignmentProblem, quotas: Int64s, rack: Int64s) -> Int64s:
    """Quotas lowered to what really arrives in each rack, at the brokers that would hold most."""
    quotas = quotas.copy()
    for code in range(problem.shares.racks):
        brokers = np.flatnonzero(problem.rack_map.rack_codes == code)
        for _ in range(int(quotas[brokers].sum()) - int(np.count_nonzero(rack == code))):
            fullest = brokers[np.argmax(np.where(quotas[brokers] > 0, problem.loads[brokers] + quotas[brokers], -1))]
            quotas[fullest] -= 1
    return quotas
