"""The goals of `balanced` in their order, against every placement of small topics on small clusters."""

from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.model import BrokerId, RackId
from rackspan.model.racks import even_spread
from rackspan.placement import UsableBroker
from rackspan.placement.kafka.java_random import JavaRandom
from rackspan.placement.new_partitions import PlacerChoice, more_partitions, new_topic
from tests.placement.scenarios_of_load import SEVERAL_PHASES, Scenario, cluster, placed
from tests.placement.snapshots import snapshot_of
from tests.placement.tasks import FIRST_GOAL, TOPIC_LEADERS, TOPIC_REPLICAS, Task, pairs, per_broker, place

Levels = tuple[list[int], ...]
"""Counts per broker, each sorted downwards: what a goal compares."""


@st.composite
def small_tasks(draw: st.DrawFn) -> Task:
    """Few enough placements to try every one: 3 partitions on 4 brokers, or 2 on 5."""
    racks = draw(st.lists(st.integers(0, 3), min_size=1, max_size=5))
    brokers = tuple(UsableBroker(BrokerId(one), RackId(f"r{rack}"), False) for one, rack in enumerate(racks))
    load = st.tuples(st.integers(0, 3), st.integers(0, 3))
    factor = draw(st.integers(1, min(3, len(brokers))))
    partitions = draw(st.integers(1, 3 if len(racks) < 5 else 2))
    return Task(brokers, partitions, factor, tuple(draw(load) for _ in brokers), draw(st.integers(0, 99)))


@given(small_tasks())
def test_of_all_placements_none_is_better_in_the_order_of_the_goals(task: Task) -> None:
    rows = place(task)
    leaders, replicas = per_broker(task, rows[:, 0]), per_broker(task, rows)
    found = levels(task, leaders, replicas)
    every = [(led, levels(task, led, held)) for led, held in every_placement(task)]
    assert found[:3] == min(one for _, one in every)[:3]
    assert found == min(one for led, one in every if led == leaders)


@given(small_tasks())
def test_with_replicas_first_none_is_better_either(task: Task) -> None:
    rows = place(task, {**task.configs, FIRST_GOAL: "replicas"})
    leaders, replicas = per_broker(task, rows[:, 0]), per_broker(task, rows)
    found = replicas_first(levels(task, leaders, replicas))
    every = [(held, replicas_first(levels(task, led, held))) for led, held in every_placement(task)]
    assert found[:3] == min(one for _, one in every)[:3]
    assert found == min(one for held, one in every if held == replicas)


def levels(task: Task, leaders: Sequence[int], replicas: Sequence[int]) -> Levels:
    """The topic's leaders, its replicas, all leaders, all replicas."""
    all_leaders = [held + more for held, more in zip(task.leaders, leaders, strict=True)]
    all_replicas = [held + more for held, more in zip(task.replicas, replicas, strict=True)]
    return tuple(sorted(counts, reverse=True) for counts in (leaders, replicas, all_leaders, all_replicas))


def replicas_first(found: Levels) -> Levels:
    leaders, replicas, all_leaders, all_replicas = found
    return replicas, leaders, all_replicas, all_leaders


def every_placement(task: Task) -> Iterator[tuple[list[int], list[int]]]:
    """Leaders and replicas per broker of each placement whose every partition is spread evenly over racks."""
    racks = [broker.rack for broker in task.brokers]
    sizes = [racks.count(rack) for rack in sorted(set(racks), key=str)]
    even = sorted(even_spread(sizes, task.replication_factor), reverse=True)
    names = sorted(set(racks), key=str)
    choices = [
        (leader, chosen)
        for chosen in combinations(range(len(racks)), task.replication_factor)
        if sorted((sum(racks[one] == rack for one in chosen) for rack in names), reverse=True) == even
        for leader in chosen
    ]
    for rows in combinations_with_replacement(choices, task.partitions):
        leaders, replicas = [0] * len(racks), [0] * len(racks)
        for leader, chosen in rows:
            leaders[leader] += 1
            for one in chosen:
                replicas[one] += 1
        yield leaders, replicas


NINE_AND_THREE = (*cluster([3, 3, 3]), *(UsableBroker(BrokerId(9 + one), RackId(f"r{one}"), False) for one in range(3)))
"""Nine brokers in three racks, and a new one in each."""


def test_a_new_topic_on_new_brokers_and_loaded_ones_is_on_all_of_them() -> None:
    """Before, every replica and every leader of such a topic was put on the three new brokers."""
    standing = np.array([[one, (one + 1) % 9, (one + 2) % 9] for one in range(9)] * 40, dtype=np.int32)
    proposal = new_topic(snapshot_of(NINE_AND_THREE, standing), "new", 12, 3, PlacerChoice(), JavaRandom(1))
    rows = proposal.assignment.replicas
    assert np.bincount(rows[:, 0]).tolist() == [1] * 12
    assert np.bincount(rows.ravel()).tolist() == [3] * 12


def test_the_load_decides_which_brokers_get_what_does_not_suffice_for_all() -> None:
    standing = np.array([[one, (one + 1) % 9, (one + 2) % 9] for one in range(9)] * 40, dtype=np.int32)
    proposal = new_topic(snapshot_of(NINE_AND_THREE, standing), "new", 15, 3, PlacerChoice(), JavaRandom(1))
    rows = proposal.assignment.replicas
    assert np.bincount(rows[:, 0]).tolist() == [1] * 9 + [2] * 3
    assert np.bincount(rows.ravel()).tolist()[9:] == [4] * 3


def test_added_partitions_level_the_topic_they_belong_to() -> None:
    """Nine partitions stand on nine brokers; three more go to the three new ones, though the old are as loaded otherwise."""
    standing = np.array([[one, (one + 1) % 9, (one + 2) % 9] for one in range(9)], dtype=np.int32)
    proposal = more_partitions(snapshot_of(NINE_AND_THREE, standing), "placed", 12, PlacerChoice(), JavaRandom(1))
    rows = np.concatenate([standing, proposal.assignment.replicas])
    assert np.bincount(rows[:, 0]).tolist() == [1] * 12
    assert np.bincount(rows.ravel()).max() == 3


def test_topic_counts_precede_loads() -> None:
    """Broker 0 holds nothing but this topic's partitions: the others get the next ones all the same."""
    task = Task(cluster([1, 1, 1]), 2, 1, ((3, 0), (9, 0), (9, 0)), 1)
    topic = {TOPIC_LEADERS: pairs(range(3), [3, 0, 0]), TOPIC_REPLICAS: pairs(range(3), [3, 0, 0])}
    assert per_broker(task, place(task, {**task.configs, **topic})) == [0, 1, 1]
    assert per_broker(task, place(task)) == [1, 1, 0] or per_broker(task, place(task)) == [1, 0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SEVERAL_PHASES, ids=str)
def test_whatever_stood_before_each_topic_is_level_in_itself(scenario: Scenario) -> None:
    for phase, rows in zip(scenario.phases, placed(scenario), strict=True):
        live = sum(not broker.fenced for broker in phase.brokers)
        for topic in np.split(rows, phase.topics):
            assert np.bincount(topic[:, 0]).max() == -(-phase.partitions // live)
