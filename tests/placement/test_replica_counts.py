"""Loads as configs of a placer, and the bound of a loaded cluster."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.audit.loads import replica_bound
from rackspan.model import BrokerId, RackId
from rackspan.model.racks import rack_map
from rackspan.placement import TopicAssignment, UsableBroker
from rackspan.placement.balanced.placer import BalancedReplicaPlacer
from rackspan.placement.balanced.settings import balanced_settings
from rackspan.placement.kafka.java_random import JavaRandom
from rackspan.placement.replica_counts import ReplicaCounts, least_maximum, no_replicas, replica_counts
from tests.placement.snapshots import registered, snapshot_of


@st.composite
def clusters(draw: st.DrawFn) -> tuple[UsableBroker, ...]:
    racks = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=8))
    return tuple(UsableBroker(BrokerId(index * 3), RackId(rack), fenced=False) for index, rack in enumerate(racks))


def of(brokers: tuple[UsableBroker, ...], replicas: list[int]) -> ReplicaCounts:
    empty = no_replicas(brokers)
    return ReplicaCounts(empty.ids, empty.leaders, np.array(replicas, dtype=np.int64))


@given(clusters(), st.integers(1, 40), st.data())
def test_without_load_the_bound_is_audits(
    brokers: tuple[UsableBroker, ...], partitions: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(brokers)))
    by_factor = np.bincount([factor], weights=[partitions]).astype(np.int64)
    bound = least_maximum(no_replicas(brokers), brokers, True, partitions, factor)
    assert bound == replica_bound(rack_map(registered(brokers)), by_factor)


@given(clusters(), st.integers(1, 20), st.data())
def test_balanced_reaches_the_bound_under_load_where_replicas_come_first(
    brokers: tuple[UsableBroker, ...], partitions: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(brokers)))
    before = of(brokers, data.draw(st.lists(st.integers(0, 30), min_size=len(brokers), max_size=len(brokers))))
    placer = BalancedReplicaPlacer(JavaRandom(1))
    level = {"replica.placer.balanced.first.goal": "replicas", "replica.placer.balanced.level": "cluster"}
    placer.configure({**before.configs, **level})
    after = before.plus(placer.place(0, partitions, factor, brokers))
    assert after.replicas.max() == least_maximum(before, brokers, True, partitions, factor)


@pytest.mark.parametrize(("held", "bound"), [((0, 0, 0), 3), ((5, 0, 0), 5), ((2, 2, 0), 4), ((0, 0, 7), 10)])
def test_the_bound_by_hand(held: tuple[int, ...], bound: int) -> None:
    """Three partitions of two replicas over racks a (two brokers) and b (one): three on a, three on b."""
    brokers = tuple(UsableBroker(BrokerId(index), RackId(rack), fenced=False) for index, rack in enumerate("aab"))
    assert least_maximum(of(brokers, list(held)), brokers, True, 3, 2) == bound


def test_a_snapshot_s_load_is_its_preferred_leaders_and_replicas() -> None:
    brokers = tuple(UsableBroker(BrokerId(index), RackId("r"), fenced=index == 2) for index in (2, 5, 9))
    now = replica_counts(snapshot_of(brokers, np.array([[2, 5], [2, 9], [9, 2]], dtype=np.int32)))
    assert (now.ids.tolist(), now.leaders.tolist(), now.replicas.tolist()) == ([2, 5, 9], [2, 0, 1], [3, 1, 2])
    settings = balanced_settings(now.configs)
    assert (settings.leaders, settings.replicas) == ({2: 2, 5: 0, 9: 1}, {2: 3, 5: 1, 9: 2})
    of_topic = balanced_settings(now.topic_configs)
    assert (of_topic.topic_leaders, of_topic.topic_replicas) == (settings.leaders, settings.replicas)
    more = now.plus(TopicAssignment.of([[5, 9]])).on(brokers[1:])
    assert (more.ids.tolist(), more.leaders.tolist(), more.replicas.tolist()) == ([5, 9], [1, 1], [2, 3])
