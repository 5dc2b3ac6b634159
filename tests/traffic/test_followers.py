"""The lower bound of follower fetches beside plain loops over brokers, topics and partitions."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import numpy as np
import pytest

from rackspan import api
from rackspan.clients import ReplicaSelectors
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId
from rackspan.traffic import (
    Basis,
    BrokerBytes,
    ClusterLogs,
    ClusterReading,
    Interval,
    TrafficFlow,
    TrafficPath,
    bytes_out_between,
    follower_bounds,
)
from rackspan.traffic.flows import Link
from rackspan.traffic.followers import LESS_OF_GROUPS, SENT_BY_FOLLOWERS
from tests.streams.groups import cluster

RACK_AWARE = dict.fromkeys(range(1, 7), ReplicaSelectors.RACK_AWARE)
RACKS = ("r1", "r2", "r3", "r1", None)
TOPICS = ("orders", "pay")
T0 = datetime(2026, 11, 24, tzinfo=UTC)


def follower_fetch(topic: str, rack: str | None, size: int | None, basis: Basis = Basis.DERIVED) -> TrafficFlow:
    ends = RackId(rack) if rack else None
    return TrafficFlow(Link(TrafficPath.FOLLOWER_FETCH, topic, "g", ends, ends, basis, "x"), size)


def drawn(rng: Random, topics: tuple[str, ...] = TOPICS) -> dict[str, list[list[int]]]:
    return {topic: [rng.sample(range(1, 6), rng.randint(1, 3)) for _ in range(rng.randint(1, 3))] for topic in topics}


@pytest.mark.slow
def test_500_random_clusters_send_what_plain_loops_say() -> None:
    rng = Random(392)
    found_some = Counter[str]()
    for _ in range(500):
        before, after = drawn(rng), drawn(rng)
        if rng.random() < 0.5:
            after = before
        bytes_out = {
            broker: {topic: rng.randrange(1000) for topic in (*TOPICS, "gone") if rng.random() < 0.8}
            for broker in range(1, 7)
            if rng.random() < 0.8
        }
        selectors = {
            broker: rng.choice([*[ReplicaSelectors.RACK_AWARE] * 9, *ReplicaSelectors]) for broker in RACK_AWARE
        }
        known = [
            follower_fetch(topic, rack, rng.choice([None, rng.randrange(600)]))
            for topic in TOPICS
            for rack in (*RACKS[:3], None)
            if rng.random() < 0.3
        ]
        # A read from a leader says nothing about followers.
        consumed = [replace(flow, link=replace(flow.link, path=TrafficPath.CONSUME)) for flow in known]
        expected = {}
        for topic in TOPICS:
            if any(selectors[replicas[0]] is not ReplicaSelectors.RACK_AWARE for replicas in after[topic]):
                continue
            for rack in {*RACKS} - {None}:
                sent = 0
                for broker, by_topic in bytes_out.items():
                    leads = any(replicas[0] == broker for placed in (before, after) for replicas in placed[topic])
                    if not leads and (RACKS[broker - 1] if broker < 6 else None) == rack:
                        sent += by_topic.get(topic, 0)
                less = sum(
                    flow.size_bytes or 0 for flow in known if (flow.link.topic, flow.link.source_rack) == (topic, rack)
                )
                if sent > less:
                    expected[topic, rack] = sent - less, bool(less)
        flows = follower_bounds(
            cluster(before, RACKS), cluster(after, RACKS), bytes_out, selectors, [*known, *consumed]
        )
        for flow in flows:
            link = flow.link
            assert (link.path, link.basis, link.group) == (TrafficPath.FOLLOWER_FETCH, Basis.DERIVED_LOWER_BOUND, None)
            assert link.source_rack == link.destination_rack
            assert link.assumption.startswith(SENT_BY_FOLLOWERS)
        found = {
            (flow.link.topic, flow.link.source_rack): (flow.size_bytes, flow.link.assumption.endswith(LESS_OF_GROUPS))
            for flow in flows
        }
        assert found == expected
        assert len(found) == len(flows)
        found_some["some" if flows else "none"] += 1
    assert min(found_some.values()) > 50


ORDERS = cluster({"orders": [[1, 2, 3]]})
SENT: BrokerBytes = {broker: {"orders": 100 * broker} for broker in (1, 2, 3)}


def bounds(snapshot: ClusterSnapshot, selectors: dict[int, ReplicaSelectors] = RACK_AWARE) -> list[tuple[object, ...]]:
    flows = follower_bounds(snapshot, snapshot, SENT, selectors, ())
    return [(flow.link.source_rack, flow.link.destination_rack, flow.size_bytes) for flow in flows]


def test_followers_count_and_leaders_do_not() -> None:
    assert bounds(ORDERS) == [("r2", "r2", 200), ("r3", "r3", 300)]


def test_once_each_broker_leads_a_partition_nothing_is_known() -> None:
    assert bounds(cluster({"orders": [[1, 2, 3], [2, 3, 1], [3, 1, 2]]})) == []


@pytest.mark.parametrize("selector", [one for one in ReplicaSelectors if one is not ReplicaSelectors.RACK_AWARE])
def test_before_brokers_that_do_not_select_by_rack_nothing_is_known(selector: ReplicaSelectors) -> None:
    assert bounds(ORDERS, {**RACK_AWARE, 1: selector}) == []
    assert bounds(ORDERS, {}) == []


def test_a_broker_that_led_at_the_first_reading_counted_reads_from_a_leader() -> None:
    earlier = cluster({"orders": [[2, 1, 3]]})
    flows = follower_bounds(earlier, ORDERS, SENT, RACK_AWARE, ())
    assert [flow.link.source_rack for flow in flows] == ["r3"]


def test_counters_advance_and_begin_again_after_a_restart() -> None:
    before = {1: {"a": 10, "b": 50}, 2: {"a": 10}}
    after = {1: {"a": 25, "b": 7, "c": 3}, 3: {"a": 99}}
    assert bytes_out_between(before, after) == {1: {"a": 15, "b": 7, "c": 3}}


def test_an_interval_has_the_bounds_beside_the_rest() -> None:
    def logs(seconds: int) -> ClusterLogs:
        return ClusterLogs(ORDERS, T0 + timedelta(seconds=seconds), np.zeros(1, np.int64), np.zeros((1, 3), np.int64))

    first, second = logs(0), logs(60)
    passed = Interval(
        ClusterReading(first, (), RACK_AWARE, bytes_out={2: {"orders": 1000}}),
        ClusterReading(second, (), RACK_AWARE, bytes_out={2: {"orders": 1700}}),
    )
    assert [(flow.link.basis, flow.size_bytes) for flow in passed.flows] == [(Basis.DERIVED_LOWER_BOUND, 700)]
    # By the racks of a locator.
    moved = replace(
        ORDERS,
        brokers=tuple(Broker(BrokerId(broker.id), RackId("x"), host=broker.host) for broker in ORDERS.brokers),
    )
    assert [flow.link.source_rack for flow in api.traffic(passed, moved).flows] == ["x"]


def test_bounds_are_in_the_order_of_topics_and_racks_and_say_what_they_rest_on() -> None:
    snapshot = cluster({"b": [[1, 2, 3]], "a": [[1, 2, 3]]}, ("r1", "r3", "r2"))
    sent = {broker: {"b": 100 * broker, "a": 10 * broker} for broker in (2, 3)}
    known = [follower_fetch("b", "r2", 30), follower_fetch("a", "r2", 30), follower_fetch("a", "r3", None)]
    flows = follower_bounds(snapshot, snapshot, sent, RACK_AWARE, known)
    by_followers = (
        "brokers that lead none of the topic's partitions, at either reading or in between, sent at least as much, to "
        "consumers that name their rack"
    )
    assert [(flow.link.topic, flow.link.source_rack, flow.size_bytes, flow.link.assumption) for flow in flows] == [
        ("a", "r3", 20, by_followers),
        ("b", "r2", 270, f"{by_followers}; less what rows of groups have of it"),
        ("b", "r3", 200, by_followers),
    ]


def test_a_partition_without_a_leader_is_led_by_no_broker() -> None:
    rows = replace(ORDERS.partitions, leader=np.array([-1], np.int32))
    assert bounds(replace(ORDERS, partitions=rows), {**RACK_AWARE, -1: ReplicaSelectors.RACK_AWARE}) == []
