"""The fewest moves into the constraints, distributed so that the replica counts of brokers end as even as those moves allow."""

from dataclasses import dataclass

import numpy as np

from rackspan.flow import NetworkBuilder, solve
from rackspan.model.partitions import Bools, Int64s
from rackspan.reassign.optimizer.additions import Additions, distribute_additions
from rackspan.reassign.optimizer.bounds import Needs, needs
from rackspan.reassign.optimizer.load_costs import load_costs
from rackspan.reassign.optimizer.removals import RemovalChoices, removal_choices
from rackspan.reassign.optimizer.repair_groups import RepairGroups, repair_groups
from rackspan.reassign.optimizer.row_groups import distribute_items
from rackspan.reassign.problem import ReassignmentProblem

OPEN_RACKS_MAX = 64
"""Racks offered to each group. Where every broker is a rack of its own, offering all of them would be groups × brokers arcs."""


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Replicas to remove and to add. `leaving` (P, width) marks replicas of `ReassignmentProblem.replica_index`; `additions` in any order.

    `blocked` (N,): rows that need something no broker can receive now; they stay as they are.
    """

    leaving: Bools
    additions: Additions
    blocked: Int64s


def repair(problem: ReassignmentProblem, needed: Needs, rows: Int64s) -> Changes:
    """Bring `rows` into the constraints.

    Constraints: racks hold between floor and ceil of each partition's even share; no broker twice; nothing stays on or
    is added to a broker that leaves; nothing is added to a fenced one.
    Goals, in order: the fewest moves (exactly `needed.additions`, so bytes are the least too: a partition's copies are
    equally large); replicas out of sync leave before those in sync; what is replaced stays in its rack; the least sum
    of squared replicas per broker.
    Method: one min-cost flow in which each broker supplies its load. Partitions with the same rack counts are one node
    that sends its additions to racks and on to brokers; partitions with the same candidates for removal are one node
    that takes from them. What stays with a broker leaves through its load costs. Flows are integers; the units of a group go
    to its partitions in turn, which keeps every limit (row_groups.distribute_items).
    Bound: moves equal bounds.needs; the flow is certified cheapest. Test: tests/reassign/optimizer/test_repair.py.
    Source: placement by water-filling; Kafka's StripedReplicaPlacer and AdminUtils place from scratch and do not count movement.
    """
    groups = repair_groups(problem, needed, rows)
    reachable = groups.reachable
    included = np.flatnonzero(reachable[groups.row_groups.of_row])
    leaving = _forced_out(problem, needed, rows[included])
    if not len(included):
        return Changes(leaving, Additions(_none(), _none()), rows)
    removed, (row, rack), quotas = _solved(problem, groups, reachable, included)
    out_of, broker = removed
    leaving[out_of, (problem.replica_index[out_of] == broker[:, None]).argmax(axis=1)] = True
    additions = distribute_additions(
        row, rack, quotas, problem.rack_map.rack_codes, problem.replica_index, problem.can_receive
    )
    return Changes(leaving, additions, rows[~reachable[groups.row_groups.of_row]])


def in_need(problem: ReassignmentProblem) -> tuple[Needs, Int64s, Int64s]:
    """What every partition needs, the chosen rows that need something, and those that need more brokers than there are."""
    uncounted = np.count_nonzero((problem.replica_index >= 0) & (problem.replica_racks < 0), axis=1)
    possible = int(problem.rack_map.sizes.sum()) + uncounted
    needs_too_much = problem.chosen & (problem.target_factor > possible)
    factor = np.where(needs_too_much, problem.current_factor, problem.target_factor)
    needed = needs(problem.replica_racks, uncounted, np.minimum(factor, len(problem.shares.least) - 1), problem.shares)
    gone = np.count_nonzero(problem.replica_index >= 0, axis=1) < problem.current_factor
    some = problem.chosen & ((needed.additions > 0) | (needed.removals > 0) | (needed.uncounted_removals > 0) | gone)
    return needed, np.flatnonzero(some & ~needs_too_much), np.flatnonzero(needs_too_much)


def _forced_out(problem: ReassignmentProblem, needed: Needs, rows: Int64s) -> Bools:
    """The last of the replicas that count in no rack, those beyond what may stay."""
    leaving = np.zeros(problem.replica_index.shape, dtype=np.bool_)
    uncounted = (problem.replica_index[rows] >= 0) & (problem.replica_racks[rows] < 0)
    from_the_right = np.cumsum(uncounted[:, ::-1], axis=1)[:, ::-1]
    leaving[rows] = uncounted & (from_the_right <= needed.uncounted_removals[rows][:, None])
    return leaving


def _solved(
    problem: ReassignmentProblem, groups: RepairGroups, reachable: Bools, included: Int64s
) -> tuple[tuple[Int64s, Int64s], tuple[Int64s, Int64s], Int64s]:
    """Evictions as rows and brokers, additions as rows and racks, and additions per broker."""
    builder = NetworkBuilder()
    brokers = builder.nodes(problem.loads)
    (sink,) = builder.nodes(np.zeros(1, dtype=np.int64)).tolist()
    choices = removal_choices(problem, groups, included)
    # Higher than any load cost: evenness never decides against a replica's sync or rack.
    penalty = 4 * int(max(problem.loads.max(initial=0), len(problem.rows)) + 1)
    removal_arcs = _add_removal_arcs(builder, brokers, choices, penalty)
    racks, addition_arcs, group, rack = _add_addition_arcs(builder, groups, reachable, penalty)
    receivers = np.flatnonzero(problem.can_receive & (problem.rack_map.rack_codes >= 0))
    arrival_arcs = builder.add(racks[problem.rack_map.rack_codes[receivers]], brokers[receivers], len(groups.rows) + 1)
    steps = load_costs(problem)
    builder.add(brokers[steps.broker], np.full(len(steps.broker), sink), steps.capacity, steps.unit_cost)
    flow = solve(builder.network(sink)).flow
    units = flow[addition_arcs] + _least(groups, group, rack)
    item = np.repeat(np.arange(len(units)), units)
    quotas = np.zeros(len(brokers), dtype=np.int64)
    quotas[receivers] = flow[arrival_arcs]
    added_rows = groups.rows[distribute_items(groups.row_groups, group[item])]
    return choices.removals_of(flow[removal_arcs]), (added_rows, rack[item]), quotas


def _add_removal_arcs(builder: NetworkBuilder, brokers: Int64s, choices: RemovalChoices, penalty: int) -> slice:
    """Arcs broker → group and rack, and on to the group where it is free to choose the rack."""
    size = choices.groups.size
    nodes = builder.nodes(-choices.node_must * size[choices.node_group])
    groups = builder.nodes(-choices.group_free * size)
    # Where a rack may give all its candidates and must give none, there is nothing for its node to limit.
    candidates = np.bincount(choices.arc_node, minlength=len(nodes))
    unlimited = (choices.node_must == 0) & (candidates <= choices.node_may)
    head = np.where(unlimited[choices.arc_node], groups[choices.arc_group], nodes[choices.arc_node])
    cost = np.where(choices.arc_in_sync, penalty, 0)
    leave = builder.add(brokers[choices.arc_broker], head, size[choices.arc_group], cost)
    free = np.flatnonzero((choices.node_may > 0) & ~unlimited)
    of_free = choices.node_group[free]
    builder.add(nodes[free], groups[of_free], choices.node_may[free] * size[of_free])
    return leave


def _add_addition_arcs(
    builder: NetworkBuilder, groups: RepairGroups, reachable: Bools, penalty: int
) -> tuple[Int64s, slice, Int64s, Int64s]:
    """Arcs group → rack. What a rack must receive it is given outright; the arcs carry the rest."""
    size = np.where(reachable, groups.row_groups.size, 0)
    least = groups.least_additions * size[:, None]
    group_nodes = builder.nodes(groups.additions * size - least.sum(axis=1))
    racks = builder.nodes(least.sum(axis=0))
    group, rack = np.nonzero(_offered(groups) & reachable[:, None])
    spare = groups.most_additions[group, rack] - groups.least_additions[group, rack]
    elsewhere = (groups.own_rack[group] >= 0) & (groups.own_rack[group] != rack)
    addition_arcs = builder.add(group_nodes[group], racks[rack], spare * size[group], np.where(elsewhere, penalty, 0))
    return racks, addition_arcs, group, rack


def _offered(groups: RepairGroups) -> Bools:
    """Racks that may receive; where there are very many, a window of them that starts elsewhere for each group."""
    open_racks = groups.most_additions > 0
    racks = open_racks.shape[1]
    if racks <= OPEN_RACKS_MAX:
        return np.asarray(open_racks)
    must = (groups.least_additions > 0) | (np.arange(racks) == groups.own_rack[:, None])
    turn = (np.arange(racks) - 7 * np.arange(len(open_racks))[:, None]) % racks
    nth = np.where(open_racks, turn, racks)
    window = np.maximum(OPEN_RACKS_MAX, groups.additions)[:, None]
    return np.asarray(open_racks & (must | (nth.argsort().argsort() < window)))


def _least(groups: RepairGroups, group: Int64s, rack: Int64s) -> Int64s:
    return groups.least_additions[group, rack] * groups.row_groups.size[group]


def _none() -> Int64s:
    return np.zeros(0, dtype=np.int64)
