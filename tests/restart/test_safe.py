"""judge_stop against plain loops, for every subset of brokers of random clusters."""

from random import Random

import pytest

from rackspan.audit import RackPolicy
from rackspan.restart import StopJudgement, judge_stop, plan_restart
from tests.audit.brute_force import document
from tests.depth import at_depth
from tests.restart.brute_force import Lists, is_safe, lists, subsets
from tests.restart.clusters import random_cluster, random_policies
from tests.snapshots import of_one_topic


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


def judged_lists(judged: StopJudgement) -> Lists:
    every = {
        "loses_leader": judged.loses_leader,
        "refuses_writes": judged.refuses_writes,
        "below_margin": judged.below_margin,
        "single_replica": judged.single_replica,
        "one_copy": judged.one_copy,
        "without_margin": judged.without_margin,
        "accepted": judged.accepted,
        "already": judged.already,
    }
    return {name: sorted((one.topic, one.partition, one.reason) for one in found) for name, found in every.items()}


def listed(seed: int) -> set[str]:
    """The lists that are not empty, for some subset of the brokers of a cluster."""
    rng = Random(seed)
    snapshot, (policy, stop) = random_cluster(rng, 4), random_policies(rng)
    cluster, names = document(snapshot), set[str]()
    for stopped in subsets(int(broker.id) for broker in snapshot.brokers):
        expected = lists(cluster, stopped, policy, stop)
        assert judged_lists(judge_stop(snapshot, stopped, policy, stop)) == expected, (seed, stopped)
        names |= {name for name, found in expected.items() if found}
    return names


def test_a_minimum_that_is_not_known_decides_nothing_of_a_single_replica() -> None:
    """Brokers count a minimum as at most the replicas there are."""
    of_one = of_one_topic({1: "a", 2: "b"}, [[1]])
    judged = judge_stop(of_one, {1}, RackPolicy())
    assert (judged.safe, judged.partial, len(judged.single_replica)) == (True, (), 1)
    assert plan_restart(of_one).partial == ()
    of_two = judge_stop(of_one_topic({1: "a", 2: "b"}, [[1], [1, 2]]), {1}, RackPolicy())
    assert (of_two.safe, len(of_two.partial)) == (False, 1)


def test_a_replica_that_lags_and_stays_may_lag_once_the_reassignment_has_ended() -> None:
    """Kafka 4.3 ends it with 3 alone in sync, up to 4.2 not before 2 is too."""
    more = {"adding_replicas": [[3]], "removing_replicas": [[1]]}
    config = {"min.insync.replicas": "1"}

    def may_stop(broker: int, isr: list[int]) -> bool:
        moving = of_one_topic({1: "a", 2: "b", 3: "c"}, [[2, 3, 1]], isr=[isr], leader=[1], config=config, more=more)
        return judge_stop(moving, {broker}, RackPolicy()).safe

    assert not may_stop(3, isr=[1, 3])
    assert may_stop(3, isr=[1, 2])
    assert may_stop(2, isr=[1, 2])


@pytest.mark.slow
def test_every_partition_that_suffers_is_in_the_list_of_its_gravest_harm_with_its_reason() -> None:
    assert len(set[str]().union(*(listed(seed) for seed in range(60)))) == 8


@pytest.mark.slow
def test_every_subset_of_small_clusters_is_judged_as_plain_loops_do() -> None:
    clusters = at_depth(test=200, soak=500)
    assert sum(check_every_subset(seed, 5) for seed in range(clusters)) >= clusters


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, 5_000, 500))
def test_every_subset_of_larger_clusters_is_judged_as_plain_loops_do(first: int) -> None:
    assert sum(check_every_subset(100_000 + seed, 10) for seed in range(first, first + 500)) > 1_000
