"""The balanced placer on small clusters of every kind, judged by audit, brute force and an exact flow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.placement.least_possible import least_leaders, least_replicas
from tests.placement.snapshots import registered, snapshot_of

from rackspan.audit import RackPolicy, audit
from rackspan.audit.loads import replica_bound
from rackspan.model import BrokerId, RackId
from rackspan.model.partitions import Int32s
from rackspan.model.racks import even_spread, rack_map
from rackspan.placement import UsableBroker, checked
from rackspan.placement.balanced import BalancedReplicaPlacer

LEADERS = "replica.placer.balanced.leaders"
REPLICAS = "replica.placer.balanced.replicas"
WEIGHTS = "replica.placer.balanced.weights"
DRAINING = "replica.placer.balanced.draining"
NEAR_CAPACITY = "replica.placer.balanced.near.capacity"
NEW = "replica.placer.balanced.new"
PREFERENCE = "replica.placer.balanced.new.preference"
SPREAD_FIRST = "replica.placer.balanced.spread.before.liveness"
FIRST_GOAL = "replica.placer.balanced.first.goal"


@dataclass(frozen=True)
class Task:
    """What a placer is asked. `loads`: leaders and further replicas each broker carries already."""

    brokers: tuple[UsableBroker, ...]
    partitions: int
    replication_factor: int
    loads: tuple[tuple[int, int], ...]
    seed: int

    @property
    def leaders(self) -> list[int]:
        return [leaders for leaders, _ in self.loads]

    @property
    def replicas(self) -> list[int]:
        return [leaders + others for leaders, others in self.loads]

    @property
    def configs(self) -> dict[str, str]:
        ids = [broker.id for broker in self.brokers]
        return {LEADERS: pairs(ids, self.leaders), REPLICAS: pairs(ids, self.replicas)}


@st.composite
def tasks(draw: st.DrawFn, loaded: bool = False, fenced: bool = False, most_brokers: int = 9) -> Task:
    racks = draw(st.integers(1, 4))
    rack_of = draw(st.lists(st.integers(0, racks - 1), min_size=1, max_size=most_brokers))
    ids = draw(st.permutations([3 * one + 1 for one in range(len(rack_of))]))
    brokers = tuple(
        UsableBroker(BrokerId(one), RackId(f"r{rack}"), fenced and draw(st.integers(0, 2)) == 0)
        for one, rack in zip(ids, rack_of, strict=True)
    )
    load = st.tuples(st.integers(0, 12), st.integers(0, 24)) if loaded else st.just((0, 0))
    return Task(
        brokers=brokers,
        partitions=draw(st.integers(1, 40)),
        replication_factor=draw(st.integers(1, min(5, len(brokers)))),
        loads=tuple(draw(load) for _ in brokers),
        seed=draw(st.integers(0, 2**32)),
    )


def pairs(ids: Sequence[int], values: Sequence[object]) -> str:
    return ",".join(f"{one}:{value}" for one, value in zip(ids, values, strict=True))


def place(task: Task, configs: Mapping[str, str] | None = None) -> Int32s:
    placer = BalancedReplicaPlacer(Random(task.seed))
    placer.configure(task.configs if configs is None else configs)
    answer = placer.place(0, task.partitions, task.replication_factor, task.brokers)
    placer.close()
    return checked(answer, 0, task.partitions, task.replication_factor, task.brokers).replicas


def per_broker(task: Task, column: Int32s) -> list[int]:
    """How often each broker of the task, in its order, is in a column or matrix."""
    counts = np.bincount(column.reshape(-1), minlength=40)
    return [int(counts[broker.id]) for broker in task.brokers]


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


@given(tasks(loaded=True, fenced=True))
def test_no_placement_has_fewer_leaders_on_the_busiest_broker(task: Task) -> None:
    assume(not all(broker.fenced for broker in task.brokers))
    given_leaders = per_broker(task, place(task)[:, 0])
    live = [index for index, broker in enumerate(task.brokers) if not broker.fenced]
    reached = [task.leaders[index] + given_leaders[index] for index in live]
    assert sorted(reached) == sorted(least_leaders([task.leaders[index] for index in live], task.partitions))


@given(tasks(loaded=True))
def test_given_its_leaders_no_placement_has_fewer_replicas_on_the_fullest_broker(task: Task) -> None:
    rows = place(task)
    reached = [held + more for held, more in zip(task.replicas, per_broker(task, rows), strict=True)]
    racks = [str(broker.rack) for broker in task.brokers]
    least = least_replicas(racks, task.replicas, per_broker(task, rows[:, 0]), task.partitions, task.replication_factor)
    assert max(reached) == least


@given(tasks(loaded=True))
def test_with_replicas_first_no_placement_has_fewer_on_the_fullest_broker(task: Task) -> None:
    rows = place(task, {**task.configs, FIRST_GOAL: "replicas"})
    reached = [held + more for held, more in zip(task.replicas, per_broker(task, rows), strict=True)]
    racks = [str(broker.rack) for broker in task.brokers]
    nobody_leads = [0] * len(task.brokers)
    assert max(reached) == least_replicas(racks, task.replicas, nobody_leads, task.partitions, task.replication_factor)


@given(tasks(loaded=True, fenced=True))
def test_a_fenced_broker_never_leads_and_within_a_rack_live_brokers_come_first(task: Task) -> None:
    assume(not all(broker.fenced for broker in task.brokers))
    rows = place(task)
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
def test_the_same_dice_and_configs_give_the_same_answer_in_any_order_of_brokers(
    task: Task, data: st.DataObject
) -> None:
    assume(not all(broker.fenced for broker in task.brokers))
    shuffled = replace(task, brokers=tuple(data.draw(st.permutations(task.brokers))))
    assert np.array_equal(place(task), place(shuffled, task.configs))
