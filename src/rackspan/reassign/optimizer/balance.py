"""Balance: moves replicas from brokers that hold many to brokers that hold few, new ones above all."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rackspan.flow import solve
from rackspan.model.partitions import Bools, Int32s, Int64s
from rackspan.reassign.optimizer.additions import distribute_additions
from rackspan.reassign.optimizer.load_costs import load_costs
from rackspan.reassign.optimizer.network_builder import NetworkBuilder
from rackspan.reassign.optimizer.repair_groups import slots_per_rack
from rackspan.reassign.optimizer.replica_lists import with_changes
from rackspan.reassign.optimizer.row_groups import RowGroups, group_rows
from rackspan.reassign.problem import ReassignmentProblem

ROUNDS_MAX = 8
"""A partition gives at most one replica a round. One round does nearly all; the rest is what partitions could not give twice."""


@dataclass(frozen=True, slots=True, eq=False)
class _Donors:
    """Partitions that may give one replica: `rows` (N,), grouped by rack counts. Per group and rack (G, racks): `spare`,
    whether one may leave the rack; `open`, whether one may come; `free`, whether a broker there does not hold it yet.
    """

    rows: Int64s
    groups: RowGroups
    spare: Bools
    open: Bools
    free: Bools


def balance_replicas(problem: ReassignmentProblem, targets: Int32s, movable: Bools) -> Int32s:
    """`targets` (P, width, broker indices) with replicas moved until brokers are as even as racks and replica sets allow.

    `movable` (P,): legal partitions that may be touched.

    Constraints: every partition stays as evenly spread over racks as it is; no broker twice; nothing comes to a fenced
    broker.
    Goals, in order: the least sum of squared replicas per broker; the fewest moves; small partitions first.
    Method: one min-cost flow a round: broker → its rack → broker, and, where a kind of partition may exchange one rack
    for another, broker → group → other rack → broker. Every move costs 1, every evening more than any chain of moves.
    Bound: a plan that ends with these loads needs at least sum (load after − load before)+ additions.
    """
    movable = movable.copy()
    for _ in range(ROUNDS_MAX):
        state = replace(problem, replica_index=targets)
        if _is_balanced(state) or not movable.any():
            break
        row, from_broker, rack, quotas = _round(state, movable)
        if not len(row):
            break
        added = distribute_additions(row, rack, quotas, problem.rack_map.rack_codes, targets, optional=True)
        placed = added.broker >= 0
        leaving = np.zeros(targets.shape, dtype=np.bool_)
        leaving[row[placed], (targets[row] == from_broker[:, None]).argmax(axis=1)[placed]] = True
        targets = with_changes(targets, leaving, row[placed], added.broker[placed].astype(np.int32))
        movable[row] = False
    return targets


def _is_balanced(state: ReassignmentProblem) -> bool:
    able = state.loads[state.can_receive]
    return not len(able) or int(able.max()) - int(able.min()) <= 1


def _round(state: ReassignmentProblem, movable: Bools) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """One replica each of some partitions: row, broker that gives it, rack that takes it; and quotas of the takers."""
    donors = _donors(state, movable)
    builder = NetworkBuilder()
    brokers = builder.nodes(state.loads)
    (sink,) = builder.nodes(np.zeros(1, dtype=np.int64)).tolist()
    racks = builder.nodes(np.zeros(state.shares.racks, dtype=np.int64))
    held = _held(state, donors)
    rack_of = state.rack_map.rack_codes[held.broker]
    stays = np.where(donors.free[held.group, rack_of], held.count, 0)
    within = builder.add(brokers[held.broker], racks[rack_of], stays, 1)
    across, into = _add_exchanges(builder, state, donors, held, brokers, racks)
    receivers = np.flatnonzero(state.can_receive & (state.rack_map.rack_codes >= 0))
    arrival_arcs = builder.add(racks[state.rack_map.rack_codes[receivers]], brokers[receivers], len(state.rows) + 1)
    steps = load_costs(state)
    # Evenness before movement: a step outweighs every chain of moves.
    builder.add(
        brokers[steps.broker], np.full(len(steps.broker), sink), steps.capacity, steps.unit_cost * (len(brokers) + 1)
    )
    flow = solve(builder.network(sink)).flow
    quotas = np.zeros(len(brokers), dtype=np.int64)
    quotas[receivers] = flow[arrival_arcs]
    return _realised(state, donors, held, flow[within], flow[across], flow[into], quotas)


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """Which donors stand on which broker, by pairs of broker and group: `broker`, `group`, `count` (K,).

    `rows`: the donors of pair k are the next `count[k]` of them, the smallest first.
    """

    broker: Int64s
    group: Int64s
    count: Int64s
    rows: Int64s

    def donors_of(self) -> list[Int64s]:
        return np.split(self.rows, np.cumsum(self.count)[:-1])


def _donors(state: ReassignmentProblem, movable: Bools) -> _Donors:
    rows = np.flatnonzero(movable)
    index = state.replica_index[rows]
    slots = np.sort(np.where(index >= 0, state.replica_racks[rows] * 2 + state.can_receive[index], -2), axis=1)
    target_factor = state.target_factor[rows]
    groups = group_rows(np.column_stack([slots, target_factor]))
    held, usable = slots_per_rack(slots[groups.first], state.shares.racks)
    target_factor, rack_map = target_factor[groups.first], state.rack_map
    usable_brokers = np.bincount(
        rack_map.rack_codes[state.can_receive & (rack_map.rack_codes >= 0)], minlength=state.shares.racks
    )
    free = usable < usable_brokers
    least, most = state.shares.least[target_factor, :-1], state.shares.most[target_factor, :-1]
    return _Donors(rows, groups, held > least, (held < most) & free, free)


def _held(state: ReassignmentProblem, donors: _Donors) -> _Held:
    index = state.replica_index[donors.rows]
    # A fenced broker keeps what it holds until it is back or drained.
    row, column = np.nonzero((state.replica_racks[donors.rows] >= 0) & state.can_receive[index])
    group_count = max(1, len(donors.groups))
    pair = index[row, column].astype(np.int64) * group_count + donors.groups.of_row[row]
    order = np.lexsort((state.rows.size_bytes[donors.rows[row]], pair))
    distinct, count = np.unique(pair, return_counts=True)
    return _Held(distinct // group_count, distinct % group_count, count, donors.rows[row[order]])


def _add_exchanges(
    builder: NetworkBuilder, state: ReassignmentProblem, donors: _Donors, held: _Held, brokers: Int64s, racks: Int64s
) -> tuple[slice, slice]:
    """Arcs broker → group, for replicas that may leave their rack, and group → rack that may take them."""
    size, none = donors.groups.size, np.zeros(len(donors.groups), dtype=np.int64)
    gather, scatter = builder.nodes(none), builder.nodes(none)
    builder.add(gather, scatter, size)
    may = donors.spare[held.group, state.rack_map.rack_codes[held.broker]]
    across = builder.add(brokers[held.broker], gather[held.group], np.where(may, held.count, 0), 1)
    group, rack = np.nonzero(donors.open)
    into = builder.add(scatter[group], racks[rack], size[group])
    return across, into


def _realised(
    state: ReassignmentProblem,
    donors: _Donors,
    held: _Held,
    within: Int64s,
    across: Int64s,
    into: Int64s,
    quotas: Int64s,
) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Actual partitions for the units of flow, the smallest first, each giving once."""
    none = np.zeros(0, dtype=np.int64)
    given = [(none, none, none), *_given(state, held, within, across)]
    row, pair, leaves = (np.concatenate(column) for column in zip(*given, strict=True))
    rack = state.rack_map.rack_codes[held.broker[pair]].astype(np.int64)
    group, open_rack = np.nonzero(donors.open)
    for code in np.unique(held.group[pair[leaves > 0]]).tolist():
        selected = np.flatnonzero((leaves > 0) & (held.group[pair] == code))
        rack[selected] = np.repeat(open_rack[group == code], into[group == code])[: len(selected)]
    return row, held.broker[pair], rack, _trimmed(state, quotas, rack)


def _given(
    state: ReassignmentProblem, held: _Held, within: Int64s, across: Int64s
) -> Iterator[tuple[Int64s, Int64s, Int64s]]:
    """For each pair that gives: rows, the pair's number, and whether each row's replica leaves its rack."""
    used, donors_of = np.zeros(len(state.rows), dtype=np.bool_), held.donors_of()
    for pair in np.flatnonzero(within + across).tolist():
        able = donors_of[pair]
        selected = able[~used[able]][: int(within[pair] + across[pair])]
        used[selected] = True
        yield selected, np.full(len(selected), pair), (np.arange(len(selected)) < across[pair]).astype(np.int64)


def _trimmed(state: ReassignmentProblem, quotas: Int64s, rack: Int64s) -> Int64s:
    """Quotas lowered to what really arrives in each rack, at the brokers that would hold most."""
    quotas = quotas.copy()
    for code in range(state.shares.racks):
        brokers = np.flatnonzero(state.rack_map.rack_codes == code)
        for _ in range(int(quotas[brokers].sum()) - int(np.count_nonzero(rack == code))):
            fullest = brokers[np.argmax(np.where(quotas[brokers] > 0, state.loads[brokers] + quotas[brokers], -1))]
            quotas[fullest] -= 1
    return quotas
