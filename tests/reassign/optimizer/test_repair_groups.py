from dataclasses import replace

import numpy as np

from rackspan.audit import RackPolicy
from rackspan.model import ClusterSnapshot, UnrackedPolicy
from rackspan.reassign.optimizer.repair import in_need
from rackspan.reassign.optimizer.repair_groups import RepairGroups, repair_groups
from rackspan.reassign.problem import reassignment_problem
from rackspan.reassign.request import ReassignmentRequest
from tests.reassign.instances import cluster

RACKS = {0: "a", 1: "a", 2: "b", 3: "b", 4: "c", 5: "c"}


def groups_of(snapshot: ClusterSnapshot, policy: RackPolicy = RackPolicy()) -> RepairGroups:
    now = reassignment_problem(snapshot, policy, ReassignmentRequest())
    needed, rows, _ = in_need(now)
    return repair_groups(now, needed, rows)


def test_partitions_on_the_same_racks_are_one_group() -> None:
    groups = groups_of(cluster([[0, 1, 2], [1, 0, 3], [2, 3, 4]], RACKS))
    assert groups.row_groups.size.tolist() == [2, 1]
    assert groups.least_additions.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert groups.must_remove.tolist() == [[1, 0, 0], [0, 1, 0]]


def test_fewer_replicas_than_racks_may_go_to_any_rack_that_has_none() -> None:
    groups = groups_of(cluster([[0, 1]], RACKS))
    assert (groups.least_additions.tolist(), groups.most_additions.tolist()) == ([[0, 0, 0]], [[0, 1, 1]])


def test_a_rack_whose_brokers_are_fenced_offers_no_place() -> None:
    groups = groups_of(cluster([[0, 1, 2], [0, 1]], RACKS, fenced=[4, 5]))
    assert np.count_nonzero(groups.reachable) == 1
    assert groups.most_additions[groups.reachable].tolist() == [[0, 1, 0]]


def test_where_replicas_in_no_rack_stand_for_what_racks_lack_what_comes_goes_to_such_a_rack() -> None:
    """Of four replicas one is in rack a, two are in no rack, and one is gone: it comes back to b or c, not to a."""
    snapshot = cluster([[0, 6, 7, 9]], {**RACKS, 6: "none", 7: "none"})
    rackless = tuple(replace(one, rack=None) if one.id in (6, 7) else one for one in snapshot.brokers)
    groups = groups_of(replace(snapshot, brokers=rackless), RackPolicy(unracked=UnrackedPolicy.IGNORE))
    assert groups.additions.tolist() == [1]
    assert (groups.least_additions.tolist(), groups.most_additions.tolist()) == ([[0, 0, 0]], [[0, 1, 1]])
