"""How many partitions of each kind go to each cohort of members: the fewest cross-rack reads, then the fewest moves."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rackspan.consumers.kinds import Cohort, GroupKinds, PartitionKind
from rackspan.consumers.shares import Shares
from rackspan.flow import Arcs, arcs, connect, solve, split


@dataclass(frozen=True, slots=True)
class AssignmentFlow:
    """Numbers of partitions, and their proven cost.

    `kept` counts the partitions of a kind that stay with the member that owned them, `sent` those that go from a kind to a
    cohort, `received` those that a member receives from its cohort. `crossing` is the price of one cross-rack partition.
    No balanced assignment has a price below `lower_bound`.
    """

    kept: Mapping[tuple[PartitionKind, int], int]
    sent: Mapping[tuple[PartitionKind, Cohort], int]
    received: Mapping[int, int]
    crossing: int
    lower_bound: int

    def price(self, cross_rack: int, moved: int) -> int:
        return cross_rack * self.crossing + moved


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Node numbers: members first, then cohorts, kinds and holdings (the partitions of a kind that a member owned), then the sink."""

    cohorts: Mapping[Cohort, int]
    kinds: Mapping[PartitionKind, int]
    holdings: Mapping[tuple[PartitionKind, int], int]

    @property
    def sink(self) -> int:
        return max([*self.kinds.values(), *self.holdings.values()]) + 1


def cheapest_assignment(group: GroupKinds, shares: Shares) -> AssignmentFlow:
    """The balanced assignment of least cost, as numbers of partitions.

    Constraints: `shares`. Goals in order: the fewest cross-rack partitions; the fewest moves. A move costs 1, and a
    cross-rack partition costs more than all moves together.
    Method: min-cost flow. Partitions that a member owned stay with it (one arc) or move to their kind at cost 1. A kind flows
    to every cohort that may read it, at the price of a cross-rack partition where no replica is in the cohort's rack. A
    cohort flows to its members, each of which receives `least` to `most`. Single partitions are never nodes.
    Bound: flow.solve on members + cohorts + kinds + holdings nodes; see flow/min_cost_flow.py.
    Test: tests/consumers/test_assign.py, by a second solver.
    """
    crossing = sum(map(len, group.owned.values())) + 1
    nodes = _numbered(group)
    stays = [(kind, member) for kind, member in group.owned if _may_read(kind, group.cohort[member], shares)]
    sends = [(kind, cohort) for kind in nodes.kinds for cohort in nodes.cohorts if _may_read(kind, cohort, shares)]
    bundles = (
        _staying(group, nodes, stays, crossing),
        _moving(group, nodes),
        _sending(group, nodes, sends, crossing),
        _receiving(group, nodes, shares),
        _above_least(group, nodes, shares),
    )
    solution = solve(connect(_supply(group, nodes, shares), *bundles))
    kept, _, sent, received, _ = (part.tolist() for part in split(solution.flow, *bundles))
    return AssignmentFlow(
        kept=dict(zip(stays, kept, strict=True)),
        sent={pair: count for pair, count in zip(sends, sent, strict=True) if count},
        received=dict(enumerate(received)),
        crossing=crossing,
        lower_bound=solution.certificate.lower_bound,
    )


def _numbered(group: GroupKinds) -> _Nodes:
    members, all_kinds = len(group.cohort), group.kinds
    cohorts = {cohort: members + number for number, cohort in enumerate(dict.fromkeys(group.cohort))}
    first_kind = members + len(cohorts)
    first_holding = first_kind + len(all_kinds)
    return _Nodes(
        cohorts,
        {kind: first_kind + number for number, kind in enumerate(all_kinds)},
        {holding: first_holding + number for number, holding in enumerate(group.owned)},
    )


def _may_read(kind: PartitionKind, cohort: Cohort, shares: Shares) -> bool:
    return (kind.audience, cohort.subscription) in shares.allowed


def _crosses(kind: PartitionKind, cohort: Cohort) -> bool:
    return cohort.rack not in kind.racks


def _staying(group: GroupKinds, nodes: _Nodes, stays: list[tuple[PartitionKind, int]], crossing: int) -> Arcs:
    return arcs(
        [nodes.holdings[holding] for holding in stays],
        [member for _, member in stays],
        [len(group.owned[holding]) for holding in stays],
        [crossing * _crosses(kind, group.cohort[member]) for kind, member in stays],
    )


def _moving(group: GroupKinds, nodes: _Nodes) -> Arcs:
    heads = [nodes.kinds[kind] for kind, _ in nodes.holdings]
    return arcs(list(nodes.holdings.values()), heads, [len(partitions) for partitions in group.owned.values()], 1)


def _sending(group: GroupKinds, nodes: _Nodes, sends: list[tuple[PartitionKind, Cohort]], crossing: int) -> Arcs:
    return arcs(
        [nodes.kinds[kind] for kind, _ in sends],
        [nodes.cohorts[cohort] for _, cohort in sends],
        _partitions(group),
        [crossing * _crosses(kind, cohort) for kind, cohort in sends],
    )


def _receiving(group: GroupKinds, nodes: _Nodes, shares: Shares) -> Arcs:
    members = list(range(len(group.cohort)))
    most = [shares.most[cohort.subscription] for cohort in group.cohort]
    return arcs([nodes.cohorts[cohort] for cohort in group.cohort], members, most, 0)


def _above_least(group: GroupKinds, nodes: _Nodes, shares: Shares) -> Arcs:
    spare = shares.most - shares.least
    return arcs(list(range(len(group.cohort))), nodes.sink, [spare[cohort.subscription] for cohort in group.cohort], 0)


def _supply(group: GroupKinds, nodes: _Nodes, shares: Shares) -> list[int]:
    """Each member's least share leaves the network at the member, the rest at the sink."""
    supply = np.zeros(nodes.sink + 1, dtype=np.int64)
    supply[: len(group.cohort)] = [-shares.least[cohort.subscription] for cohort in group.cohort]
    for kind, partitions in group.unowned.items():
        supply[nodes.kinds[kind]] = len(partitions)
    for holding, partitions in group.owned.items():
        supply[nodes.holdings[holding]] = len(partitions)
    supply[-1] = -supply.sum()
    return supply.tolist()


def _partitions(group: GroupKinds) -> int:
    return sum(map(len, group.unowned.values())) + sum(map(len, group.owned.values()))
