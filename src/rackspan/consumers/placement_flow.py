"""Which kinds of partitions go to which cohorts of members: the least cross-rack reads, then the fewest moves."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rackspan.consumers.kinds import Cohort, Kind, Kinds
from rackspan.consumers.shares import Shares
from rackspan.flow import Arcs, arcs, connect, solve, split


@dataclass(frozen=True, slots=True)
class PlacementFlow:
    """Numbers of partitions: `kept` of a kind by the member that owned them, `sent` from a kind to a cohort, `taken` by a
    member from its cohort. `lower_bound` is what no balanced assignment undercuts, in units of `price`."""

    kept: Mapping[tuple[Kind, int], int]
    sent: Mapping[tuple[Kind, Cohort], int]
    taken: Mapping[int, int]
    crossing: int
    lower_bound: int

    def price(self, cross_rack: int, moved: int) -> int:
        return cross_rack * self.crossing + moved


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Members first, then cohorts, kinds, holdings; the sink is the last."""

    cohorts: Mapping[Cohort, int]
    kinds: Mapping[Kind, int]
    holdings: Mapping[tuple[Kind, int], int]

    @property
    def sink(self) -> int:
        return max([*self.kinds.values(), *self.holdings.values()]) + 1


def cheapest(group: Kinds, shares: Shares) -> PlacementFlow:
    """The balanced assignment of least cost, in numbers.

    Constraints: `shares`. Goal: the least cross-rack partitions; among those the fewest moves, each move costing 1 and each
    crossing more than all moves together.
    Method: min-cost flow. What a member owned stays with it (one arc) or moves, at 1, to its kind; a kind flows to every
    cohort that may read it, at one crossing where no replica is in the cohort's rack; a cohort to its members, which must
    take `least` and may take `most`. Members stay nodes for what they owned; partitions are never nodes.
    Bound: flow.solve on kinds + cohorts + 2 · members + kinds owned by a member; see flow/min_cost_flow.py.
    """
    crossing = sum(map(len, group.held.values())) + 1
    nodes = _numbered(group)
    stays = [one for one in group.held if _may_read(one[0], group.cohort[one[1]], shares)]
    sends = [(kind, cohort) for kind in nodes.kinds for cohort in nodes.cohorts if _may_read(kind, cohort, shares)]
    bundles = (
        _staying(group, nodes, stays, crossing),
        _moving(group, nodes),
        _sending(group, nodes, sends, crossing),
        _taking(group, nodes, shares),
        _more_than_least(group, nodes, shares),
    )
    answer = solve(connect(_supply(group, nodes, shares), *bundles))
    kept, _, sent, taken, _ = (part.tolist() for part in split(answer.flow, *bundles))
    return PlacementFlow(
        kept=dict(zip(stays, kept, strict=True)),
        sent={pair: units for pair, units in zip(sends, sent, strict=True) if units},
        taken=dict(enumerate(taken)),
        crossing=crossing,
        lower_bound=answer.certificate.lower_bound,
    )


def _numbered(group: Kinds) -> _Nodes:
    members, all_kinds = len(group.cohort), group.kinds
    cohorts = {cohort: members + number for number, cohort in enumerate(dict.fromkeys(group.cohort))}
    first_kind = members + len(cohorts)
    first_holding = first_kind + len(all_kinds)
    return _Nodes(
        cohorts,
        {kind: first_kind + number for number, kind in enumerate(all_kinds)},
        {holding: first_holding + number for number, holding in enumerate(group.held)},
    )


def _may_read(kind: Kind, cohort: Cohort, shares: Shares) -> bool:
    return (kind.audience, cohort.subscription) in shares.allowed


def _crosses(kind: Kind, cohort: Cohort) -> bool:
    return cohort.rack not in kind.racks


def _staying(group: Kinds, nodes: _Nodes, stays: list[tuple[Kind, int]], crossing: int) -> Arcs:
    return arcs(
        [nodes.holdings[one] for one in stays],
        [member for _, member in stays],
        [len(group.held[one]) for one in stays],
        [crossing * _crosses(kind, group.cohort[member]) for kind, member in stays],
    )


def _moving(group: Kinds, nodes: _Nodes) -> Arcs:
    heads = [nodes.kinds[kind] for kind, _ in nodes.holdings]
    return arcs(list(nodes.holdings.values()), heads, [len(held) for held in group.held.values()], 1)


def _sending(group: Kinds, nodes: _Nodes, sends: list[tuple[Kind, Cohort]], crossing: int) -> Arcs:
    return arcs(
        [nodes.kinds[kind] for kind, _ in sends],
        [nodes.cohorts[cohort] for _, cohort in sends],
        _partitions(group),
        [crossing * _crosses(kind, cohort) for kind, cohort in sends],
    )


def _taking(group: Kinds, nodes: _Nodes, shares: Shares) -> Arcs:
    members = list(range(len(group.cohort)))
    most = [shares.most[cohort.subscription] for cohort in group.cohort]
    return arcs([nodes.cohorts[cohort] for cohort in group.cohort], members, most, 0)


def _more_than_least(group: Kinds, nodes: _Nodes, shares: Shares) -> Arcs:
    spare = shares.most - shares.least
    return arcs(list(range(len(group.cohort))), nodes.sink, [spare[one.subscription] for one in group.cohort], 0)


def _supply(group: Kinds, nodes: _Nodes, shares: Shares) -> list[int]:
    """The least that members take leaves the network at the members, the rest at the sink."""
    supply = np.zeros(nodes.sink + 1, dtype=np.int64)
    supply[: len(group.cohort)] = [-shares.least[cohort.subscription] for cohort in group.cohort]
    for kind, free in group.free.items():
        supply[nodes.kinds[kind]] = len(free)
    for holding, held in group.held.items():
        supply[nodes.holdings[holding]] = len(held)
    supply[-1] = -supply.sum()
    return supply.tolist()


def _partitions(group: Kinds) -> int:
    return sum(map(len, group.free.values())) + sum(map(len, group.held.values()))
