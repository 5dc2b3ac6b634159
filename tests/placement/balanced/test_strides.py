"""Scattered orders are permutations, the same for the same rng, and even in every stretch."""

import numpy as np
import pytest

from rackspan.placement.balanced.strides import PRIMES, scattered, shuffled
from rackspan.placement.kafka.java_random import JavaRandom


@pytest.mark.parametrize("count", [*range(40), 1000, 65_537])
def test_every_place_is_taken_once(count: int) -> None:
    for seed in range(5):
        assert np.array_equal(np.sort(scattered(count, JavaRandom(seed))), np.arange(count))


def test_shuffled_is_a_permutation_that_the_rng_decide() -> None:
    orders = {tuple(shuffled(5, JavaRandom(seed)).tolist()) for seed in range(50)}
    assert len(orders) > 20
    assert all(sorted(order) == [0, 1, 2, 3, 4] for order in orders)


def test_a_stretch_covers_the_whole_range() -> None:
    """A tenth of the places, wherever it begins, finds each tenth of the range; shuffles leave such gaps much sooner."""
    for seed in range(20):
        order = scattered(10_000, JavaRandom(seed))
        for begin in range(0, 10_000, 1000):
            tenths = np.bincount(order[begin : begin + 1000] // 1000, minlength=10)
            assert tenths.min() >= 50


def test_primes_are_primes() -> None:
    assert PRIMES[:6] == (2, 3, 5, 7, 11, 13)
    assert len(PRIMES) == 303
