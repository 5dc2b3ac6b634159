"""The balanced placer on small clusters of every kind, judged by audit, brute force and an exact flow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rackspan.audit import RackPolicy, audit
from rackspan.audit.loads import replica_bound
from rackspan.errors import InvalidPartitions, InvalidReplicationFactor, PartialRacks, ReplicaPlacementException
from rackspan.model import BrokerId, RackId
from rackspan.model.partitions import Int32s
from rackspan.model.racks import even_spread, rack_map
from rackspan.placement import UsableBroker, checked
from rackspan.placement.balanced import BalancedReplicaPlacer
from tests.placement.least_possible import least_leaders, least_replicas
from tests.placement.scenarios_of_load import cluster
from tests.placement.snapshots import registered, snapshot_of

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


def answer(
    sizes: Sequence[int], partitions: int, replication_factor: int, seed: int = 1, **configs: str
) -> tuple[Int32s, list[int], list[int]]:
    """Rows, leaders and replicas per broker of a topic placed on racks of `sizes`; configs without their prefix."""
    named = {"replica.placer.balanced." + key.replace("_", "."): value for key, value in configs.items()}
    task = Task(cluster(sizes), partitions, replication_factor, (), seed)
    rows = place(task, named)
    return rows, per_broker(task, rows[:, 0]), per_broker(task, rows)


def test_one_broker_holds_everything() -> None:
    rows, _, _ = answer([1], 3, 1)
    assert rows.tolist() == [[0], [0], [0]]


def test_every_rack_holds_every_replica_it_can_when_all_brokers_are_needed() -> None:
    rows, leaders, _ = answer([3, 1, 1], 10, 5)
    assert leaders == [2] * 5
    assert all(sorted(row) == [0, 1, 2, 3, 4] for row in rows.tolist())


def test_a_draining_broker_gets_nothing_where_its_rack_has_another() -> None:
    _, leaders, replicas = answer([2, 2, 2], 40, 3, draining="1")
    assert (leaders[1], replicas[1]) == (0, 0)
    assert replicas[4] == 40


def test_a_draining_broker_that_is_its_whole_rack_keeps_the_spread_but_leads_nothing() -> None:
    _, leaders, replicas = answer([2, 2, 1], 40, 3, draining="2")
    assert (leaders[2], replicas[2]) == (0, 40)


def test_a_draining_rack_is_left_out_where_enough_racks_remain() -> None:
    _, _, replicas = answer([1, 1, 1, 1], 40, 3, draining="2")
    assert replicas == [40, 40, 0, 40]


def test_draining_brokers_lead_where_nobody_else_is_live() -> None:
    brokers = (
        UsableBroker(BrokerId(0), RackId("a"), True),
        UsableBroker(BrokerId(1), RackId("a"), False),
        UsableBroker(BrokerId(2), RackId("b"), True),
    )
    rows = place(Task(brokers, 5, 2, (), 1), {DRAINING: "1"})
    assert rows[:, 0].tolist() == [1] * 5


def test_a_broker_near_capacity_is_passed_over_until_others_are_full() -> None:
    assert answer([2, 2], 12, 2, near_capacity="0")[2][0] == 0
    assert answer([2, 2], 12, 4, near_capacity="0")[2] == [12] * 4


def test_weights_share_leaders_and_replicas() -> None:
    _, leaders, replicas = answer([2, 2, 2], 900, 3, weights="0:2,1:2,2:2")
    assert leaders == [200, 200, 200, 100, 100, 100]
    assert replicas == [600, 600, 600, 300, 300, 300]


@pytest.mark.parametrize(("preference", "expected"), [("0", 25), ("0.5", 50), ("1", 75)])
def test_new_brokers_catch_up_by_their_preference(preference: str, expected: int) -> None:
    """Brokers 0 to 2 hold 67 each, 3 nothing; 100 are placed. Level is 75 each; a fair share of what is placed, 25."""
    _, _, replicas = answer(
        [1, 1, 1, 1], 100, 1, replicas="0:66,1:67,2:67,3:0", new="3", new_preference=preference, first_goal="replicas"
    )
    assert abs(replicas[3] - expected) <= 1


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


def test_brokers_without_racks_are_placed_as_one_rack() -> None:
    brokers = tuple(UsableBroker(BrokerId(one), None, False) for one in range(5))
    rows = place(Task(brokers, 100, 3, (), 1), {})
    assert np.bincount(rows[:, 0]).tolist() == [20] * 5
    assert np.bincount(rows.reshape(-1)).tolist() == [60] * 5


def test_some_brokers_without_racks_are_refused_unless_told_otherwise() -> None:
    brokers = (UsableBroker(BrokerId(0), None, False), UsableBroker(BrokerId(1), RackId("a"), False))
    with pytest.raises(PartialRacks, match="Not all brokers have rack information"):
        place(Task(brokers, 2, 2, (), 1), {})
    assert place(Task(brokers, 2, 2, (), 1), {"replica.placer.rack.aware": "safe"}).shape == (2, 2)


def test_impossible_figures_are_refused_in_kafkas_words() -> None:
    with pytest.raises(InvalidPartitions, match=r"^Number of partitions must be larger than 0\.$"):
        answer([3], 0, 1)
    with pytest.raises(InvalidReplicationFactor, match=r"^Replication factor must be larger than 0\.$"):
        answer([3], 1, 0)
    with pytest.raises(InvalidReplicationFactor, match=r"^Replication factor: 4 larger than available brokers: 3\.$"):
        answer([3], 1, 4)
    with pytest.raises(InvalidReplicationFactor, match=r"^All brokers are currently fenced\.$"):
        place(Task((UsableBroker(BrokerId(0), None, True),), 1, 1, (), 1), {})


@pytest.mark.parametrize(("sizes", "replication_factor"), [([6, 6, 6], 3), ([4] * 6, 3), ([8, 8], 3), ([20], 3)])
def test_a_lost_broker_is_caught_up_from_most_others(sizes: Sequence[int], replication_factor: int) -> None:
    """With few replica sets, as striping makes, a broker shares partitions with RF − 1 others and waits for them."""
    rows, _, _ = answer(sizes, 2000, replication_factor)
    sets = {tuple(sorted(row)) for row in rows.tolist()}
    assert len(sets) > 8 * sum(sizes)
    partners = {one for row in rows.tolist() if 0 in row for one in row if one != 0}
    could_be = sum(sizes) - (sizes[0] if len(sizes) >= replication_factor else 1)
    assert len(partners) >= 0.9 * could_be


def test_different_dice_give_different_answers() -> None:
    assert not np.array_equal(answer([4, 4, 4], 24, 3, seed=1)[0], answer([4, 4, 4], 24, 3, seed=2)[0])


@pytest.mark.soak
@pytest.mark.parametrize("racks", [1, 2, 3, 6, 1000])
def test_a_million_partitions_on_a_thousand_brokers_are_exactly_level(racks: int) -> None:
    sizes = [1000 // racks + (rack < 1000 % racks) for rack in range(racks)]
    _, leaders, replicas = answer(sizes, 1_000_000, 3)
    assert (min(leaders), max(leaders)) == (1000, 1000)
    by_factor = np.array([0, 0, 0, 1_000_000])
    assert max(replicas) == replica_bound(rack_map(registered(cluster(sizes))), by_factor)


def test_configs_of_others_are_passed_over_and_misspelt_ones_of_ours_are_not() -> None:
    assert answer([1], 1, 1)[0].tolist() == [[0]]
    place(Task(cluster([1]), 1, 1, (), 1), {"log.dirs": "/var/lib/kafka"})
    with pytest.raises(ReplicaPlacementException, match=r"balanced\.drained: there is no such config"):
        answer([1], 1, 1, drained="1")
