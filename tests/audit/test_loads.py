from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rackspan.audit.loads import replica_bound
from rackspan.model import Broker, BrokerId, RackId, rack_map
from rackspan.model.racks import even_spread


@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.integers(1, 3), st.integers(1, 3))
def test_the_replica_bound_is_what_the_best_of_all_placements_reaches(
    sizes: list[int], partitions: int, factor: int
) -> None:
    factor = min(factor, sum(sizes))
    counts = np.zeros(factor + 1, dtype=np.int64)
    counts[factor] = partitions
    assert replica_bound(rack_map(_brokers(sizes)), counts) == _least_possible_maximum(sizes, partitions, factor)


def _brokers(sizes: list[int]) -> list[Broker]:
    racks = [rack for rack, size in enumerate(sizes) for _ in range(size)]
    return [Broker(BrokerId(broker), RackId(f"r{rack}")) for broker, rack in enumerate(racks)]


def _least_possible_maximum(sizes: list[int], partitions: int, factor: int) -> int:
    """Every way to place every partition evenly over its racks; the smallest fullest broker."""
    rack_of = [rack for rack, size in enumerate(sizes) for _ in range(size)]
    even = even_spread(sizes, factor)
    sets = [
        chosen
        for chosen in combinations(range(len(rack_of)), factor)
        if tuple(sorted((sum(rack_of[b] == rack for b in chosen) for rack in range(len(sizes))), reverse=True)) == even
    ]
    reachable = {(0,) * len(rack_of)}
    for _ in range(partitions):
        reachable = {tuple(n + (b in chosen) for b, n in enumerate(load)) for load in reachable for chosen in sets}
    return min(max(load) for load in reachable)
