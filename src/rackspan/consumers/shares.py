"""How many partitions each member may have in a balanced assignment, racks left aside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rackspan.consumers.kinds import Audience
from rackspan.flow import Certificate, FlowNetwork, arcs, connect, solve

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """The set of all balanced assignments, described by three constraints.

    Each member of subscription s has `least[s]` to `most[s]` partitions, which differ by one at most, and a partition goes
    from its audience only to a subscription in `allowed`. The balanced assignments are exactly those that meet all three;
    one constraint alone may allow more. `proof` is the certificate of the balance. In every balanced assignment each member
    has at least `low` partitions.
    """

    least: Int64s
    most: Int64s
    allowed: frozenset[tuple[Audience, int]]
    low: int
    proof: Certificate

    def price(self, loads: Sequence[int]) -> int:
        """The cost of `loads` in the flow of `proof`: 1 for a member's first partition above `low`, 2 for its second, and so on."""
        return sum((load - self.low) * (load - self.low + 1) // 2 for load in loads)


def balanced_shares(partitions: Mapping[Audience, int], members: Sequence[int]) -> Shares:
    """The balanced assignments of a group with `members[s]` members of subscription s; at least one audience.

    Constraints: a partition goes to one member that subscribes to its topic.
    Goal: the loads of all members, sorted, as even as subscriptions permit: the least sum of their squares, and with it
    the least maximum, the greatest minimum and the least of every other convex sum (Harvey, Ladner, Lovász and Tamir 2006,
    semi-matchings). Members of one subscription end within one partition of each other; where all subscribe alike that is
    floor and ceiling.
    Method: min-cost flow audience -> subscription -> sink, whose last arc costs more with every partition a member has. The
    prices in its certificate say which arcs every cheapest flow fills, may use, and never uses (complementary slackness).
    That describes all balanced assignments; assign.py selects the best of them.
    Bound: as flow.solve, on audiences + subscriptions nodes; neither partitions nor members are nodes.
    Proven by tests/consumers/test_shares.py, which enumerates the balanced assignments.
    """
    low, high = _filled_range(partitions, members)
    pairs = [(audience, subscription) for audience in partitions for subscription in audience]
    network, levels = _network(partitions, members, pairs, low, high)
    solution = solve(network)
    reduced = _reduced_costs(network, solution.certificate.potential)
    on_pairs, _, on_levels = np.split(reduced, [len(pairs), len(pairs) + len(members)])
    by_level = on_levels.reshape(len(members), levels)
    return Shares(
        least=low + (by_level < 0).sum(axis=1),
        most=low + (by_level <= 0).sum(axis=1),
        allowed=frozenset(pair for pair, price in zip(pairs, on_pairs.tolist(), strict=True) if price == 0),
        low=low,
        proof=solution.certificate,
    )


def _network(
    partitions: Mapping[Audience, int],
    members: Sequence[int],
    pairs: Sequence[tuple[Audience, int]],
    low: int,
    high: int,
) -> tuple[FlowNetwork, int]:
    """One arc of rising cost for each load from low to high of a subscription; loads below low are always reached."""
    audiences = {audience: len(members) + number for number, audience in enumerate(partitions)}
    sink, levels = len(members) + len(audiences), high - low
    size, subscriptions = np.asarray(members), np.arange(len(members))
    shared = arcs(
        [audiences[audience] for audience, _ in pairs],
        [subscription for _, subscription in pairs],
        # One more than there is: an arc that is never full has no price below zero.
        [partitions[audience] + 1 for audience, _ in pairs],
        0,
    )
    filled = arcs(subscriptions, sink, size * low, 0)
    rising = arcs(
        np.repeat(subscriptions, levels), sink, np.repeat(size, levels), np.tile(np.arange(1, levels + 1), len(members))
    )
    total = sum(partitions.values())
    return connect([*([0] * len(members)), *partitions.values(), -total], shared, filled, rising), levels


def _reduced_costs(network: FlowNetwork, potential: Int64s) -> Int64s:
    return network.unit_cost + potential[network.tail] - potential[network.head]


def _filled_range(partitions: Mapping[Audience, int], members: Sequence[int]) -> tuple[int, int]:
    """Least and greatest load when each partition goes to the least loaded reader, topics with few readers first.

    No assignment has a greater minimum or a smaller maximum than the most balanced one, so these two enclose its loads.
    """
    subscription = np.repeat(np.arange(len(members)), members)
    loads = np.zeros(len(subscription), dtype=np.int64)
    for audience in sorted(partitions, key=lambda audience: (len(audience), audience)):
        readers = np.flatnonzero(np.isin(subscription, audience))
        loads[readers] = _filled(loads[readers], partitions[audience])
    return int(loads.min()), int(loads.max())


def _filled(loads: Int64s, units: int) -> Int64s:
    """Loads (n,) after `units` more partitions, each for a member with the least load; n > 0."""
    order = np.argsort(loads, kind="stable")
    ranked = loads[order]
    # Units that raise the first k members to the level of the next.
    needed = np.arange(1, len(ranked)) * ranked[1:] - np.cumsum(ranked)[:-1]
    lowest = int(np.searchsorted(needed, units, side="right")) + 1
    level, rest = divmod(int(ranked[:lowest].sum()) + units, lowest)
    filled = loads.copy()
    filled[order[:lowest]] = level
    filled[order[:rest]] += 1
    return filled
