"""Pseudo-random orders of 0..n-1: shuffled, and scattered so that every stretch covers the range evenly."""

import math
from typing import Final

import numpy as np

from rackspan.model.partitions import Int64s
from rackspan.placement.kafka.java_random import RandomGenerator

PRIMES: Final = tuple(n for n in range(2, 2000) if all(n % d for d in range(2, math.isqrt(n) + 1)))
"""Square roots of different primes are independent over the fractions, so two strides never repeat together."""

GOLDEN_SHARE: Final = (math.sqrt(5) - 1) / 2
"""Multiples of it, fractions taken, fill 0..1 more evenly than those of any other number."""

DRAW_BELOW: Final = 2**31 - 1


def shuffled(count: int, rng: RandomGenerator) -> Int64s:
    """0..count-1 in random order."""
    return np.argsort(rng.next_ints(np.full(count, DRAW_BELOW, dtype=np.int64)), kind="stable")


def scattered(count: int, rng: RandomGenerator) -> Int64s:
    """0..count-1 in an order in which every stretch covers the whole range about evenly.

    Method: steps of a fixed stride modulo count, coprime with it and near an irrational share of it; the stride and the
    start are drawn. A random shuffle of a million costs ten times as much and covers less evenly.
    Test: tests/placement/balanced/test_strides.py.
    """
    if count == 0:
        return np.arange(count)
    start = rng.next_int(count)
    stride = _stride(count, PRIMES[rng.next_int(len(PRIMES))])
    steps = np.arange(start, start + count * stride, stride)
    # NumPy vectorises this division and not the remainder, which takes four times as long.
    steps -= steps // count * count
    return steps


def _stride(count: int, prime: int) -> int:
    # The fraction of a square root, in whole numbers: the same on every machine.
    stride = max(1, math.isqrt(prime * count * count) % count)
    while math.gcd(stride, count) > 1:
        stride += 1
    return stride
