from itertools import product
from random import Random

import numpy as np
import pytest

from rackspan.reassign.optimizer import leaders
from rackspan.reassign.optimizer.leaders import even_leaders


@pytest.mark.parametrize("rounds", [leaders.BULK_ROUNDS, 0])
@pytest.mark.parametrize("seed", range(100))
def test_no_choice_of_leaders_is_more_even(seed: int, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no round of flow all is left to single paths."""
    monkeypatch.setattr(leaders, "BULK_ROUNDS", rounds)
    rng = Random(seed)
    brokers = rng.randint(1, 5)
    factor = rng.randint(1, min(3, brokers))
    placed = [rng.sample(range(brokers), factor) for _ in range(rng.randint(1, 6))]
    rows, leader = even_leaders(np.array(placed, dtype=np.int32), np.ones(len(placed), bool), np.ones(brokers, bool))
    led = [row[0] for row in placed]
    for row, chosen in zip(rows.tolist(), leader.tolist(), strict=True):
        assert chosen in placed[row]
        led[row] = chosen
    fewest = min(sum(choice.count(broker) ** 2 for broker in range(brokers)) for choice in product(*placed))
    assert sum(led.count(broker) ** 2 for broker in range(brokers)) == fewest


@pytest.mark.parametrize("rounds", [leaders.BULK_ROUNDS, 0])
def test_leaders_flow_through_brokers_that_neither_gain_nor_lose(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaders, "BULK_ROUNDS", rounds)
    # 0 leads too many, 3 nothing; no partition is on both.
    placed = np.array([[0, 1], [0, 1], [1, 2], [2, 3]], dtype=np.int32)
    rows, leader = even_leaders(placed, np.ones(4, bool), np.ones(4, bool))
    assert rows.tolist() in ([0, 2, 3], [1, 2, 3])
    assert leader.tolist() == [1, 2, 3]


@pytest.mark.parametrize("rounds", [leaders.BULK_ROUNDS, 0])
def test_a_broker_that_cannot_give_does_not_keep_the_next_fullest_from_giving(
    rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaders, "BULK_ROUNDS", rounds)
    # 0 leads four that are on it alone, 1 two that are on 2 as well, and 2 none.
    placed = np.array([[0, -1]] * 4 + [[1, 2]] * 2, dtype=np.int32)
    rows, leader = even_leaders(placed, np.ones(6, bool), np.ones(3, bool))
    assert (len(rows), leader.tolist()) == (1, [2])


def test_even_leaders_are_left_alone() -> None:
    placed = np.array([[0, 1], [1, 0]], dtype=np.int32)
    assert not len(even_leaders(placed, np.ones(2, bool), np.ones(2, bool))[0])


def test_nobody_new_leads_from_a_fenced_broker() -> None:
    placed = np.array([[0, 1], [0, 1]], dtype=np.int32)
    assert not len(even_leaders(placed, np.ones(2, bool), np.array([True, False]))[0])


def test_partitions_that_may_not_change_still_count() -> None:
    placed = np.array([[0, 1], [0, 1], [0, 1], [0, 1]], dtype=np.int32)
    rows, leader = even_leaders(placed, np.array([False, False, True, True]), np.ones(2, bool))
    assert (rows.tolist(), leader.tolist()) == ([2, 3], [1, 1])


def test_lopsided_replica_sets_are_as_even_as_they_can_be() -> None:
    # Neighbours share partitions, the further up the more: no reordering brings the ends together.
    rng = Random(1)
    first = sorted(rng.randrange(59) ** 2 // 60 for _ in range(3_000))
    placed = np.array([[broker, broker + 1] for broker in first], dtype=np.int32)
    rows, leader = even_leaders(placed, np.ones(3_000, bool), np.ones(60, bool))
    led = placed[:, 0].copy()
    led[rows] = leader
    loads = np.bincount(led, minlength=60)
    follower = placed.sum(axis=1) - led
    # What one partition can pass on is to its other replica; only longer paths could still help, and they start so.
    assert (loads[led] - loads[follower] <= 1).all()


@pytest.mark.slow
def test_the_fullest_leader_is_no_fuller_than_the_densest_set_of_brokers_forces() -> None:
    rng = Random(2)
    weights = [1 / (broker + 1) for broker in range(12)]
    placed = [list(dict.fromkeys(rng.choices(range(12), weights, k=6)))[:3] for _ in range(2_000)]
    matrix = np.array([row + [-1] * (3 - len(row)) for row in placed], dtype=np.int32)
    rows, leader = even_leaders(matrix, np.ones(2_000, bool), np.ones(12, bool))
    led = matrix[:, 0].copy()
    led[rows] = leader
    most = int(np.bincount(led).max())
    # Hall: some set of brokers must lead every partition that stands on them alone.
    inside = [sum((1 << broker) for broker in row) for row in placed]
    densest = max(
        -(-sum(members & ~chosen == 0 for members in inside) // chosen.bit_count()) for chosen in range(1, 1 << 12)
    )
    assert most == densest
