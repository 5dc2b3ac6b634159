"""The balanced placer on small clusters of every kind, judged by audit, brute force and an exact flow."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from rackspan.audit import RackPolicy, audit
from rackspan.audit.loads import replica_bound
from rackspan.model import BrokerId
from rackspan.model.racks import even_spread, rack_map
from tests.placement.least_possible import least_leaders, least_replicas
from tests.placement.snapshots import registered, snapshot_of
from tests.placement.tasks import (
    DRAINING,
    FIRST_GOAL,
    LEADERS,
    LEVEL,
    NEAR_CAPACITY,
    NEW,
    PREFERENCE,
    REPLICAS,
    SPREAD_FIRST,
    WEIGHTS,
    Task,
    pairs,
    per_broker,
    place,
    tasks,
)


def rack_counts(task: Task, row: Sequence[int]) -> tuple[int, ...]:
    rack_of = {broker.id: broker.rack for broker in task.brokers}
    racks = sorted(set(rack_of.values()), key=str)
    on = [rack_of[BrokerId(one)] for one in row]
    return tuple(sorted((on.count(rack) for rack in racks), reverse=True))


@given(tasks(loaded=True, fenced=True))
def test_whatever_the_load_every_partition_is_spread_as_evenly_as_racks_allow(task: Task) -> None:
    assume(not all(broker.fenced for broker in task.brokers))
    rows = place(task)
    found = audit(snapshot_of(task.brokers, rows), RackPolicy()).findings
    assert [one for one in found if one.constraint == "rack-spread"] == []
    sizes = list(np.unique([str(broker.rack) for broker in task.brokers], return_counts=True)[1])
    for row in rows.tolist():
        assert rack_counts(task, row) == even_spread(sizes, task.replication_factor)


@given(tasks())
def test_on_an_empty_cluster_leaders_are_at_floor_and_ceil_and_replicas_at_the_bound(task: Task) -> None:
    rows = place(task)
    leaders = per_broker(task, rows[:, 0])
    assert min(leaders) == task.partitions // len(task.brokers)
    assert max(leaders) == -(-task.partitions // len(task.brokers))
    by_factor = np.bincount([task.replication_factor], weights=[task.partitions]).astype(np.int64)
    assert max(per_broker(task, rows)) == replica_bound(rack_map(registered(task.brokers)), by_factor)


@given(tasks(loaded=True))
def test_whatever_the_load_a_new_topic_is_as_level_as_on_an_empty_cluster(task: Task) -> None:
    rows = place(task)
    leaders = per_broker(task, rows[:, 0])
    assert (min(leaders), max(leaders)) == (task.partitions // len(leaders), -(-task.partitions // len(leaders)))
    by_factor = np.bincount([task.replication_factor], weights=[task.partitions]).astype(np.int64)
    assert max(per_broker(task, rows)) == replica_bound(rack_map(registered(task.brokers)), by_factor)


@given(tasks(loaded=True, fenced=True))
def test_no_placement_has_fewer_leaders_on_the_busiest_broker(task: Task) -> None:
    assume(not all(broker.fenced for broker in task.brokers))
    given_leaders = per_broker(task, place(task, {**task.configs, LEVEL: "cluster"})[:, 0])
    live = [index for index, broker in enumerate(task.brokers) if not broker.fenced]
    reached = [task.leaders[index] + given_leaders[index] for index in live]
    assert sorted(reached) == sorted(least_leaders([task.leaders[index] for index in live], task.partitions))


@given(tasks(loaded=True))
def test_given_its_leaders_no_placement_has_fewer_replicas_on_the_fullest_broker(task: Task) -> None:
    rows = place(task, {**task.configs, LEVEL: "cluster"})
    reached = [held + more for held, more in zip(task.replicas, per_broker(task, rows), strict=True)]
    racks = [str(broker.rack) for broker in task.brokers]
    least = least_replicas(racks, task.replicas, per_broker(task, rows[:, 0]), task.partitions, task.replication_factor)
    assert max(reached) == least


@given(tasks(loaded=True))
def test_with_replicas_first_no_placement_has_fewer_on_the_fullest_broker(task: Task) -> None:
    rows = place(task, {**task.configs, FIRST_GOAL: "replicas", LEVEL: "cluster"})
    reached = [held + more for held, more in zip(task.replicas, per_broker(task, rows), strict=True)]
    racks = [str(broker.rack) for broker in task.brokers]
    nobody_leads = [0] * len(task.brokers)
    assert max(reached) == least_replicas(racks, task.replicas, nobody_leads, task.partitions, task.replication_factor)


@given(tasks(loaded=True, fenced=True), st.sampled_from(["leaders", "replicas"]))
def test_a_fenced_broker_never_leads_and_within_a_rack_live_brokers_come_first(task: Task, first_goal: str) -> None:
    assume(not all(broker.fenced for broker in task.brokers))
    rows = place(task, {**task.configs, FIRST_GOAL: first_goal})
    fenced = {broker.id for broker in task.brokers if broker.fenced}
    assert not fenced & set(rows[:, 0].tolist())
    for row in rows.tolist():
        for held in fenced & set(row):
            rack = next(broker.rack for broker in task.brokers if broker.id == held)
            live_there = {broker.id for broker in task.brokers if broker.rack == rack and not broker.fenced}
            assert live_there <= set(row), "a fenced broker holds what a live one of its rack could hold"


@given(tasks(loaded=True, fenced=True))
def test_liveness_before_spread_leaves_fenced_brokers_out(task: Task) -> None:
    live = {broker.id for broker in task.brokers if not broker.fenced}
    assume(len(live) >= task.replication_factor)
    assert set(place(task, {**task.configs, SPREAD_FIRST: "false"}).reshape(-1).tolist()) <= live


@given(tasks(loaded=True, fenced=True), st.data())
def test_the_same_rng_and_configs_give_the_same_assignment_in_any_order_of_brokers(
    task: Task, data: st.DataObject
) -> None:
    assume(not all(broker.fenced for broker in task.brokers))
    shuffled = replace(task, brokers=tuple(data.draw(st.permutations(task.brokers))))
    assert np.array_equal(place(task), place(shuffled, task.configs))


@given(tasks(fenced=True), st.data())
def test_extreme_loads_and_weights_still_give_every_partition_its_replicas(task: Task, data: st.DataObject) -> None:
    assume(not all(broker.fenced for broker in task.brokers))
    ids = [broker.id for broker in task.brokers]
    counts = st.sampled_from([0, 1, 10_000_000])
    rows = place(
        task,
        {
            LEADERS: pairs(ids, [data.draw(counts) for _ in ids]),
            REPLICAS: pairs(ids, [data.draw(counts) for _ in ids]),
            WEIGHTS: pairs(ids, [data.draw(st.sampled_from([0.01, 0.3, 1, 100])) for _ in ids]),
            DRAINING: ",".join(str(one) for one in ids if data.draw(st.booleans())),
            NEAR_CAPACITY: ",".join(str(one) for one in ids if data.draw(st.booleans())),
            NEW: str(ids[0]),
            PREFERENCE: "0.3",
        },
    )
    found = audit(snapshot_of(task.brokers, rows), RackPolicy()).findings
    assert [one for one in found if one.constraint == "rack-spread"] == []
    assert not {broker.id for broker in task.brokers if broker.fenced} & set(rows[:, 0].tolist())
