from random import Random

import numpy as np
import pytest

from rackspan.audit import RackPolicy
from rackspan.model import Broker, BrokerId, ClusterSnapshot, UnrackedPolicy
from rackspan.reassign import ReassignmentRequest, plan
from rackspan.reassign.optimizer.repair import in_need, repair
from rackspan.reassign.problem import reassignment_problem
from tests.reassign.brute_force import fewest_moves
from tests.reassign.instances import cluster
from tests.reassign.plans import cost, rows
from tests.reassign.test_planner import judged
from tests.snapshots import of_one_topic


def test_a_replica_out_of_sync_leaves_before_one_in_sync() -> None:
    racks = {0: "a", 1: "a", 2: "b"}
    for lagging in (0, 1):
        in_sync = 1 - lagging
        snapshot = of_one_topic(racks, [[0, 1]], isr=[[in_sync]])
        assert plan(snapshot).columns().replicas.tolist() in ([[in_sync, 2]], [[2, in_sync]])


def test_lowering_the_factor_keeps_what_is_in_sync() -> None:
    snapshot = of_one_topic({0: "a", 1: "b", 2: "c"}, [[0, 1, 2]], isr=[[2]])
    assert (
        2
        in plan(snapshot, request=ReassignmentRequest(replication_factor=1, allow_fewer_racks=True))
        .columns()
        .replicas[0]
    )


@pytest.mark.parametrize("seed", range(60))
def test_more_replicas_than_racks_take_the_fewest_moves_too(seed: int) -> None:
    rng = Random(seed)
    racks = {broker: f"r{rng.randrange(3)}" for broker in range(rng.randint(5, 8))}
    placed = [rng.sample(sorted(racks), rng.randint(3, 5)) for _ in range(40)]
    snapshot = cluster(placed, racks)
    planned = plan(snapshot)
    fewest = [fewest_moves(row, racks, len(row)) for row in placed]
    assert planned.moves == sum(moves or 0 for moves in fewest)
    assert judged(snapshot, planned) == set()


@pytest.mark.slow
def test_every_broker_a_rack_of_its_own_works_with_hundreds_of_them() -> None:
    rng = Random(7)
    placed = [rng.sample(range(200), 3) for _ in range(2_000)]
    snapshot = cluster(placed, {broker: "same" for broker in range(200) if broker != 17})
    alone = ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(broker.id)) for broker in snapshot.brokers),
        topics=snapshot.topics,
        partitions=snapshot.partitions,
    )
    policy = RackPolicy(unracked=UnrackedPolicy.OWN)
    planned = plan(alone, policy, ReassignmentRequest(replace_missing=True))
    assert planned.moves == cost(planned).lower_bound == sum(17 in row for row in placed)
    assert judged(alone, planned, policy) == set()
    mean = 6_000 / 199
    assert cost(planned).after.replicas.most <= max(cost(planned).before.replicas.most, mean + 1)


def test_one_partition_that_needs_several_brokers_of_one_rack_gets_different_ones() -> None:
    racks = {0: "a", 1: "a", 2: "a", 3: "b", 4: "b", 5: "b"}
    planned = plan(cluster([[0]] * 30, racks), request=ReassignmentRequest(replication_factor=6))
    assert (np.sort(planned.columns().replicas, axis=1) == np.arange(6)).all()
    assert planned.moves == 150


def test_a_newcomer_takes_the_place_of_the_replica_that_leaves() -> None:
    racks = {0: "a", 1: "b", 2: "c"}
    planned = plan(
        cluster([[9, 1, 2]] * 3, racks), request=ReassignmentRequest(reorder_leaders=False, replace_missing=True)
    )
    assert planned.columns().replicas.tolist() == [[0, 1, 2]] * 3


def test_equal_snapshots_have_equal_plans() -> None:
    rng = Random(3)
    placed = [rng.sample(range(12), 3) for _ in range(500)]
    racks = {broker: "abc"[broker // 4] for broker in range(12)}
    snapshot = cluster(placed, racks)
    one, two = plan(snapshot), plan(cluster(placed, racks))
    assert one == two
    assert np.array_equal(one.columns().replicas, two.columns().replicas)
    assert np.array_equal(rows(snapshot, one), rows(snapshot, two))


def test_where_no_broker_can_receive_what_is_needed_nothing_leaves_and_every_row_is_blocked() -> None:
    snapshot = cluster([[0, 1], [2, 0], [1, 0]], {0: "a", 1: "a", 2: "b"}, fenced=[2])
    problem = reassignment_problem(snapshot, RackPolicy(), ReassignmentRequest())
    needed, needing, too_many = in_need(problem)
    assert (needing.tolist(), too_many.tolist()) == ([0, 2], [])
    changes = repair(problem, needed, needing)
    assert changes.leaving.tolist() == [[False, False]] * 3
    assert (changes.additions.row.tolist(), changes.additions.broker.tolist()) == ([], [])
    assert changes.blocked.tolist() == [0, 2]


def test_what_can_be_repaired_is_though_other_rows_are_blocked() -> None:
    snapshot = cluster([[0, 1], [3, 4], [0, 3]], {0: "a", 1: "a", 2: "b", 3: "c", 4: "c"}, fenced=[2])
    problem = reassignment_problem(snapshot, RackPolicy(), ReassignmentRequest())
    needed, needing, _ = in_need(problem)
    changes = repair(problem, needed, needing)
    assert changes.blocked.tolist() == []
    assert changes.leaving.sum(axis=1).tolist() == [1, 1, 0]
    assert sorted(changes.additions.row.tolist()) == [0, 1]
    into = dict(zip(changes.additions.row.tolist(), changes.additions.broker.tolist(), strict=True))
    assert problem.rack_map.broker_ids[into[0]] in (3, 4)
    assert problem.rack_map.broker_ids[into[1]] in (0, 1)


def test_a_partition_that_lost_what_a_lower_factor_takes_away_is_in_need_though_it_copies_nothing() -> None:
    snapshot = cluster([[0, 1, 9], [0, 1]], {0: "a", 1: "b", 2: "c"})
    problem = reassignment_problem(snapshot, RackPolicy(), ReassignmentRequest(replication_factor=2))
    needed, needing, _ = in_need(problem)
    assert (needed.additions.tolist(), needing.tolist()) == ([0, 0], [0])
