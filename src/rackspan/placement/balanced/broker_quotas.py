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
    Goals in order: 1. the topic's leaders as level as possible; 2. its replicas likewise; 3. all leaders, those that
        brokers have already included; 4. all replicas, given which brokers lead. Unless `leaders_first`, replicas precede
        leaders in both pairs, and the last goal is for given replicas.
        The topic's partitions that exist count in 1 and 2. With `table.level_cluster`: all leaders, then all replicas; how level the topic itself is does not count.
    Level means: the counts per weight, sorted downwards, are lexicographically least.
    Method: water-filling of leaders over all brokers; of replicas over racks within [P × floor, P × ceil], then inside
        each rack. The first result bounds the second from below (or above): a leader is a replica. Both sets of limits
        are laminar (brokers within racks within the topic), where filling the lowest first is optimal for every convex
        measure at once, so nothing that meets the first goal has a lower maximum in the second. The load is the rank in
        which brokers of one level get the units that do not suffice for all: the least loaded first, which is optimal for
        3 and 4 as a greedy choice in a laminar matroid is. For a new topic goal 2 is not spoilt by the choice of leaders for
        3: a broker's even share of replicas is never below its even share of leaders.
    Bound: for a new topic (with `level_cluster`: on an empty cluster) the fullest broker holds exactly `audit.loads.replica_bound` replicas, and leaders
        are at floor or ceil of the mean.
    Source: KIP-660, motivation; the bound is derived in audit/loads.py.
    Test: tests/placement/balanced/test_goal_order.py, by enumeration; test_placer.py, against least_possible.py.

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
    """Level the leaders; of brokers at one level, the first is that with fewer leaders per weight, then fewer replicas."""
    least_loaded_first = np.lexsort((tie_rank, table.replicas / table.weight, table.leaders / table.weight))
    held = table.leaders if table.level_cluster else table.topic_leaders
    vessels = Vessels(
        group=np.zeros(len(table), dtype=np.int64),
        held=table.raised_by_rank(held, partitions),
        weight=table.weight,
        least=np.zeros(len(table), dtype=np.int64),
        most=np.where(table.may_lead, most, 0),
        tie_rank=_ranks(least_loaded_first),
    )
    return water_fill(vessels, np.array([partitions]))


def replica_quotas(
    table: BrokerTable, partitions: int, replication_factor: int, least: Int64s, leaders: Int64s, tie_rank: Int64s
) -> Int64s:
    """Level the replicas over racks, then inside each; every broker gets at least `least`, at most one a partition.

    Of brokers at one level, the first is that with fewer replicas; then that with more leaders (`leaders` of this topic
    included): the others will lead the next topics, and each leader is a replica more.
    """
    led = (table.leaders + leaders) / table.weight
    least_loaded_first = np.lexsort((tie_rank, -led, table.replicas / table.weight))
    fewest, most = even_shares(table.rack_sizes, replication_factor)
    held = table.replicas if table.level_cluster else table.topic_replicas
    vessels = Vessels(
        group=table.rack,
        held=table.raised_by_rank(held, partitions),
        weight=table.weight,
        least=least,
        most=np.full(len(table), partitions, dtype=np.int64),
        tie_rank=_ranks(least_loaded_first),
    )
    totals = rack_fill(vessels, partitions * fewest, partitions * most, partitions * replication_factor)
    return water_fill(vessels, totals)


def _ranks(order: Int64s) -> Int64s:
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return ranks
