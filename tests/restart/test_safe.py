"""judge_stop against plain loops, for every subset of brokers of random clusters."""

from random import Random

import pytest

from rackspan.restart import judge_stop
from tests.audit.brute_force import document
from tests.restart.brute_force import is_safe, subsets
from tests.restart.clusters import random_cluster, random_policies


def check_every_subset(seed: int, brokers_most: int) -> int:
    rng = Random(seed)
    snapshot, (policy, stop) = random_cluster(rng, brokers_most), random_policies(rng)
    cluster, safe = document(snapshot), 0
    for stopped in subsets(int(broker.id) for broker in snapshot.brokers):
        expected = is_safe(cluster, stopped, policy, stop)
        judged = judge_stop(snapshot, stopped, policy, stop)
        assert judged.safe is expected, (seed, stopped, judged)
        safe += expected and bool(stopped)
    return safe


@pytest.mark.slow
def test_every_subset_of_small_clusters_is_judged_as_plain_loops_do() -> None:
    clusters = 500
    assert sum(check_every_subset(seed, 5) for seed in range(clusters)) >= clusters


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, 5_000, 500))
def test_every_subset_of_larger_clusters_is_judged_as_plain_loops_do(first: int) -> None:
    assert sum(check_every_subset(100_000 + seed, 10) for seed in range(first, first + 500)) > 1_000
