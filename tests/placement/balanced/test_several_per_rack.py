"""Dealing when racks hold a partition more than once: exact quotas, no broker twice, racks at floor or ceil."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rackspan.model.partitions import Int32s, Int64s
from rackspan.model.racks import even_shares
from rackspan.placement.balanced.broker_quotas import broker_quotas
from rackspan.placement.balanced.broker_table import BrokerTable, broker_table
from rackspan.placement.balanced.settings import BalancedSettings
from rackspan.placement.balanced.several_per_rack import distribute_several_per_rack
from rackspan.placement.kafka.java_random import JavaRandom
from tests.placement.scenarios_of_load import cluster


@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.integers(1, 300), st.integers(0, 9), st.integers(0, 99))
def test_quotas_are_met_and_racks_hold_floor_or_ceil(sizes: list[int], partitions: int, more: int, seed: int) -> None:
    replication_factor = min(len(sizes) + more, sum(sizes))
    fleet = broker_table(cluster(sizes), True, BalancedSettings())
    shares = broker_quotas(fleet, partitions, replication_factor, np.arange(len(fleet)))
    columns = distribute_several_per_rack(fleet, shares.replicas, replication_factor, JavaRandom(seed))
    assert np.array_equal(np.bincount(columns.reshape(-1), minlength=len(fleet)), shares.replicas)
    ordered = np.sort(columns, axis=0)
    assert (ordered[1:] != ordered[:-1]).all()
    fewest, most = even_shares(fleet.rack_sizes, replication_factor)
    held = per_rack(fleet, columns)
    assert ((held >= fewest[:, None]) & (held <= most[:, None])).all()


def per_rack(fleet: BrokerTable, columns: Int32s) -> Int64s:
    """Replicas of each partition in each rack, (R, P)."""
    racks = fleet.rack[columns]
    return np.array([(racks == rack).sum(axis=0) for rack in range(len(fleet.rack_sizes))])
