"""plan_restart against the fewest batches by trying every set of brokers."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from rackspan.audit import RackPolicy
from rackspan.model import BrokerId, ClusterSnapshot, Controller
from rackspan.restart import RestartRequest, plan_restart
from tests.audit.brute_force import document
from tests.restart.brute_force import fewest_batches, is_safe, restarted, subsets
from tests.restart.clusters import random_cluster, random_policies


def all_read(snapshot: ClusterSnapshot, policy: RackPolicy) -> ClusterSnapshot:
    """The snapshot without gaps: a plan with one only names it."""
    topics = tuple(replace(topic, config={"min.insync.replicas": "1", **topic.config}) for topic in snapshot.topics)
    voter = Controller(BrokerId(99), voter=True, alive=True)
    return replace(
        snapshot,
        partial=(),
        topics=topics,
        controllers=(*snapshot.controllers, voter) if policy.require_controllers else snapshot.controllers,
    )


def gap_to_fewest(seed: int, brokers_most: int) -> int | None:
    """Batches above the true minimum; None if no broker can be restarted. Asserts everything that a plan states."""
    rng = Random(seed)
    snapshot, (policy, stop) = random_cluster(rng, brokers_most), random_policies(rng)
    snapshot = all_read(snapshot, policy)
    every = [int(broker.id) for broker in snapshot.brokers]
    chosen = frozenset(every if rng.random() < 0.5 else rng.sample(every, rng.randint(1, len(every))))
    most = rng.choice((None, None, None, 1, 2, 3))
    plan = plan_restart(snapshot, policy, stop, RestartRequest(chosen, max_batch=most))
    cluster = restarted(document(snapshot), chosen)
    safe = {
        frozenset(stopped)
        for stopped in subsets(chosen)
        if stopped and len(stopped) <= (most or len(every)) and is_safe(cluster, stopped, policy, stop)
    }
    free = frozenset(broker for broker in chosen if frozenset({broker}) in safe)
    assert sorted(blocked.broker for blocked in plan.blocked) == sorted(chosen - free), seed
    assert sorted(broker for batch in plan.batches for broker in batch.brokers) == sorted(free), seed
    assert all(frozenset(batch.brokers) in safe for batch in plan.batches), seed
    fewest = fewest_batches(free, safe)
    assert plan.lower_bound.batches <= fewest <= len(plan.batches), (seed, plan.lower_bound)
    return len(plan.batches) - fewest if free else None


def check_gaps(seeds: range, brokers_most: int) -> None:
    gaps = [gap for seed in seeds if (gap := gap_to_fewest(seed, brokers_most)) is not None]
    print(f"{len(gaps)} plans with batches of {len(seeds)} clusters; batches above the fewest: {dict(Counter(gaps))}")
    assert len(gaps) > len(seeds) / 3
    assert max(gaps) <= 1
    assert gaps.count(0) >= 0.95 * len(gaps)


@pytest.mark.slow
def test_plans_of_small_clusters_have_the_fewest_batches() -> None:
    check_gaps(range(300), 7)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, 5_000, 500))
def test_plans_of_larger_clusters_have_the_fewest_batches(first: int) -> None:
    check_gaps(range(100_000 + first, 100_500 + first), 10)
