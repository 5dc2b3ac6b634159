"""What a request plans on: who may hold and receive, what is chosen, and where replaced replicas should come back to."""

from dataclasses import replace
from typing import Any

import pytest

from rackspan.audit import RackPolicy
from rackspan.errors import UsageError
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, UnrackedPolicy, columns
from rackspan.reassign.problem import ReassignmentProblem, reassignment_problem
from rackspan.reassign.request import ReassignmentRequest

RACKS: dict[int, str | None] = {0: "a", 1: "b", 2: "b", 3: "c", 4: None}
ROWS: list[dict[str, Any]] = [
    {"replicas": [1, 2]},
    {"replicas": [9, 3]},
    {"replicas": [1, 0], "adding": [0]},
    {"replicas": [0, 1], "removing": [1]},
    {"topic": 1, "replicas": [4, 3, 1]},
]


def a_cluster(*rows: dict[str, Any], fenced: tuple[int, ...] = ()) -> ClusterSnapshot:
    """Broker 9 is not listed."""
    return ClusterSnapshot(
        brokers=tuple(
            Broker(BrokerId(one), None if rack is None else RackId(rack), one in fenced) for one, rack in RACKS.items()
        ),
        topics=(Topic(TopicName("orders")), Topic(TopicName("payments"))),
        partitions=columns(
            topic=[row.get("topic", 0) for row in rows],
            partition=range(len(rows)),
            leader=[row["replicas"][0] for row in rows],
            replicas=[row["replicas"] for row in rows],
            isr=[row["replicas"] for row in rows],
            adding_replicas=[row.get("adding", []) for row in rows],
            removing_replicas=[row.get("removing", []) for row in rows],
        ),
    )


def problem(policy: RackPolicy = RackPolicy(), fenced: tuple[int, ...] = (), **request: Any) -> ReassignmentProblem:
    return reassignment_problem(a_cluster(*ROWS, fenced=fenced), policy, ReassignmentRequest(**request))


def test_a_partition_that_is_being_reassigned_is_not_chosen_whichever_broker_comes_or_goes() -> None:
    found = problem()
    assert found.chosen.tolist() == [True, True, False, False, True]
    assert found.moving.tolist() == [False, False, True, True, False]


def test_topics_that_are_not_chosen_are_neither_chosen_nor_moving() -> None:
    found = problem(topics="payments", replication_factor=2)
    assert found.chosen.tolist() == [False, False, False, False, True]
    assert found.moving.tolist() == [False] * 5
    assert found.target_factor.tolist() == [2, 2, 2, 1, 2]
    assert found.current_factor.tolist() == [2, 2, 2, 1, 3]


def test_what_moves_keeps_its_factor() -> None:
    assert problem(replication_factor=3).target_factor.tolist() == [3, 3, 2, 1, 3]


def test_fenced_and_excluded_brokers_receive_nothing() -> None:
    found = problem(RackPolicy(excluded_brokers=frozenset({1})), fenced=(3,))
    assert found.rack_map.broker_ids.tolist() == [0, 1, 2, 3, 4]
    assert found.can_receive.tolist() == [True, False, True, False, True]


def test_replicas_that_leave_or_are_not_listed_have_no_index_and_no_load() -> None:
    found = problem(drain=frozenset({2}), replace=frozenset({0}))
    assert found.rack_map.broker_ids.tolist() == [1, 3, 4]
    assert found.replica_index.tolist() == [[0, -1, -1], [-1, 1, -1], [0, -1, -1], [-1, -1, -1], [2, 1, 0]]
    assert found.loads.tolist() == [3, 2, 1]


def test_what_a_replaced_broker_held_should_come_back_to_its_rack_and_what_a_drained_one_held_need_not() -> None:
    found = problem(replace=frozenset({1}))
    b = found.rack_map.racks.index(RackId("b"))
    # The replica of the fourth is on its way out already.
    assert found.own_rack.tolist() == [b, -1, b, -1, b]
    assert problem(drain=frozenset({1})).own_rack.tolist() == [-1] * 5


def test_what_is_in_no_rack_and_what_is_not_listed_has_no_rack_to_come_back_to() -> None:
    assert problem(replace=frozenset({9})).own_rack.tolist() == [-1] * 5
    ignoring = RackPolicy(unracked=UnrackedPolicy.IGNORE)
    assert problem(ignoring, replace=frozenset({4})).own_rack.tolist() == [-1] * 5


def test_where_no_broker_counts_in_a_rack_all_are_in_one() -> None:
    snapshot = a_cluster({"replicas": [1, 2]})
    rackless = replace(snapshot, brokers=tuple(replace(one, rack=None) for one in snapshot.brokers))
    found = reassignment_problem(rackless, RackPolicy(unracked=UnrackedPolicy.IGNORE), ReassignmentRequest())
    assert (len(found.rack_map.racks), found.rack_map.rack_codes.tolist()) == (1, [0] * 5)


def test_a_broker_that_nobody_lists_is_drained_where_it_holds_something() -> None:
    assert problem(drain=frozenset({9})).rack_map.broker_ids.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(UsageError) as refused:
        problem(drain=frozenset({9, 8, 7}))
    assert str(refused.value) == "broker 7: the cluster does not list it, and no partition has a replica on it"


def test_a_cluster_without_partitions_has_a_column_of_padding() -> None:
    found = reassignment_problem(a_cluster(), RackPolicy(), ReassignmentRequest())
    assert (found.replica_index.shape, found.loads.tolist()) == ((0, 1), [0] * 5)
