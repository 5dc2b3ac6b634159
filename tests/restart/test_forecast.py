"""The load while each batch of a plan is down: literal cases, and plain loops over random clusters."""

from random import Random
from typing import Any

import numpy as np
import pytest

from rackspan.audit import RackPolicy, snapshot_batch
from rackspan.restart import RestartRequest, StopPolicy, plan_restart
from rackspan.restart.forecast import Forecast, SurvivorLoad, forecasts
from rackspan.restart.stopping import in_sync_rows
from tests.audit.brute_force import document, judged_topics, min_replicas
from tests.restart.brute_force import caught_up, states_of, with_restarted
from tests.restart.clusters import random_cluster
from tests.snapshots import of_one_topic


def forecasts_of(
    replicas: list[list[int]], *batches: list[int], minimum: int = 1, brokers: int = 4, **parts: Any
) -> list[Forecast]:
    """Brokers 0, 1, …, so that an id is an index."""
    config = {"min.insync.replicas": str(minimum)}
    batch = snapshot_batch(of_one_topic(dict.fromkeys(range(brokers)), replicas, config=config, **parts), RackPolicy())
    rows = in_sync_rows(batch, StopPolicy())
    return list(forecasts(batch, rows, [np.array(stopped) for stopped in batches]))


def test_the_first_replica_that_is_in_sync_and_up_leads() -> None:
    sizes = {"size_bytes": [1_000, 200, 30]}
    (found,) = forecasts_of(
        [[0, 1, 2], [0, 2, 1], [1, 0]], [0], isr=[[0, 2], [2, 1, 0], [1, 0]], leader=[0, 0, 1], more=sizes
    )
    assert found == Forecast(
        leaders_moved=2,
        most_leaders=2.0,  # Broker 2 leads nothing now, so it counts as one that carries the mean, 1 at least.
        most_bytes=3.9,
        at_minimum=2,
        survivors=(SurvivorLoad(2, 0, 2, 0, 1_200),),
    )


def test_a_later_batch_finds_the_leaders_where_an_earlier_one_left_them() -> None:
    first, second = forecasts_of([[0, 1, 2], [1, 2, 3]], [0], [1])
    assert (first.leaders_moved, first.most_leaders) == (1, 2.0)
    assert first.survivors == (SurvivorLoad(1, 1, 2, None, None),)
    assert (second.leaders_moved, second.most_leaders) == (2, 1.0)
    assert second.survivors == (SurvivorLoad(2, 0, 1, None, None),)
    assert first.most_bytes is second.most_bytes is None


def test_the_multiple_of_a_broker_that_leads_is_of_what_it_leads_now() -> None:
    (found,) = forecasts_of([[0, 1], [1, 0], [1, 0], [1, 0], [2, 1]], [0])
    assert found.most_leaders == 1.33
    (found,) = forecasts_of([[0, 3], *[[1, 0]] * 6, [2, 1]], [0])
    assert found.most_leaders == 1.0, "broker 3 leads 1 of now 0, half of the mean"


def test_a_batch_that_leads_nothing_moves_nothing() -> None:
    (found,) = forecasts_of([[0, 1], [1, 0]], [2, 3])
    assert found == Forecast(0, 1.0, None, 0, ())


def test_without_any_leader_or_any_broker_up_there_is_no_multiple() -> None:
    (found,) = forecasts_of([[0, 1]], [1], isr=[[0, 1]], leader=[-1])
    assert found == Forecast(0, 1.0, None, 1, ())
    (found,) = forecasts_of([[0, 1]], [0, 1, 2, 3])
    assert (found.leaders_moved, found.most_leaders, found.survivors) == (1, 0.0, ())
    (found,) = forecasts_of([[0, 1]], [0], isr=[[0]])
    assert found == Forecast(1, 0.0, None, 0, ())
    (found,) = forecasts_of([], [0])
    assert found == Forecast(0, 1.0, 1.0, 0, ())


def test_the_bytes_are_known_only_if_every_size_is() -> None:
    (found,) = forecasts_of([[0, 1], [1, 0]], [0], more={"size_bytes": [5, -1]})
    assert found.most_bytes is None
    assert found.survivors == (SurvivorLoad(1, 1, 2, None, None),)


@pytest.mark.parametrize("size", [2**53 + 1, 2**63 - 1])
def test_bytes_are_summed_exactly_and_sizes_beyond_any_log_do_not_overflow(size: int) -> None:
    believed = min(size, 2**50)
    (found,) = forecasts_of([[0, 1], [1, 0]], [0], more={"size_bytes": [size, 1]})
    assert found.survivors == (SurvivorLoad(1, 1, 2, 1, believed + 1),)
    (found,) = forecasts_of([[0, 1]] * 9 + [[1, 0]], [0], more={"size_bytes": [2**50] * 9 + [1]})
    assert found.survivors == (SurvivorLoad(1, 1, 10, 1, 9 * 2**50 + 1),)


def test_at_its_minimum_is_what_loses_a_replica_and_keeps_exactly_so_many() -> None:
    every = [[0, 1, 2], [1, 2, 3], [0, 1], [0, 1, 2, 3], [0]]
    assert [one.at_minimum for one in forecasts_of(every, [0], [3], [0, 3], [1], minimum=2)] == [1, 1, 3, 2]
    assert forecasts_of([[0, 1, 2]], [0], minimum=2, isr=[[1, 2]])[0].at_minimum == 0


def test_the_end_of_a_reassignment_is_not_counted_beside_the_present() -> None:
    more = {"adding_replicas": [[]], "removing_replicas": [[3]]}
    assert forecasts_of([[0, 1, 2, 3]], [0], minimum=2, more=more)[0].at_minimum == 0
    assert forecasts_of([[0, 1, 2, 3]], [0], minimum=3, more=more)[0].at_minimum == 1


def check_forecasts(seed: int) -> int:
    """Compare the forecasts of a random cluster's plan with plain loops; returns how many leaders they move."""
    rng = Random(seed)
    snapshot = random_cluster(rng, 6)
    every = frozenset(int(broker.id) for broker in snapshot.brokers)
    plan = plan_restart(snapshot, request=RestartRequest(every, max_batch=rng.choice((None, 1))))
    cluster = caught_up(document(snapshot))
    leaders = [
        leader_of(partition, set(partition["isr"]), partition["leader"])
        for topic in judged_topics(cluster)
        for partition in topic["partitions"]
    ]
    now, moved = {broker: leaders.count(broker) for broker in every}, 0
    for batch in plan.batches:
        partitions = [(topic, partition) for topic in judged_topics(cluster) for partition in topic["partitions"]]
        leaders = [
            leader_of(partition, set(partition["isr"]), leader)
            for leader, (_, partition) in zip(leaders, partitions, strict=True)
        ]
        stopped, before = set(batch.brokers), leaders
        leaders = [
            leader_of(partition, set(partition["isr"]) - stopped, leader)
            for leader, (_, partition) in zip(leaders, partitions, strict=True)
        ]
        led = {broker: leaders.count(broker) for broker in every}
        assert batch.forecast.leaders_moved == sum(broker in stopped for broker in before), seed
        assert batch.forecast.survivors == tuple(
            SurvivorLoad(broker, now[broker], led[broker], None, None)
            for broker in sorted(every - stopped)
            if now[broker] != led[broker]
        ), seed
        at_minimum = 0
        for topic, partition in partitions:
            in_sync, replicas, _ = states_of(cluster, partition)[0]
            minimum = min(min_replicas(topic), replicas)
            at_minimum += bool(set(in_sync) & stopped) and len(set(in_sync) - stopped) == minimum < replicas
        assert batch.forecast.at_minimum == at_minimum, seed
        moved += batch.forecast.leaders_moved
        cluster = with_restarted(cluster, frozenset(stopped))
    return moved


def leader_of(partition: dict[str, Any], in_sync: set[int], leader: int) -> int:
    """Who leads while these are in sync: who does, or the first of the replicas; -1 for nobody."""
    return leader if leader in in_sync else next((one for one in partition["replicas"] if one in in_sync), -1)


@pytest.mark.slow
def test_the_forecasts_of_small_clusters_are_those_of_plain_loops() -> None:
    assert sum(check_forecasts(seed) for seed in range(60)) > 60
