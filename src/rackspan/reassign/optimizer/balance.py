"""Balance moves: replicas from brokers that hold many to those that hold few, new brokers above all."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rackspan.flow import solve
from rackspan.model.partitions import Bools, Int32s, Int64s
from rackspan.reassign.optimizer.additions import hand_out
from rackspan.reassign.optimizer.load_costs import ladder
from rackspan.reassign.optimizer.network_builder import ArcBook
from rackspan.reassign.optimizer.repair_groups import slots_per_rack
from rackspan.reassign.optimizer.replica_lists import with_changes
from rackspan.reassign.optimizer.row_groups import Groups, grouped
from rackspan.reassign.problem import Standing

ROUNDS_MAX = 8
"""A partition gives at most one replica a round. One round does nearly all; the rest is what partitions could not give twice."""


@dataclass(frozen=True, slots=True, eq=False)
class _Donors:
    """Partitions that may give one replica: `rows` (N,), grouped by rack counts. Per kind and rack (G, racks): `spare`,
    whether one may leave the rack; `room`, whether one may come; `free`, whether a broker there does not hold it yet.
    """

    rows: Int64s
    groups: Groups
    spare: Bools
    room: Bools
    free: Bools


def level(now: Standing, targets: Int32s, movable: Bools) -> Int32s:
    """`targets` (P, width, broker indices) with replicas moved until brokers are as even as racks and replica sets allow.

    `movable` (P,): legal partitions that may be touched.

    Constraints: every partition stays as evenly spread over racks as it is; no broker twice; nothing comes to a fenced
    broker.
    Goals, in order: the least sum of squared replicas per broker; the fewest moves; small partitions first.
    Method: one min-cost flow a round: broker → its rack → broker, and, where a kind of partition may exchange one rack
    for another, broker → kind → other rack → broker. Every move costs 1, every evening more than any chain of moves.
    Bound: a plan that ends with these loads needs at least sum (load after − load before)+ arrivals.
    """
    movable = movable.copy()
    for _ in range(ROUNDS_MAX):
        state = replace(now, replica_index=targets)
        if _level_enough(state) or not movable.any():
            break
        row, giver, rack, quotas = _round(state, movable)
        if not len(row):
            break
        come = hand_out(row, rack, quotas, now.homes.rack_codes, targets, optional=True)
        placed = come.broker >= 0
        leaving = np.zeros(targets.shape, dtype=np.bool_)
        leaving[row[placed], (targets[row] == giver[:, None]).argmax(axis=1)[placed]] = True
        targets = with_changes(targets, leaving, row[placed], come.broker[placed].astype(np.int32))
        movable[row] = False
    return targets


def _level_enough(state: Standing) -> bool:
    able = state.loads[state.receiving]
    return not len(able) or int(able.max()) - int(able.min()) <= 1


def _round(state: Standing, movable: Bools) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """One replica each of some partitions: row, broker that gives it, rack that takes it; and quotas of the takers."""
    donors = _donors(state, movable)
    book = ArcBook()
    brokers = book.nodes(state.loads)
    (sink,) = book.nodes(np.zeros(1, dtype=np.int64)).tolist()
    racks = book.nodes(np.zeros(state.shares.racks, dtype=np.int64))
    held = _held(state, donors)
    rack_of = state.homes.rack_codes[held.broker]
    stays = np.where(donors.free[held.kind, rack_of], held.count, 0)
    within = book.add(brokers[held.broker], racks[rack_of], stays, 1)
    across, into = _add_exchanges(book, state, donors, held, brokers, racks)
    taking = np.flatnonzero(state.receiving & (state.homes.rack_codes >= 0))
    land = book.add(racks[state.homes.rack_codes[taking]], brokers[taking], len(state.rows) + 1)
    steps = ladder(state)
    # Evenness before movement: a step outweighs every chain of moves.
    book.add(
        brokers[steps.broker], np.full(len(steps.broker), sink), steps.capacity, steps.unit_cost * (len(brokers) + 1)
    )
    flow = solve(book.network(sink)).flow
    quotas = np.zeros(len(brokers), dtype=np.int64)
    quotas[taking] = flow[land]
    return _realised(state, donors, held, flow[within], flow[across], flow[into], quotas)


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """Which donors stand on which broker, by pairs of broker and kind: `broker`, `kind`, `count` (K,).

    `rows`: the donors of pair k are the next `count[k]` of them, the smallest first.
    """

    broker: Int64s
    kind: Int64s
    count: Int64s
    rows: Int64s

    def donors_of(self) -> list[Int64s]:
        return np.split(self.rows, np.cumsum(self.count)[:-1])


def _donors(state: Standing, movable: Bools) -> _Donors:
    rows = np.flatnonzero(movable)
    index = state.replica_index[rows]
    slots = np.sort(np.where(index >= 0, state.replica_racks[rows] * 2 + state.receiving[index], -2), axis=1)
    wanted = state.wanted_factor[rows]
    groups = grouped(np.column_stack([slots, wanted]))
    held, usable = slots_per_rack(slots[groups.first], state.shares.racks)
    wanted, homes = wanted[groups.first], state.homes
    places = np.bincount(homes.rack_codes[state.receiving & (homes.rack_codes >= 0)], minlength=state.shares.racks)
    free = usable < places
    least, most = state.shares.least[wanted, :-1], state.shares.most[wanted, :-1]
    return _Donors(rows, groups, held > least, (held < most) & free, free)


def _held(state: Standing, donors: _Donors) -> _Held:
    index = state.replica_index[donors.rows]
    # A fenced broker keeps what it holds until it is back or drained.
    row, column = np.nonzero((state.replica_racks[donors.rows] >= 0) & state.receiving[index])
    kinds = max(1, len(donors.groups))
    pair = index[row, column].astype(np.int64) * kinds + donors.groups.of_row[row]
    order = np.lexsort((state.rows.size_bytes[donors.rows[row]], pair))
    distinct, count = np.unique(pair, return_counts=True)
    return _Held(distinct // kinds, distinct % kinds, count, donors.rows[row[order]])


def _add_exchanges(
    book: ArcBook, state: Standing, donors: _Donors, held: _Held, brokers: Int64s, racks: Int64s
) -> tuple[slice, slice]:
    """Arcs broker → kind, for replicas that may leave their rack, and kind → rack that may take them."""
    size, none = donors.groups.size, np.zeros(len(donors.groups), dtype=np.int64)
    gather, scatter = book.nodes(none), book.nodes(none)
    book.add(gather, scatter, size)
    may = donors.spare[held.kind, state.homes.rack_codes[held.broker]]
    across = book.add(brokers[held.broker], gather[held.kind], np.where(may, held.count, 0), 1)
    kind, rack = np.nonzero(donors.room)
    into = book.add(scatter[kind], racks[rack], size[kind])
    return across, into


def _realised(
    state: Standing, donors: _Donors, held: _Held, within: Int64s, across: Int64s, into: Int64s, quotas: Int64s
) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Actual partitions for the units of flow, the smallest first, each giving once."""
    none = np.zeros(0, dtype=np.int64)
    given = [(none, none, none), *_given(state, held, within, across)]
    row, pair, leaves = (np.concatenate(column) for column in zip(*given, strict=True))
    rack = state.homes.rack_codes[held.broker[pair]].astype(np.int64)
    kind, open_rack = np.nonzero(donors.room)
    for code in np.unique(held.kind[pair[leaves > 0]]).tolist():
        mine = np.flatnonzero((leaves > 0) & (held.kind[pair] == code))
        rack[mine] = np.repeat(open_rack[kind == code], into[kind == code])[: len(mine)]
    return row, held.broker[pair], rack, _trimmed(state, quotas, rack)


def _given(state: Standing, held: _Held, within: Int64s, across: Int64s) -> Iterator[tuple[Int64s, Int64s, Int64s]]:
    """For each pair that gives: rows, the pair's number, and whether each row's replica leaves its rack."""
    used, donors_of = np.zeros(len(state.rows), dtype=np.bool_), held.donors_of()
    for pair in np.flatnonzero(within + across).tolist():
        able = donors_of[pair]
        mine = able[~used[able]][: int(within[pair] + across[pair])]
        used[mine] = True
        yield mine, np.full(len(mine), pair), (np.arange(len(mine)) < across[pair]).astype(np.int64)


def _trimmed(state: Standing, quotas: Int64s, rack: Int64s) -> Int64s:
    """Quotas lowered to what really arrives in each rack, at the brokers that would hold most."""
    quotas = quotas.copy()
    for code in range(state.shares.racks):
        brokers = np.flatnonzero(state.homes.rack_codes == code)
        for _ in range(int(quotas[brokers].sum()) - int(np.count_nonzero(rack == code))):
            fullest = brokers[np.argmax(np.where(quotas[brokers] > 0, state.loads[brokers] + quotas[brokers], -1))]
            quotas[fullest] -= 1
    return quotas
