import numpy as np

from rackspan.audit import RackPolicy
from rackspan.reassign.optimizer.removals import RemovalChoices, removal_choices
from rackspan.reassign.optimizer.repair import in_need
from rackspan.reassign.optimizer.repair_groups import repair_groups
from rackspan.reassign.problem import reassignment_problem
from rackspan.reassign.request import ReassignmentRequest
from tests.reassign.instances import cluster

RACKS = {0: "a", 1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}


def choices(placed: list[list[int]]) -> RemovalChoices:
    now = reassignment_problem(cluster(placed, RACKS), RackPolicy(), ReassignmentRequest())
    needed, rows, _ = in_need(now)
    return removal_choices(now, repair_groups(now, needed, rows), np.arange(len(rows)))


def test_partitions_with_the_same_candidates_are_one_group_whatever_their_other_replicas() -> None:
    found = choices([[0, 1, 3], [4, 1, 0], [0, 5, 1]])
    assert found.groups.size.tolist() == [3]
    assert (found.arc_broker.tolist(), found.node_must.tolist(), found.group_free.tolist()) == ([0, 1], [1], [0])


def test_a_rack_with_three_of_a_partition_gives_two() -> None:
    found = choices([[0, 1, 2]])
    assert (found.arc_broker.tolist(), found.node_must.tolist()) == ([0, 1, 2], [2])


def test_where_two_racks_are_full_and_one_is_empty_either_may_give() -> None:
    found = choices([[0, 1, 3, 4]])
    assert found.arc_broker.tolist() == [0, 1, 3, 4]
    assert (found.node_must.tolist(), found.node_may.tolist(), found.group_free.tolist()) == ([0, 0], [1, 1], [1])


def test_units_are_dealt_to_partitions_that_hold_the_broker() -> None:
    placed = [[0, 1, 3], [1, 0, 4], [2, 1, 5]]
    found = choices(placed)
    rows, brokers = found.removals_of(np.array([1, 1, 0, 1]))
    assert sorted(rows.tolist()) == [0, 1, 2]
    assert all(broker in placed[row] for row, broker in zip(rows.tolist(), brokers.tolist(), strict=True))
