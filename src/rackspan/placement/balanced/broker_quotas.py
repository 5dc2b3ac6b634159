"""How many leaders and replicas of a topic each broker gets; which partitions these are is decided later."""

from dataclasses import dataclass

import numpy as np

from rackspan.model import Int64s, even_shares
from rackspan.placement.balanced.broker_table import BrokerTable
from rackspan.placement.balanced.water_fill import Vessels, rack_fill, water_fill


@dataclass(frozen=True, slots=True, eq=False)
class BrokerQuotas:
    """Leaders and replicas for each broker. Shape (B,) each; sums P and P × RF; leaders ≤ replicas ≤ P."""

    leaders: Int64s
    replicas: Int64s


def broker_quotas(
    table: BrokerTable, partitions: int, replication_factor: int, tie_rank: Int64s, leaders_first: bool = True
) -> BrokerQuotas:
    """The leaders and replicas of a topic that each broker gets.

    Constraints: each rack's total can be distributed so that every partition is spread as evenly as rack sizes allow, each
        broker's so that none holds a partition twice; higher ranks get only what is forced; fenced brokers lead nothing.
    Goals in order: leaders as level as possible, what brokers lead already included; then replicas likewise (the other
        way round unless `leaders_first`).
    Method: water-filling of leaders over all brokers; of replicas over racks within [P × floor, P × ceil], then inside
        each rack. The first result bounds the second from below (or above): a leader is a replica. Both sets of limits
        are laminar (brokers within racks within the topic), where filling the lowest first is optimal for every convex
        measure at once, so nothing that meets the first goal has a lower maximum in the second.
    Bound: with no load so far the fullest broker holds exactly `audit.loads.replica_bound` replicas, and leaders
        are at floor or ceil of the mean.
    Source: KIP-660, motivation; the bound is derived in audit/loads.py.
    Test: tests/placement/balanced/test_placer.py, against least_possible.py.

    `tie_rank`: distinct ranks (B,); of brokers equally loaded the lower rank comes first.
    """
    none = np.zeros(len(table), dtype=np.int64)
    all_partitions = np.full(len(table), partitions, dtype=np.int64)
    if leaders_first:
        leaders = leader_quotas(table, partitions, all_partitions, tie_rank)
        return BrokerQuotas(leaders, replica_quotas(table, partitions, replication_factor, leaders, leaders, tie_rank))
    replicas = replica_quotas(table, partitions, replication_factor, none, none, tie_rank)
    return BrokerQuotas(leader_quotas(table, partitions, replicas, tie_rank), replicas)


def leader_quotas(table: BrokerTable, partitions: int, most: Int64s, tie_rank: Int64s) -> Int64s:
    """Level the leaders; among brokers equally loaded with them, the one with fewer replicas per weight leads first."""
    held = table.raised_by_rank(table.leaders, partitions)
    fewer_replicas_first = _ranks(np.lexsort((tie_rank, table.replicas / table.weight)))
    vessels = Vessels(
        group=np.zeros(len(table), dtype=np.int64),
        held=held,
        weight=table.weight,
        least=np.zeros(len(table), dtype=np.int64),
        most=np.where(table.may_lead, most, 0),
        tie_rank=fewer_replicas_first,
    )
    return water_fill(vessels, np.array([partitions]))


def replica_quotas(
    table: BrokerTable, partitions: int, replication_factor: int, least: Int64s, leaders: Int64s, tie_rank: Int64s
) -> Int64s:
    """Level the replicas over racks, then inside each; every broker gets at least `least`, at most one a partition.

    Among brokers equally loaded with replicas, one with more leaders (`leaders` of this topic included) comes first: the
    others will lead the next topics, and each leader is a replica more.
    """
    more_leaders_first = _ranks(np.lexsort((tie_rank, -(table.leaders + leaders) / table.weight)))
    fewest, most = even_shares(table.rack_sizes, replication_factor)
    vessels = Vessels(
        group=table.rack,
        held=table.raised_by_rank(table.replicas, partitions),
        weight=table.weight,
        least=least,
        most=np.full(len(table), partitions, dtype=np.int64),
        tie_rank=more_leaders_first,
    )
    totals = rack_fill(vessels, partitions * fewest, partitions * most, partitions * replication_factor)
    return water_fill(vessels, totals)


def _ranks(order: Int64s) -> Int64s:
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return ranks
