"""How many leaders and replicas of a topic each broker gets, before anybody says of which partitions."""

from dataclasses import dataclass

import numpy as np

from rackspan.model.partitions import Int64s
from rackspan.model.racks import even_shares
from rackspan.placement.balanced.broker_table import Fleet
from rackspan.placement.balanced.water_fill import Vessels, rack_fill, water_fill


@dataclass(frozen=True, slots=True, eq=False)
class Quotas:
    """What each broker of a fleet gets. Shape (B,) each; leaders sum to P, replicas to P × RF, leaders ≤ replicas ≤ P."""

    leaders: Int64s
    replicas: Int64s


def quotas(fleet: Fleet, partitions: int, replication_factor: int, turn: Int64s, leaders_first: bool = True) -> Quotas:
    """Share a topic out.

    Constraints: each rack's total can be dealt so that every partition is spread as evenly as rack sizes allow, each
        broker's so that none holds a partition twice; higher ranks get only what is forced; fenced brokers lead nothing.
    Goals in order: leaders as level as can be, what brokers lead already included; then replicas likewise (the other
        way round unless `leaders_first`).
    Method: water-filling of leaders over all brokers; of replicas over racks within [P × floor, P × ceil], then inside
        each rack. What came first bounds what comes second from below (or above): a leader is a replica. Both sets of
        limits are laminar (brokers within racks within the topic), where filling the lowest first is optimal for every
        convex measure at once, so nothing that respects the first goal has a lower maximum in the second.
    Bound: with no load so far the fullest broker holds exactly `audit.loads.replica_bound` replicas, and leaders
        are at floor or ceil of the mean.
    Source: KIP-660, motivation; the bound is derived in audit/loads.py.

    `turn`: ranks (B,) that decide between brokers equally loaded.
    """
    nothing = np.zeros(len(fleet), dtype=np.int64)
    everything = np.full(len(fleet), partitions, dtype=np.int64)
    if leaders_first:
        leaders = leader_quotas(fleet, partitions, everything, turn)
        return Quotas(leaders, replica_quotas(fleet, partitions, replication_factor, leaders, leaders, turn))
    replicas = replica_quotas(fleet, partitions, replication_factor, nothing, nothing, turn)
    return Quotas(leader_quotas(fleet, partitions, replicas, turn), replicas)


def leader_quotas(fleet: Fleet, partitions: int, most: Int64s, turn: Int64s) -> Int64s:
    """Level the leaders; among brokers equally loaded with them, the one with fewer replicas per weight leads first."""
    held = fleet.shelved(fleet.leaders, partitions)
    poorer_first = _ranks(np.lexsort((turn, fleet.replicas / fleet.weight)))
    vessels = Vessels(
        group=np.zeros(len(fleet), dtype=np.int64),
        held=held,
        weight=fleet.weight,
        least=np.zeros(len(fleet), dtype=np.int64),
        most=np.where(fleet.may_lead, most, 0),
        turn=poorer_first,
    )
    return water_fill(vessels, np.array([partitions]))


def replica_quotas(
    fleet: Fleet, partitions: int, replication_factor: int, least: Int64s, leaders: Int64s, turn: Int64s
) -> Int64s:
    """Level the replicas over racks, then inside each; every broker gets at least `least`, at most one a partition.

    Among brokers equally loaded with replicas, one with more leaders (`leaders` of this topic included) comes first: the
    others will lead the next topics, and each leader is a replica more.
    """
    leading_first = _ranks(np.lexsort((turn, -(fleet.leaders + leaders) / fleet.weight)))
    fewest, most = even_shares(fleet.rack_sizes, replication_factor)
    vessels = Vessels(
        group=fleet.rack,
        held=fleet.shelved(fleet.replicas, partitions),
        weight=fleet.weight,
        least=least,
        most=np.full(len(fleet), partitions, dtype=np.int64),
        turn=leading_first,
    )
    totals = rack_fill(vessels, partitions * fewest, partitions * most, partitions * replication_factor)
    return water_fill(vessels, totals)


def _ranks(order: Int64s) -> Int64s:
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return ranks
