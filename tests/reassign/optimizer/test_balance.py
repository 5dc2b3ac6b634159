import os
from collections import Counter
from collections.abc import Iterable
from itertools import chain, combinations, pairwise, product
from random import Random
from typing import Any

import numpy as np
import pytest

from rackspan.model import ClusterSnapshot
from rackspan.model.partitions import Int32s
from rackspan.reassign import LoadRange, ReassignmentPlan, ReassignmentRequest, plan, snapshot_after
from rackspan.reassign.optimizer import balance, placement_flow
from rackspan.reassign.optimizer.placement_flow import place
from rackspan.reassign.problem import ReassignmentProblem
from tests.reassign.brute_force import fewest_moves, spread_is_even
from tests.reassign.instances import cluster, spread
from tests.reassign.plans import cost, rows
from tests.reassign.test_planner import judged

RANDOM_CLUSTERS = 1_000 if os.environ.get("RACKSPAN_SOAK") else 100
RACKS = {broker: f"r{broker % 3}" for broker in range(9)}
PLACED = spread(1200, 9, 3, 3, 1)


@pytest.mark.parametrize("seed", range(RANDOM_CLUSTERS))
def test_no_legal_placement_is_more_even_and_none_as_even_takes_fewer_moves(seed: int) -> None:
    rng = Random(seed)
    brokers = rng.randint(2, 5)
    racks = {broker: f"r{rng.randrange(rng.randint(1, 3))}" for broker in range(brokers)}
    sizes, factor = Counter(racks.values()), rng.randint(1, min(3, brokers))
    legal = [
        chosen
        for chosen in combinations(range(brokers), factor)
        if spread_is_even([racks[broker] for broker in chosen], sizes)
    ]
    placed = [rng.choice(legal) for _ in range(rng.randint(1, 4))]
    snapshot = cluster(placed, racks)
    planned = plan(snapshot, request=ReassignmentRequest(balance=True))
    best = min(
        (_unevenness(sets), sum(len(set(new) - set(old)) for new, old in zip(sets, placed, strict=True)))
        for sets in product(legal, repeat=len(placed))
    )
    assert (_unevenness([row.replicas for row in snapshot_after(snapshot, planned).partitions]), planned.moves) == best
    assert planned.moves - cost(planned).lower_bound == 0


def _unevenness(placed: Iterable[Iterable[int]]) -> int:
    return sum(count**2 for count in Counter(chain.from_iterable(placed)).values())


@pytest.mark.parametrize(
    ("new", "moves", "replicas"),
    [
        ({}, 4, LoadRange(400, 400)),
        ({9: "r0", 10: "r1", 11: "r2"}, 900, LoadRange(300, 300)),
        # Three replicas on three racks: the other racks cannot give anything to the new brokers.
        ({9: "r0", 10: "r0", 11: "r0"}, 602, LoadRange(200, 400)),
        ({9: "r3", 10: "r3", 11: "r3"}, 900, LoadRange(300, 300)),
        ({9: "r3"}, 360, LoadRange(360, 360)),
    ],
)
def test_new_brokers_are_filled_to_the_water_level_with_no_move_too_many(
    new: dict[int, str], moves: int, replicas: LoadRange
) -> None:
    snapshot = cluster(PLACED, {**RACKS, **new})
    planned = plan(snapshot, request=ReassignmentRequest(balance=True))
    assert (planned.moves, cost(planned).lower_bound, cost(planned).after.replicas) == (moves, moves, replicas)
    assert cost(planned).after.leaders.most - cost(planned).after.leaders.fewest <= 1
    assert judged(snapshot, planned) == set()


def _in_turn(partitions: int, brokers: int) -> list[list[int]]:
    return [[(nth + shift) % brokers for shift in range(3)] for nth in range(partitions)]


@pytest.mark.parametrize(
    ("placed", "brokers", "moves", "replicas"),
    [
        (_in_turn(100, 6), 12, 150, LoadRange(25, 25)),
        (_in_turn(100, 3), 12, 225, LoadRange(25, 25)),
        (_in_turn(100, 3), 9, 198, LoadRange(33, 34)),
        (_in_turn(2, 3), 6, 3, LoadRange(1, 1)),
    ],
)
@pytest.mark.parametrize("reorder_leaders", [True, False])
def test_a_partition_gives_as_many_replicas_as_the_new_brokers_need(
    placed: list[list[int]], brokers: int, moves: int, replicas: LoadRange, reorder_leaders: bool
) -> None:
    snapshot = cluster(placed, {broker: f"r{broker % 3}" for broker in range(brokers)})
    planned = plan(snapshot, request=ReassignmentRequest(balance=True, reorder_leaders=reorder_leaders))
    assert (planned.moves, cost(planned).lower_bound, cost(planned).gap_reason) == (moves, moves, None)
    assert cost(planned).after.replicas == replicas
    if reorder_leaders:
        assert cost(planned).after.leaders.most - cost(planned).after.leaders.fewest <= 1


def test_small_partitions_are_moved_first() -> None:
    snapshot = cluster([[0], [0], [0], [0]], {0: "a", 1: "a"})
    planned = plan(snapshot, request=ReassignmentRequest(balance=True))
    assert rows(snapshot, planned).tolist() == [0, 1]


def test_a_fenced_broker_neither_gives_nor_takes() -> None:
    fenced = cluster([[0]] * 4 + [[2]] * 8, {0: "a", 1: "a", 2: "a", 3: "a"}, fenced=[2, 3])
    planned = plan(fenced, request=ReassignmentRequest(balance=True))
    assert sorted({int(broker) for row in planned.columns().replicas for broker in row}) == [1]
    assert planned.moves == 2


def test_repair_and_balance_together_say_why_the_bound_is_below() -> None:
    racks = {0: "a", 1: "b", 2: "b"}
    placed = [[1, 2], *[[0, 1]] * 7]
    snapshot = cluster(placed, racks)
    planned = plan(snapshot, request=ReassignmentRequest(balance=True))
    assert planned.moves >= cost(planned).lower_bound
    assert (cost(planned).gap_reason is None) == (planned.moves - cost(planned).lower_bound == 0)
    assert judged(snapshot, planned) == set()


def _crowded(seed: int) -> ClusterSnapshot:
    """Six to fourteen brokers, of which some hold nothing yet."""
    rng = Random(seed)
    racks = {broker: f"r{rng.randrange(3)}" for broker in range(rng.randint(6, 14))}
    old = range(len(racks) // 2 + 2)
    return cluster([rng.sample(old, 3) for _ in range(rng.randint(40, 90))], racks)


@pytest.mark.parametrize(("seed", "rounds"), [(0, 3), (11, 5), (68, 5), (76, 4), (64, 8)])
def test_parts_are_levelled_until_two_rounds_find_nothing_better_and_eight_times_at_most(
    seed: int, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[tuple[int, int]] = []

    def recorded(problem: ReassignmentProblem, *arguments: Any, **options: Any) -> Int32s:
        targets = place(problem, *arguments, **options)
        loads = np.bincount(targets[targets >= 0], minlength=len(problem.loads))
        known = (targets[:, :, None] == problem.replica_index[:, None, :]).any(axis=2)
        reached.append((int((loads**2).sum()), int(np.count_nonzero((targets >= 0) & ~known))))
        return targets

    monkeypatch.setattr(balance, "place", recorded)
    for module in (placement_flow, balance):
        monkeypatch.setattr(module, "PLACEMENT_ARCS_MAX", 60)
    plan(_crowded(seed), request=ReassignmentRequest(balance=True, allow_fewer_racks=True))
    better = [later < earlier for earlier, later in pairwise(reached)]
    assert len(reached) == rounds
    assert rounds == 8 or better[-2:] == [False, False][: len(better)]
    assert all(better[:-2])


@pytest.mark.parametrize("seed", [0, 8, 12, 37, 64, 74, 83, 133])
def test_a_cluster_too_large_for_one_flow_is_levelled_in_parts_as_one_flow_levels_it(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least squares and moves of one exact flow are the reference; 74 and 133 take eight rounds."""
    snapshot, request = _crowded(seed), ReassignmentRequest(balance=True, allow_fewer_racks=True)
    exact = plan(snapshot, request=request)
    for module in ("placement_flow", "balance"):
        monkeypatch.setattr(f"rackspan.reassign.optimizer.{module}.PLACEMENT_ARCS_MAX", 60)
    parts = plan(snapshot, request=request)
    reached, best = (
        (_unevenness([row.replicas for row in snapshot_after(snapshot, one).partitions]), one.moves)
        for one in (parts, exact)
    )
    assert reached >= best
    assert cost(parts).gap_reason is not None or reached == best, "no plan needs fewer"
    assert reached[0] > best[0] or cost(parts).lower_bound <= exact.moves
    assert reached == best or seed not in (8, 12, 37, 133)
    assert reached[0] == best[0] or seed not in (0, 74)


def test_where_no_flow_bounds_the_loads_every_broker_receives_at_least_what_it_ends_with_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a cluster of very many brokers, each in a rack of its own: the bound is of the loads that were reached."""
    for module in ("placement_flow", "balance"):
        monkeypatch.setattr(f"rackspan.reassign.optimizer.{module}.PLACEMENT_ARCS_MAX", 15)
    monkeypatch.setattr("rackspan.reassign.optimizer.rack_relaxation.RELAXED_ARCS_MAX", 0)
    placed = [[1, 2], [3, 4], [1, 3], [2, 4], [1, 4], [2, 3]]
    snapshot = cluster(placed, dict.fromkeys(range(5), "a"))
    planned = plan(snapshot, request=ReassignmentRequest(balance=True))
    ends = Counter(chain.from_iterable(row.replicas for row in snapshot_after(snapshot, planned).partitions))
    received = ends - Counter(chain.from_iterable(placed))
    assert received == {0: 2}
    assert (cost(planned).lower_bound, planned.moves) == (2, 2)
    assert cost(planned).gap_reason == (
        "the loads may not be the most even: that is not proven, since the cluster is too large or replicas in sync had to stay"
    )


def _in_parts(monkeypatch: pytest.MonkeyPatch, arcs: int, snapshot: ClusterSnapshot) -> ReassignmentPlan:
    for module in ("placement_flow", "balance"):
        monkeypatch.setattr(f"rackspan.reassign.optimizer.{module}.PLACEMENT_ARCS_MAX", arcs)
    return plan(snapshot, request=ReassignmentRequest(balance=True, allow_fewer_racks=True))


def test_a_plan_of_more_moves_than_is_proven_to_be_needed_says_what_both_bounds_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    snapshot = _crowded(0)
    planned = _in_parts(monkeypatch, 60, snapshot)
    racks = {int(broker.id): str(broker.rack) for broker in snapshot.brokers}
    fewest = sum(fewest_moves(row.replicas, racks, 3) or 0 for row in snapshot.partitions)
    assert planned.moves == cost(planned).lower_bound + 1
    assert cost(planned).gap_reason == (
        f"the constraints alone need {fewest} moves and loads as even {cost(planned).lower_bound}; "
        "whether a plan for both needs more than either is not proven"
    )


def test_a_plan_whose_loads_are_not_proven_to_be_the_most_even_says_how_many_replicas_are_in_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planned = _in_parts(monkeypatch, 60, _crowded(64))
    assert cost(planned).gap_reason == (
        "the loads may not be the most even: at best, 1 replica would be on other brokers; "
        "whether a plan can place them there is not proven"
    )


def test_where_no_part_fits_an_exact_flow_the_flow_of_racks_alone_fills_new_brokers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    snapshot = cluster(_in_turn(100, 6), {broker: f"r{broker % 3}" for broker in range(12)})
    planned = _in_parts(monkeypatch, 1, snapshot)
    assert (planned.moves, cost(planned).after.replicas) == (150, LoadRange(25, 25))
    assert judged(snapshot, planned) == set()
