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
    start are drawn. k steps are one addition modulo count, so what is done is doubled until all is. A random shuffle of a
    million costs fifty times as much and covers less evenly.
    Bound: log2(count) array operations. Test: tests/placement/balanced/test_strides.py.
    """
    if count == 0:
        return np.arange(count)
    steps = np.empty(count, dtype=np.uint64)
    steps[0] = rng.next_int(count)
    stride = _stride(count, PRIMES[rng.next_int(len(PRIMES))])
    modulus, done = np.uint64(count), 1
    while done < count:
        more = min(done, count - done)
        doubled = steps[done : done + more]
        np.add(steps[:more], np.uint64(done * stride % count), out=doubled)
        # Below the modulus the difference wraps around to a huge number: the minimum is the remainder, without a division.
        np.minimum(doubled, doubled - modulus, out=doubled)
        done += more
    return steps.view(np.int64)


def _stride(count: int, prime: int) -> int:
    # The fraction of a square root, in whole numbers: the same on every machine.
    stride = max(1, math.isqrt(prime * count * count) % count)
    while math.gcd(stride, count) > 1:
        stride += 1
    return stride
