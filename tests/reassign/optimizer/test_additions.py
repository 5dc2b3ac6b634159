from random import Random

import numpy as np
import pytest

from rackspan.reassign.optimizer.additions import distribute_additions


@pytest.mark.parametrize("seed", range(100))
def test_nobody_meets_a_broker_twice_and_quotas_are_kept_where_they_can(seed: int) -> None:
    rng = Random(seed)
    brokers, racks = rng.randint(2, 8), rng.randint(1, 2)
    rack_of = np.array([broker % racks for broker in range(brokers)], dtype=np.int32)
    held = np.full((20, 3), -1, dtype=np.int32)
    additions: list[tuple[int, int]] = []
    for row in range(20):
        selected = rng.sample(range(brokers), rng.randint(0, 2 if brokers > 2 else 1))
        held[row, : len(selected)] = selected
        for rack in range(racks):
            free = [broker for broker in range(brokers) if rack_of[broker] == rack and broker not in selected]
            additions += [(row, rack)] * rng.randint(0, min(2, len(free)))
    rng.shuffle(additions)
    quotas = np.zeros(brokers, dtype=np.int64)
    for _, rack in additions:
        quotas[rng.choice([broker for broker in range(brokers) if rack_of[broker] == rack])] += 1
    rows, into = np.array(additions, dtype=np.int64).reshape(-1, 2).T
    dealt = distribute_additions(rows, into, quotas, rack_of, held, np.ones(brokers, dtype=np.bool_))
    assert (rack_of[dealt.broker] == into).all()
    for one in range(20):
        selected = [*held[one][held[one] >= 0].tolist(), *dealt.broker[rows == one].tolist()]
        assert len(set(selected)) == len(selected)


def test_neighbours_go_to_different_brokers_and_quotas_are_exact_without_conflicts() -> None:
    row = np.arange(12)
    dealt = distribute_additions(
        row,
        np.zeros(12, dtype=np.int64),
        np.array([4, 4, 4]),
        np.zeros(3, dtype=np.int32),
        np.full((12, 1), -1, dtype=np.int32),
        np.ones(3, dtype=np.bool_),
    )
    assert np.bincount(dealt.broker).tolist() == [4, 4, 4]
    assert (dealt.broker[1:] != dealt.broker[:-1]).all()


def test_an_optional_arrival_that_fits_nowhere_is_given_up() -> None:
    held = np.array([[0, 1]], dtype=np.int32)
    one = np.zeros(1, dtype=np.int64)
    dealt = distribute_additions(
        one, one, np.array([1, 0]), np.zeros(2, dtype=np.int32), held, np.ones(2, dtype=np.bool_), optional=True
    )
    assert dealt.broker.tolist() == [-1]


def test_a_swap_that_solves_a_conflict_keeps_the_quotas() -> None:
    """Broker 0 is on the first two partitions, so that the first swaps with the third and not with the second."""
    dealt = distribute_additions(
        np.arange(3),
        np.zeros(3, dtype=np.int64),
        np.array([1, 1, 1]),
        np.zeros(3, dtype=np.int32),
        np.array([[0], [0], [-1]], dtype=np.int32),
        np.ones(3, dtype=np.bool_),
    )
    assert dealt.broker.tolist() == [2, 1, 0]
