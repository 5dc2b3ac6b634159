import numpy as np

from rackspan.audit import RackPolicy
from rackspan.model import ClusterSnapshot
from rackspan.reassign.optimizer.repair import in_need
from rackspan.reassign.optimizer.repair_groups import Kinds, kinds
from rackspan.reassign.problem import standing
from rackspan.reassign.request import ReassignmentRequest
from tests.reassign.instances import cluster

RACKS = {0: "a", 1: "a", 2: "b", 3: "b", 4: "c", 5: "c"}


def kinds_of(snapshot: ClusterSnapshot) -> Kinds:
    now = standing(snapshot, RackPolicy(), ReassignmentRequest())
    needed, rows, _ = in_need(now)
    return kinds(now, needed, rows)


def test_partitions_on_the_same_racks_are_one_kind() -> None:
    found = kinds_of(cluster([[0, 1, 2], [1, 0, 3], [2, 3, 4]], RACKS))
    assert found.groups.size.tolist() == [2, 1]
    assert found.least_arrivals.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert found.must_evict.tolist() == [[1, 0, 0], [0, 1, 0]]


def test_fewer_replicas_than_racks_may_go_to_any_rack_that_has_none() -> None:
    found = kinds_of(cluster([[0, 1]], RACKS))
    assert (found.least_arrivals.tolist(), found.most_arrivals.tolist()) == ([[0, 0, 0]], [[0, 1, 1]])


def test_a_rack_whose_brokers_are_fenced_offers_no_place() -> None:
    found = kinds_of(cluster([[0, 1, 2], [0, 1]], RACKS, fenced=[4, 5]))
    assert np.count_nonzero(found.reachable) == 1
    assert found.most_arrivals[found.reachable].tolist() == [[0, 1, 0]]
