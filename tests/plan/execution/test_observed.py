"""A snapshot as an observation, and how far a partition is, state by state."""

import pytest

from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, TopicPartition, columns
from rackspan.plan.execution.observed import InFlight, ObservedCluster, observed, reassignment_status
from rackspan.reassign import Direction, PartitionReassignment


def test_a_snapshot_is_observed_with_its_leaders_isr_and_moves() -> None:
    snapshot = ClusterSnapshot(
        cluster_id="c",
        brokers=tuple(Broker(BrokerId(one), RackId("a"), fenced=one == 3) for one in (1, 2, 3)),
        topics=(Topic(TopicName("orders"), "id-1"), Topic(TopicName("payments"))),
        partitions=columns(
            topic=[0, 0, 1, 1],
            partition=[0, 4, 0, 1],
            leader=[1, -1, 2, 2],
            replicas=[[1, 2], [2], [2, 1, 3], [2, 1]],
            isr=[[1], [2], [2, 1], [2, 1]],
            adding_replicas=[[], [], [3], []],
            removing_replicas=[[], [], [], [1]],
        ),
    )
    orders, offline, growing, shrinking = (
        TopicPartition("orders", 0), TopicPartition("orders", 4),
        TopicPartition("payments", 0), TopicPartition("payments", 1),
    )  # fmt: skip
    assert observed(snapshot) == ObservedCluster(
        cluster_id="c",
        brokers=frozenset({1, 2}),
        topic_ids={"orders": "id-1", "payments": None},
        replicas={orders: (1, 2), offline: (2,), growing: (2, 1, 3), shrinking: (2, 1)},
        isr={orders: (1,), offline: (2,), growing: (2, 1), shrinking: (2, 1)},
        leaderless=frozenset({offline}),
        in_flight={growing: InFlight((2, 1, 3), (3,)), shrinking: InFlight((2, 1), (), (1,))},
    )
    assert observed(snapshot).in_flight[shrinking].target == (2,)


MOVE = PartitionReassignment("orders", 0, (4, 2), (1, 2))
PLACE = MOVE.topic_partition


@pytest.mark.parametrize(
    ("replicas", "moving", "forward", "back"),
    [
        (None, None, "missing", "missing"),
        ((4, 2), None, "done", "startable"),
        ((2, 4), None, "startable", "startable"),
        ((1, 2), None, "startable", "done"),
        ((4, 2, 1), None, "settling", "settling"),
        ((2,), None, "unexpected", "unexpected"),
        ((4, 2, 1, 3), None, "unexpected", "unexpected"),
        # What the controller lists goes before the replicas that brokers show.
        ((4, 2), InFlight((2, 4, 1), (4,), (1,)), "moving", "reverting"),
        ((1, 2), InFlight((1, 2, 4), (), (4,)), "reverting", "moving"),
        ((4, 2), InFlight((3, 2, 1), (3,), (1,)), "unexpected", "unexpected"),
    ],
)
def test_how_far_a_partition_is(
    replicas: tuple[int, ...] | None, moving: InFlight | None, forward: str, back: str
) -> None:
    cluster = ObservedCluster(
        "c",
        frozenset(),
        replicas={} if replicas is None else {PLACE: replicas},
        in_flight={} if moving is None else {PLACE: moving},
    )
    assert reassignment_status(MOVE, Direction.TARGETS, cluster) == forward
    assert reassignment_status(MOVE, Direction.ORIGINALS, cluster) == back
