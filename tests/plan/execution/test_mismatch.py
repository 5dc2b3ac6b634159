"""Each way in which a cluster may not be what a plan assumed, in the words for one and for several."""

from typing import Any

import pytest

from rackspan.model.ids import TopicPartition
from rackspan.plan.execution.mismatch import (
    cannot_finish,
    leaderless,
    mismatch,
    missing_brokers,
    missing_receivers,
    other_cluster,
    running_beside,
)
from rackspan.plan.execution.observed import InFlight, ObservedCluster
from rackspan.reassign import Direction, PartitionReassignment, ReassignmentPlan, Step

ANEW = "make a new plan with rackspan reassign plan"
MOVES = [PartitionReassignment("orders", number, (4, 5), (1, 2)) for number in range(5)]
PLAN = ReassignmentPlan("c", {"orders": "id-1"}, (Step.of(1, "", MOVES),))


def observed(**more: Any) -> ObservedCluster:
    shown: dict[str, Any] = {
        "cluster_id": "c",
        "brokers": frozenset(range(1, 6)),
        "topic_ids": {"orders": "id-1"},
        "replicas": {one.topic_partition: one.undo for one in MOVES},
        **more,
    }
    return ObservedCluster(**shown)


@pytest.mark.parametrize(
    ("alive", "partitions", "direction", "words"),
    [
        ({1, 2, 4}, 1, Direction.TARGETS, "broker 5 is down and must receive orders-0; bring it back, or "),
        (
            {1, 2},
            2,
            Direction.TARGETS,
            "brokers 4, 5 are down and must receive orders-0, orders-1; bring them back, or ",
        ),
        (
            {4, 5, 1},
            5,
            Direction.ORIGINALS,
            "broker 2 is down and must receive orders-0, orders-1, orders-2 and 2 more; bring it back, or ",
        ),
    ],
)
def test_brokers_that_are_away_are_named(alive: set[int], partitions: int, direction: Direction, words: str) -> None:
    cluster = observed(brokers=frozenset(alive))
    assert missing_brokers(MOVES[:partitions], direction, cluster) == words + ANEW
    assert missing_receivers(MOVES[:partitions], direction, cluster) == words + ANEW


def test_a_broker_that_keeps_its_replica_is_waited_for_and_is_no_reason_not_to_start() -> None:
    grows = PartitionReassignment("orders", 0, (1, 2, 4), (1, 2))
    cluster = observed(brokers=frozenset({1, 4}))
    assert missing_brokers([grows], Direction.TARGETS, cluster) == (
        f"broker 2 is down and must keep a replica in sync of orders-0; bring it back, or {ANEW}"
    )
    assert missing_receivers([grows], Direction.TARGETS, cluster) is None
    assert missing_brokers([grows], Direction.TARGETS, observed()) is None


def test_a_reassignment_ends_where_all_its_target_is_alive_and_it_has_a_leader() -> None:
    move, reordered = MOVES[0], PartitionReassignment("orders", 0, (2, 1), (1, 2))
    without_leader = observed(leaderless=frozenset({move.topic_partition}))
    assert not cannot_finish(move, Direction.TARGETS, observed())
    assert cannot_finish(move, Direction.TARGETS, observed(brokers=frozenset({1, 2, 4})))
    assert not cannot_finish(move, Direction.ORIGINALS, observed(brokers=frozenset({1, 2, 4})))
    assert cannot_finish(move, Direction.TARGETS, without_leader)
    assert not cannot_finish(MOVES[1], Direction.TARGETS, without_leader)
    # What changes the order alone needs neither.
    assert not cannot_finish(reordered, Direction.TARGETS, without_leader)


def test_partitions_without_a_leader_are_named() -> None:
    def words(*partitions: int) -> str | None:
        return leaderless(MOVES, observed(leaderless=frozenset(MOVES[one].topic_partition for one in partitions)))

    rest = f"no leader to copy from; bring back a replica that was in sync, or {ANEW}"
    assert words() is None
    assert words(3) == f"orders-3 has {rest}"
    assert words(0, 1, 2, 4) == f"orders-0, orders-1, orders-2 and 1 more have {rest}"


def test_reassignments_of_others_are_named_in_order() -> None:
    moving = InFlight((1, 2), (1,))
    ours = {MOVES[0].topic_partition: moving}
    others = {TopicPartition("b", 1): moving, TopicPartition("a", 7): moving}
    assert running_beside(PLAN, observed(in_flight=ours)) is None
    assert running_beside(PLAN, observed(in_flight={**ours, **others})) == (
        "a-7, b-1: being reassigned, not by this plan; wait for the end or cancel it, then run again"
    )


def test_a_plan_that_names_no_cluster_is_for_any() -> None:
    anywhere = ReassignmentPlan(None, {}, PLAN.steps)
    assert other_cluster(anywhere, observed()) is None
    assert other_cluster(PLAN, observed()) is None
    assert other_cluster(PLAN, observed(cluster_id="d")) == (
        f"this is cluster d, the plan is for c; name that one, or {ANEW}"
    )


def test_the_first_partition_that_is_not_as_planned_is_described() -> None:
    places = {one.topic_partition: one.undo for one in MOVES}
    third = MOVES[2].topic_partition
    assert mismatch(PLAN, MOVES, observed()) is None
    assert mismatch(PLAN, MOVES, observed(replicas={**places, third: (4, 5, 1, 2)})) is None
    assert mismatch(PLAN, MOVES, observed(replicas={**places, third: (5, 4)})) is None
    assert mismatch(PLAN, MOVES, observed(replicas={**places, third: (1, 3)})) == (
        f"orders-2 is on 1,3: the plan found it on 1,2 and leads to 4,5; {ANEW}"
    )
    assert mismatch(PLAN, MOVES, observed(in_flight={third: InFlight((3, 1, 2), (3,), (2,))})) == (
        "orders-2 is being reassigned to 3,1, not by this plan; wait for the end or cancel it, then run again"
    )
    assert mismatch(PLAN, MOVES, observed(in_flight={third: InFlight((4, 5, 1, 2), (4, 5), (1, 2))})) is None
    del places[third]
    assert mismatch(PLAN, MOVES, observed(replicas=places)) == f"partition orders-2 is not in the cluster; {ANEW}"


def test_a_topic_is_known_again_by_its_id_where_both_have_one() -> None:
    assert mismatch(PLAN, MOVES, observed(topic_ids={})) == f"topic orders is not in the cluster; {ANEW}"
    assert mismatch(PLAN, MOVES, observed(topic_ids={"orders": "id-2"})) == (
        f"topic orders was deleted and created again since: its id is id-2, the plan's id-1; {ANEW}"
    )
    assert mismatch(PLAN, MOVES, observed(topic_ids={"orders": None})) is None
    unnamed = ReassignmentPlan("c", {}, PLAN.steps)
    assert mismatch(unnamed, MOVES, observed(topic_ids={"orders": "id-2"})) is None
