"""Conflicts, bounds and searches of a restart's batches, each on the smallest set of brokers that shows it."""

from collections.abc import Sequence

import numpy as np
import pytest

from rackspan.audit import RackPolicy, snapshot_batch
from rackspan.model import Bools, ClusterSnapshot
from rackspan.restart import BlockOn, RestartRequest, StopPolicy, plan_restart, search
from rackspan.restart.search import (
    Conflicts,
    LowerBound,
    chosen_conflicts,
    dense_bound,
    greedy_batches,
    is_small,
    lower_bound,
    searched_batches,
)
from rackspan.restart.stopping import in_sync_rows
from tests.snapshots import of_one_topic

Partitions = Sequence[Sequence[int]]

FOUR_BATCHES = [
    *([0, 2], [0, 3], [0, 4], [0, 7], [0, 9], [1, 4], [1, 5], [1, 7], [1, 8], [1, 9], [2, 3], [2, 5]),
    *([2, 6], [2, 9], [3, 8], [3, 9], [4, 7], [4, 8], [4, 9], [5, 8], [6, 9], [7, 9], [8, 9]),
]
"""Ten brokers in four batches, by FOUR_OF. Saturation finds five, and so does first fit by degree and by id."""

FOUR_OF = [0, 0, 1, 2, 2, 2, 0, 1, 1, 3]

BY_ID = [[0, 1], [0, 3], [0, 5], [0, 7], [1, 4], [1, 6], [2, 5], [2, 6], [2, 7], [3, 6], [4, 6], [5, 7]]
"""Three batches, which first fit by id finds; saturation and first fit by degree find four."""

BY_DEGREE = [[0, 2], [0, 3], [0, 7], [1, 3], [1, 5], [1, 6], [2, 3], [2, 7], [4, 5], [4, 6], [5, 6], [6, 7]]
"""Three batches, which first fit by degree finds; saturation and first fit by id find four."""

LINES = [[0, 1, 2], [0, 3, 4], [0, 5, 6], [1, 3, 5], [1, 4, 6], [2, 3, 6], [2, 4, 5]]
"""The lines of the Fano plane: no pair conflicts, and of any two batches one holds a whole line."""


def conflicts_of(
    partitions: Partitions,
    brokers: int,
    *,
    minimum: int = 1,
    voter: Sequence[int] = (),
    voters_most: int | None = None,
    most: int | None = None,
    stop: StopPolicy = StopPolicy(),
) -> Conflicts:
    """The conflicts of brokers 0, 1, …, each in sync wherever it is a replica."""
    rows = in_sync_rows(snapshot_batch(snapshot_of(partitions, brokers, minimum), RackPolicy()), stop)
    return chosen_conflicts(
        rows,
        np.arange(brokers),
        brokers,
        np.isin(np.arange(brokers), voter),
        brokers if voters_most is None else voters_most,
        brokers if most is None else most,
    )


def snapshot_of(partitions: Partitions, brokers: int, minimum: int = 1) -> ClusterSnapshot:
    config = {"min.insync.replicas": str(minimum)}
    return of_one_topic(dict.fromkeys(range(brokers)), partitions, config=config)


def mask(brokers: int, *chosen: int) -> Bools:
    return np.isin(np.arange(brokers), chosen)


def held(batches: Sequence[Bools] | None) -> list[list[int]]:
    assert batches is not None
    return [np.flatnonzero(batch).tolist() for batch in batches]


def conflicting(conflicts: Conflicts) -> list[list[int]]:
    return [pair for pair in np.argwhere(conflicts.pairs).tolist() if pair[0] < pair[1]]


def check_batches(batches: Sequence[Bools] | None, partitions: Partitions, brokers: int, count: int) -> None:
    """So many batches that hold every broker once, and none of them a whole partition."""
    found = held(batches)
    assert len(found) == count
    assert sorted(broker for batch in found for broker in batch) == list(range(brokers))
    assert not [row for row in partitions for batch in found if set(row) <= set(batch)]


def test_two_brokers_conflict_if_a_partition_forbids_both_of_them() -> None:
    conflicts = conflicts_of([[0, 1], [2, 1], [0, 2, 3]], 4)
    assert conflicting(conflicts) == [[0, 1], [1, 2]]
    assert (conflicts.pairs == conflicts.pairs.T).all()
    assert conflicts.blocked.tolist() == [False] * 4
    assert conflicting(conflicts_of([[0, 1, 2]], 3, minimum=2)) == [[0, 1], [0, 2], [1, 2]]


def test_a_broker_that_a_partition_needs_by_itself_is_blocked() -> None:
    assert conflicts_of([[0, 1], [0, 2, 3]], 4, minimum=2).blocked.tolist() == [True, True, False, False]


def test_a_partition_of_one_replica_forbids_nothing_unless_it_is_named() -> None:
    assert not conflicts_of([[0]], 1).blocked.any()
    assert len(conflicts_of([[0]], 1).rows) == 0
    assert conflicts_of([[0]], 1, stop=StopPolicy(block_on=frozenset({BlockOn.RF1}))).blocked.all()


def test_voters_conflict_once_only_one_of_them_may_stop() -> None:
    assert conflicting(conflicts_of([], 4, voter=(0, 2, 3), voters_most=1)) == [[0, 2], [0, 3], [2, 3]]
    assert conflicting(conflicts_of([], 4, voter=(0, 2, 3), voters_most=2)) == []
    assert conflicts_of([], 3, voter=(1,), voters_most=0).blocked.tolist() == [False, True, False]
    assert not conflicts_of([], 3, voter=(1,), voters_most=1).blocked.any()


def test_all_brokers_conflict_if_a_batch_holds_one_and_none_may_stop_if_it_holds_none() -> None:
    assert conflicting(conflicts_of([], 3, most=1)) == [[0, 1], [0, 2], [1, 2]]
    assert not conflicts_of([], 3, most=1).blocked.any()
    assert conflicting(conflicts_of([], 3, most=2)) == []
    assert conflicts_of([], 3, most=0).blocked.all()


def test_a_partition_may_forbid_three_brokers_of_which_no_two_conflict() -> None:
    conflicts = conflicts_of([[3, 4], [0, 1, 2], [0, 3, 4]], 5)
    assert conflicting(conflicts) == [[3, 4]]
    assert conflicts.beyond_pairs.tolist() == [1]
    assert conflicts.fits(2, mask(5, 0)) is True
    assert conflicts.fits(2, mask(5, 0, 1)) is False
    assert conflicts.fits(3, mask(5, 0, 1))
    assert conflicts.forbidding(mask(5, 0, 1, 2)).tolist() == [1]
    assert conflicts.forbidding(mask(5, 0, 3, 4)).tolist() == [0, 2]
    assert conflicts.forbidding(mask(5, 0, 1, 3)).tolist() == []
    assert conflicts_of([[0, 1, 2, 3], [2, 3]], 4).beyond_pairs.tolist() == [0], "0, 1 and 2 do not conflict"


def test_a_full_batch_and_a_batch_with_its_voters_take_no_further_broker() -> None:
    conflicts = conflicts_of([], 5, voter=(0, 1, 2), voters_most=2, most=3)
    assert conflicts.fits(2, mask(5, 0, 1)) is False
    assert conflicts.fits(3, mask(5, 0, 1)) is True
    assert conflicts.fits(2, mask(5, 0, 3)) is True
    assert conflicts.fits(4, mask(5, 0, 1, 3)) is False


def test_without_some_brokers_the_others_keep_their_conflicts() -> None:
    conflicts = conflicts_of([[0, 1], [1, 2], [2, 4], [0, 3]], 5, voter=(3, 4), voters_most=1, most=4)
    left = conflicts.without(mask(5, 0, 1))
    assert (left.size, left.voter.tolist(), left.voters_most, left.most) == (3, [False, True, True], 1, 4)
    assert conflicting(left) == [[0, 2], [1, 2]]
    assert left.chosen_count.tolist() == [1, 2, 1]


def test_a_broker_that_is_not_chosen_stays_up() -> None:
    left = conflicts_of([[0, 1, 2, 3], [0, 1, 2]], 4).without(mask(4, 3))
    assert not left.fits(2, mask(3, 0, 1))
    assert left.forbidding(mask(3, 0, 1, 2)).tolist() == [1]
    stays = conflicts_of([[0, 1, 2, 3]], 4).without(mask(4, 3))
    assert stays.fits(2, mask(3, 0, 1))
    assert stays.forbidding(mask(3, 0, 1, 2)).tolist() == []


ALL_TRIPLES = [[a, b, c] for a in range(5) for b in range(a) for c in range(b)]


@pytest.mark.parametrize(
    ("conflicts", "bound"),
    [
        (conflicts_of([], 1).without(mask(1, 0)), LowerBound(0, "no broker to restart")),
        (conflicts_of([[0]], 4), LowerBound(1, "one batch at least")),
        (conflicts_of([], 5, most=2), LowerBound(3, "5 brokers, 2 in a batch at most")),
        (conflicts_of([], 6, most=2), LowerBound(3, "6 brokers, 2 in a batch at most")),
        (
            conflicts_of([], 6, voter=(1, 2, 3, 4, 5), voters_most=2),
            LowerBound(3, "5 controllers, 2 may stop together"),
        ),
        (conflicts_of([], 6, voter=(0,), voters_most=2), LowerBound(1, "one batch at least")),
        (
            conflicts_of([[6, 7, 8, 9, 0], [0, 1, 2, 3, 4]], 10, minimum=3),
            LowerBound(3, "a partition has 5 of them, and 2 may stop together"),
        ),
        (conflicts_of([[0, 1, 2]], 3), LowerBound(2, "a partition has 3 of them, and 2 may stop together")),
        (
            conflicts_of([[0, 1, 2, 3]], 5, stop=StopPolicy(margin=1)),
            LowerBound(2, "a partition has 4 of them, and 2 may stop together"),
        ),
        (
            conflicts_of([[0, 1], [0, 2], [0, 3], [0, 4], [5, 6], [6, 7], [5, 7]], 8),
            LowerBound(3, "of 3 brokers no two may stop together"),
        ),
    ],
)
def test_the_largest_bound_is_stated_with_its_reason(conflicts: Conflicts, bound: LowerBound) -> None:
    assert lower_bound(conflicts) == bound


def test_brokers_of_which_no_three_may_stop_together_go_by_twos() -> None:
    assert dense_bound(conflicts_of([*ALL_TRIPLES, [0, 5, 6]], 8)) == LowerBound(
        3, "of 5 brokers no three may stop together"
    )
    assert dense_bound(conflicts_of([*ALL_TRIPLES[:4], [7, 8, 9]], 10)) == LowerBound(
        2, "of 4 brokers no three may stop together"
    )
    assert dense_bound(conflicts_of([[0, 1, 2]], 3)) == LowerBound(2, "of 3 brokers no three may stop together")
    assert dense_bound(conflicts_of([[0, 1], [0, 2]], 3)) == LowerBound(0, "of 0 brokers no three may stop together")


def test_of_four_replicas_with_two_required_no_three_may_stop_together() -> None:
    assert dense_bound(conflicts_of([[0, 1, 2, 3]], 4, minimum=2)) == LowerBound(
        2, "of 4 brokers no three may stop together"
    )


def test_a_broker_that_is_no_start_is_found_from_another() -> None:
    """Of brokers 0 to 6 no three may stop together; the others are more often in such a set than broker 0."""
    triples = [[a, b, c] for a in range(7) for b in range(a) for c in range(b)]
    conflicts = conflicts_of([*triples, [1, 2, 7], [3, 4, 7], [5, 6, 7]], 8)
    assert dense_bound(conflicts) == LowerBound(4, "of 7 brokers no three may stop together")


@pytest.mark.parametrize(
    "partitions",
    [
        [
            *([0, 3], [0, 6], [0, 7], [0, 8], [1, 2], [1, 3], [1, 7], [1, 8]),
            *([2, 3], [2, 4], [2, 6], [4, 5], [4, 6], [4, 8], [5, 6], [6, 8]),
        ],
        [
            *([0, 2], [0, 3], [0, 5], [0, 6], [1, 4], [1, 7], [2, 4], [2, 5], [2, 8]),
            *([3, 4], [3, 5], [4, 7], [4, 8], [5, 7], [6, 7], [6, 8], [7, 8]),
        ],
    ],
    ids=["by saturation", "then by degree"],
)
def test_saturation_alone_finds_three_batches(partitions: Partitions) -> None:
    """With a bound that any plan meets, no other order is tried."""
    conflicts = conflicts_of(partitions, 9)
    check_batches(greedy_batches(conflicts, np.zeros(9, dtype=np.int32), 9), partitions, 9, 3)


def test_further_orders_are_tried_until_the_bound_is_met() -> None:
    racks = np.zeros(10, dtype=np.int32)
    for partitions in (BY_ID, BY_DEGREE):
        conflicts = conflicts_of(partitions, 8)
        check_batches(greedy_batches(conflicts, racks[:8], 4), partitions, 8, 4)
        check_batches(greedy_batches(conflicts, racks[:8], 3), partitions, 8, 3)
    conflicts = conflicts_of(FOUR_BATCHES, 10)
    check_batches(greedy_batches(conflicts, racks, 4), FOUR_BATCHES, 10, 5)
    check_batches(greedy_batches(conflicts, np.array(FOUR_OF, dtype=np.int32), 4), FOUR_BATCHES, 10, 4)


def test_a_search_is_worth_its_time_up_to_a_thousand_cells_and_two_hundred_thousand_pairs() -> None:
    assert is_small(conflicts_of([], 100), 10)
    assert not is_small(conflicts_of([], 100), 11)
    assert is_small(conflicts_of([], 600, most=1), 1)
    assert not is_small(conflicts_of([], 700, most=1), 1)


@pytest.mark.slow
def test_a_search_finds_what_no_order_finds_or_proves_that_there_is_nothing() -> None:
    conflicts = conflicts_of(FOUR_BATCHES, 10)
    found, none_exist = searched_batches(conflicts, 4)
    check_batches(found, FOUR_BATCHES, 10, 4)
    assert not none_exist
    assert searched_batches(conflicts, 3) == (None, True)


@pytest.mark.slow
def test_a_search_learns_the_sets_that_are_larger_than_pairs() -> None:
    conflicts = conflicts_of(LINES, 7)
    found, none_exist = searched_batches(conflicts, 3)
    check_batches(found, LINES, 7, 3)
    assert not none_exist
    assert searched_batches(conflicts, 2) == (None, True)
    any_three = conflicts_of([[0, 1, 2, 3], [3, 4, 5, 6]], 7, minimum=2)
    found, _ = searched_batches(any_three, 2)
    assert sorted(broker for batch in held(found) for broker in batch) == list(range(7))
    assert max(len({0, 1, 2, 3} & set(batch)) for batch in held(found)) == 2
    assert max(len({3, 4, 5, 6} & set(batch)) for batch in held(found)) == 2


@pytest.mark.slow
def test_a_search_keeps_the_most_brokers_and_the_most_voters_of_a_batch() -> None:
    found, _ = searched_batches(conflicts_of([], 5, most=2), 3)
    assert sorted(map(len, held(found))) == [1, 2, 2]
    assert searched_batches(conflicts_of([], 5, most=2), 2) == (None, True)
    voters = conflicts_of([], 6, voter=(0, 2, 3, 5), voters_most=2)
    found, _ = searched_batches(voters, 2)
    assert [len({0, 2, 3, 5} & set(batch)) for batch in held(found)] == [2, 2]
    assert searched_batches(voters, 1) == (None, True)


@pytest.mark.slow
def test_a_search_returns_no_empty_batch() -> None:
    found, none_exist = searched_batches(conflicts_of([], 1), 2)
    assert (held(found), none_exist) == ([[0]], False)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 1e-9])
def test_a_search_without_time_proves_nothing(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_SECONDS", seconds)
    assert searched_batches(conflicts_of(FOUR_BATCHES, 10), 4) == (None, False)
    plan = plan_restart(snapshot_of(FOUR_BATCHES, 10))
    assert (len(plan.batches), plan.lower_bound.batches) == (5, 4)


@pytest.mark.slow
def test_a_plan_searches_for_fewer_batches_than_the_orders_give() -> None:
    plan = plan_restart(snapshot_of(FOUR_BATCHES, 10))
    assert (len(plan.batches), plan.lower_bound.batches) == (4, 4)
    assert plan.lower_bound.reason == "of 4 brokers no two may stop together"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("partitions", "brokers"), [([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]], 5), (LINES, 7)], ids=["ring", "lines"]
)
def test_a_plan_whose_bound_is_not_met_is_proven_by_the_search(partitions: Partitions, brokers: int) -> None:
    plan = plan_restart(snapshot_of(partitions, brokers))
    assert len(plan.batches) == 3
    assert plan.lower_bound == LowerBound(3, "a search found that 2 batches are impossible")


def test_a_plan_by_racks_adds_up_their_bounds() -> None:
    config = {"min.insync.replicas": "1"}
    snapshot = of_one_topic({1: "a", 2: "b", 3: "b", 4: "c"}, [[2, 3], [1, 2, 4]], config=config)
    plan = plan_restart(snapshot, request=RestartRequest(by_rack=True))
    assert plan.lower_bound == LowerBound(4, "1+2+1 for the racks, one at a time")
    assert sorted(batch.brokers for batch in plan.batches) == [(1,), (2,), (3,), (4,)]
    nothing = plan_restart(snapshot, request=RestartRequest(frozenset(), by_rack=True))
    assert (nothing.batches, nothing.lower_bound) == ((), LowerBound(0, "no broker"))
