"""The least movement into the constraints, dealt so that brokers end as even as that movement allows."""

from dataclasses import dataclass

import numpy as np

from rackspan.flow import solve
from rackspan.model.partitions import Bools, Int64s
from rackspan.reassign.optimizer.additions import Arrivals, hand_out
from rackspan.reassign.optimizer.bounds import Needs, needs
from rackspan.reassign.optimizer.load_costs import ladder
from rackspan.reassign.optimizer.network_builder import ArcBook
from rackspan.reassign.optimizer.removals import EvictionChoices, eviction_choices
from rackspan.reassign.optimizer.repair_groups import Kinds, kinds
from rackspan.reassign.optimizer.row_groups import deal
from rackspan.reassign.problem import Standing

OPEN_RACKS_MAX = 64
"""Racks offered to each kind. Where every broker is a rack of its own, offering all of them would be kinds × brokers arcs."""


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What leaves and what comes. `leaving` (P, width) marks replicas of `Standing.replica_index`; `arrivals` in any order.

    `blocked` (N,): rows that need something no broker can receive now; they stay as they are.
    """

    leaving: Bools
    arrivals: Arrivals
    blocked: Int64s


def repair(now: Standing, needed: Needs, rows: Int64s) -> Changes:
    """Bring `rows` into the constraints.

    Constraints: racks hold between floor and ceil of each partition's even share; no broker twice; nothing stays on or
    comes to a broker that leaves; nothing comes to a fenced one.
    Goals, in order: the fewest moves (exactly `needed.arrivals`, so bytes are the least too: a partition's copies are
    equally large); replicas out of sync leave before those in sync; what is replaced stays in its rack; the least sum
    of squared replicas per broker.
    Method: one min-cost flow in which each broker supplies its load. Partitions with the same rack counts are one node
    that hands its arrivals to racks and on to brokers; partitions with the same candidates for eviction are one node
    that takes from them. What stays with a broker climbs its ladder. Flows are integers; a group's lot is dealt to its
    partitions in turn, which keeps every limit (grouping.deal).
    Bound: moves equal bounds.needs; the flow is certified cheapest.
    Source: placement by water-filling; STRIPED and AdminUtils of Kafka place from scratch and know no movement.
    """
    of_kind = kinds(now, needed, rows)
    reachable = of_kind.reachable
    included = np.flatnonzero(reachable[of_kind.groups.of_row])
    leaving = _forced_out(now, needed, rows[included])
    if not len(included):
        return Changes(leaving, Arrivals(_none(), _none()), rows)
    evicted, (row, rack), quotas = _solved(now, of_kind, reachable, included)
    out_of, broker = evicted
    leaving[out_of, (now.replica_index[out_of] == broker[:, None]).argmax(axis=1)] = True
    arrivals = hand_out(row, rack, quotas, now.homes.rack_codes, now.replica_index)
    return Changes(leaving, arrivals, rows[~reachable[of_kind.groups.of_row]])


def in_need(now: Standing) -> tuple[Needs, Int64s, Int64s]:
    """What every partition needs, the chosen rows that need something, and those that ask more brokers than there are."""
    uncounted = np.count_nonzero((now.replica_index >= 0) & (now.replica_racks < 0), axis=1)
    possible = int(now.homes.sizes.sum()) + uncounted
    asks_too_much = now.chosen & (now.wanted_factor > possible)
    wanted = np.where(asks_too_much, now.current_factor, now.wanted_factor)
    needed = needs(now.replica_racks, uncounted, np.minimum(wanted, len(now.shares.least) - 1), now.shares)
    gone = np.count_nonzero(now.replica_index >= 0, axis=1) < now.current_factor
    some = now.chosen & ((needed.arrivals > 0) | (needed.evictions > 0) | (needed.uncounted_evictions > 0) | gone)
    return needed, np.flatnonzero(some & ~asks_too_much), np.flatnonzero(asks_too_much)


def _forced_out(now: Standing, needed: Needs, rows: Int64s) -> Bools:
    """Of replicas that count in no rack, the last ones beyond what may stay."""
    leaving = np.zeros(now.replica_index.shape, dtype=np.bool_)
    uncounted = (now.replica_index[rows] >= 0) & (now.replica_racks[rows] < 0)
    from_the_right = np.cumsum(uncounted[:, ::-1], axis=1)[:, ::-1]
    leaving[rows] = uncounted & (from_the_right <= needed.uncounted_evictions[rows][:, None])
    return leaving


def _solved(
    now: Standing, of_kind: Kinds, reachable: Bools, included: Int64s
) -> tuple[tuple[Int64s, Int64s], tuple[Int64s, Int64s], Int64s]:
    """Evictions as rows and brokers, arrivals as rows and racks, and arrivals per broker."""
    book = ArcBook()
    brokers = book.nodes(now.loads)
    (sink,) = book.nodes(np.zeros(1, dtype=np.int64)).tolist()
    choices = eviction_choices(now, of_kind, included)
    # Dearer than any step of any ladder: evenness never decides against a replica's sync or rack.
    dear = 4 * int(max(now.loads.max(initial=0), len(now.rows)) + 1)
    leave = _add_evictions(book, brokers, choices, dear)
    racks, come, kind, rack = _add_arrivals(book, of_kind, reachable, dear)
    taking = np.flatnonzero(now.receiving & (now.homes.rack_codes >= 0))
    land = book.add(racks[now.homes.rack_codes[taking]], brokers[taking], len(of_kind.rows) + 1)
    steps = ladder(now)
    book.add(brokers[steps.broker], np.full(len(steps.broker), sink), steps.capacity, steps.unit_cost)
    flow = solve(book.network(sink)).flow
    units = flow[come] + _least(of_kind, kind, rack)
    item = np.repeat(np.arange(len(units)), units)
    quotas = np.zeros(len(brokers), dtype=np.int64)
    quotas[taking] = flow[land]
    arriving = of_kind.rows[deal(of_kind.groups, kind[item])]
    return choices.dealt(flow[leave]), (arriving, rack[item]), quotas


def _add_evictions(book: ArcBook, brokers: Int64s, choices: EvictionChoices, dear: int) -> slice:
    """Arcs broker → group and rack, and on to the group where it is free to choose the rack."""
    size = choices.groups.size
    nodes = book.nodes(-choices.node_must * size[choices.node_group])
    groups = book.nodes(-choices.group_free * size)
    # Where a rack may give all its candidates and must give none, there is nothing for its node to limit.
    candidates = np.bincount(choices.arc_node, minlength=len(nodes))
    unlimited = (choices.node_must == 0) & (candidates <= choices.node_may)
    head = np.where(unlimited[choices.arc_node], groups[choices.arc_group], nodes[choices.arc_node])
    cost = np.where(choices.arc_in_sync, dear, 0)
    leave = book.add(brokers[choices.arc_broker], head, size[choices.arc_group], cost)
    free = np.flatnonzero((choices.node_may > 0) & ~unlimited)
    of_free = choices.node_group[free]
    book.add(nodes[free], groups[of_free], choices.node_may[free] * size[of_free])
    return leave


def _add_arrivals(book: ArcBook, of_kind: Kinds, reachable: Bools, dear: int) -> tuple[Int64s, slice, Int64s, Int64s]:
    """Arcs kind → rack. What a rack must receive it is given outright; the arcs carry the rest."""
    size = np.where(reachable, of_kind.groups.size, 0)
    least = of_kind.least_arrivals * size[:, None]
    kind_nodes = book.nodes(of_kind.arrivals * size - least.sum(axis=1))
    racks = book.nodes(least.sum(axis=0))
    kind, rack = np.nonzero(_offered(of_kind) & reachable[:, None])
    spare = of_kind.most_arrivals[kind, rack] - of_kind.least_arrivals[kind, rack]
    elsewhere = (of_kind.own_rack[kind] >= 0) & (of_kind.own_rack[kind] != rack)
    come = book.add(kind_nodes[kind], racks[rack], spare * size[kind], np.where(elsewhere, dear, 0))
    return racks, come, kind, rack


def _offered(of_kind: Kinds) -> Bools:
    """Racks with room; where there are very many, a window of them that starts elsewhere for each kind."""
    open_racks = of_kind.most_arrivals > 0
    racks = open_racks.shape[1]
    if racks <= OPEN_RACKS_MAX:
        return np.asarray(open_racks)
    must = (of_kind.least_arrivals > 0) | (np.arange(racks) == of_kind.own_rack[:, None])
    turn = (np.arange(racks) - 7 * np.arange(len(open_racks))[:, None]) % racks
    nth = np.where(open_racks, turn, racks)
    window = np.maximum(OPEN_RACKS_MAX, of_kind.arrivals)[:, None]
    return np.asarray(open_racks & (must | (nth.argsort(axis=1).argsort(axis=1) < window)))


def _least(of_kind: Kinds, kind: Int64s, rack: Int64s) -> Int64s:
    return of_kind.least_arrivals[kind, rack] * of_kind.groups.size[kind]


def _none() -> Int64s:
    return np.zeros(0, dtype=np.int64)
