from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rackspan.audit import RackPolicy
from rackspan.audit.batch import snapshot_batch
from rackspan.audit.loads import loads, replica_bound
from rackspan.model import Broker, BrokerId, RackId, rack_map
from rackspan.model.racks import even_spread
from tests.snapshots import of_one_topic


@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.integers(1, 3), st.integers(1, 3))
def test_the_replica_bound_is_what_the_best_of_all_placements_reaches(
    sizes: list[int], partitions: int, factor: int
) -> None:
    factor = min(factor, sum(sizes))
    counts = np.zeros(factor + 1, dtype=np.int64)
    counts[factor] = partitions
    assert replica_bound(rack_map(_brokers(sizes)), counts) == _least_possible_maximum(sizes, partitions, factor)


def test_a_preferred_leader_that_a_reassignment_may_still_copy_to_counts_as_leading() -> None:
    """Both partitions prefer broker 3 and are led by 1; only of the first an election is due."""
    snapshot = of_one_topic(
        {1: "a", 2: "b", 3: "c"},
        [[3, 1, 2], [3, 1, 2]],
        leader=[1, 1],
        isr=[[1, 2, 3], [1, 2, 3]],
        more={"adding_replicas": [[], [3]]},
    )
    found = loads(snapshot_batch(snapshot, RackPolicy()))
    assert (found.preferred.tolist(), found.preferred_led.tolist()) == ([0, 0, 2], [0, 0, 1])


def test_a_preferred_leader_that_no_election_can_bring_back_counts_as_leading() -> None:
    """All partitions prefer broker 3. The first has no leader, of the second 3 is not in sync, the third is led by 1 and can be by 3."""
    snapshot = of_one_topic({1: "a", 2: "b", 3: "c"}, [[3, 1, 2]] * 3, leader=[-1, 1, 1], isr=[[3], [1, 2], [1, 2, 3]])
    found = loads(snapshot_batch(snapshot, RackPolicy()))
    assert (found.preferred.tolist(), found.preferred_led.tolist()) == ([0, 0, 3], [0, 0, 2])


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
