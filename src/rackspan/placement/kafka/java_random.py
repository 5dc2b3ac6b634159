"""Java's random numbers and order: java.util.Random, Collections.shuffle and HashMap, to reproduce Kafka's placements.

Source: the published contract of java.util.Random (its class comment fixes every constant), Collections.shuffle, and
HashMap's table, which decides in which order the racks of StripedReplicaPlacer draw. Test:
tests/placement/kafka/test_java_random.py, against numbers recorded from Java.
"""

from collections.abc import Iterable, MutableSequence, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Final, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from rackspan.kafka_bytes.java_hash import java_hash
from rackspan.model import Int32s, Int64s, RackId

_T = TypeVar("_T")
_UInt64s: TypeAlias = npt.NDArray[np.uint64]

_DRAW_BITS: Final = 31
_DRAWS_AT_ONCE: Final = 1 << 16
"""Few enough to fit into the processor's cache."""
_MASK_64: Final = 2**64 - 1


class RandomGenerator(Protocol):
    """The source of a placer's random numbers: one at a time, or many at once with the same values."""

    def next_int(self, bound: int) -> int:
        """A number from 0 up to, not including, `bound` (at least 1)."""

    def next_ints(self, bounds: Int64s) -> Int64s:
        """What `next_int` would give for each of `bounds` in turn. Shape (draws,) in and out."""


@dataclass(slots=True)
class _Congruential:
    """A linear congruential generator: state = state * multiplier + increment, its top 31 bits are the draw.

    `next_ints` works on arrays: states are computed by doubling, since k steps are again one multiplication and one addition.
    """

    state: int

    multiplier: ClassVar[int]
    increment: ClassVar[int]
    bits: ClassVar[int]

    def next_int(self, bound: int) -> int:
        """java.util.Random.nextInt(bound), rejections included."""
        if bound < 1:
            raise ValueError(f"bound {bound}: a draw needs a bound of at least 1")
        draw = self._next()
        if bound & (bound - 1) == 0:
            return (bound * draw) >> _DRAW_BITS
        # Java adds in 32 bits and tests for overflow: numbers of the last, incomplete run of bounds would be too frequent.
        while draw - draw % bound + bound - 1 >= 2**_DRAW_BITS:
            draw = self._next()
        return draw % bound

    def next_ints(self, bounds: Int64s) -> Int64s:
        drawn = np.empty(len(bounds), dtype=np.int64)
        done = 0
        while done < len(bounds):
            batch = slice(done, done + _DRAWS_AT_ONCE)
            done += self._until_rejected(bounds[batch], drawn[batch])
        return drawn

    def _next(self) -> int:
        self.state = (self.state * self.multiplier + self.increment) & ((1 << self.bits) - 1)
        return self.state >> (self.bits - _DRAW_BITS)

    def _until_rejected(self, bounds: Int64s, drawn: Int64s) -> int:
        """Fill `drawn` up to the first draw that Java would reject, once in millions; that one is drawn alone."""
        states = self._states(len(bounds))
        # 32 bits divide twice as fast, and hold every draw plus every bound.
        draws = (states >> np.uint64(self.bits - _DRAW_BITS)).astype(np.uint32)
        modulus = bounds.astype(np.uint32)
        remainder = draws % modulus
        power_of_two = (modulus & (modulus - np.uint32(1))) == 0
        accepted = len(bounds)
        # Only one of the largest draws can be in an incomplete run of bounds.
        if int(draws.max()) > 2**_DRAW_BITS - int(modulus.max()):
            rejected = ~power_of_two & (draws - remainder + modulus > 2**_DRAW_BITS)
            accepted = int(rejected.argmax()) if rejected.any() else len(bounds)
        drawn[:accepted] = remainder[:accepted]
        scaled = np.flatnonzero(power_of_two[:accepted])
        drawn[scaled] = (bounds[scaled] * draws[scaled]) >> _DRAW_BITS
        if accepted > 0:
            self.state = int(states[accepted - 1])
        if accepted < len(bounds):
            drawn[accepted] = self.next_int(int(bounds[accepted]))
            accepted += 1
        return accepted

    def _states(self, count: int) -> _UInt64s:
        """The next `count` states. By log2(count) doublings modulo 2^64, which every smaller modulus divides."""
        states = np.empty(count, dtype=np.uint64)
        states[0] = (self.state * self.multiplier + self.increment) & _MASK_64
        factor, term, filled = self.multiplier, self.increment, 1
        while filled < count:
            more = min(filled, count - filled)
            states[filled : filled + more] = states[:more] * np.uint64(factor) + np.uint64(term)
            factor, term = (factor * factor) & _MASK_64, (factor * term + term) & _MASK_64
            filled += more
        states &= np.uint64((1 << self.bits) - 1)
        return states


class JavaRandom(_Congruential):
    """java.util.Random with its seed."""

    __slots__ = ()
    multiplier, increment, bits = 0x5DEECE66D, 0xB, 48

    def __init__(self, seed: int) -> None:
        super().__init__((seed ^ self.multiplier) & ((1 << 48) - 1))


class Lcg64(_Congruential):
    """The generator of Kafka's own placer tests: 64 bits of state, begun at the seed itself."""

    __slots__ = ()
    multiplier, increment, bits = 2862933555777941757, 3037000493, 64

    def __init__(self, seed: int) -> None:
        super().__init__(seed & _MASK_64)


def java_rng(rng: Random | RandomGenerator) -> RandomGenerator:
    """A Java rng seeded from Python's; one that is a RandomGenerator already is returned as it is."""
    return JavaRandom(rng.getrandbits(64)) if isinstance(rng, Random) else rng


def shuffle(items: MutableSequence[_T], rng: RandomGenerator) -> None:
    """Collections.shuffle."""
    for bound in range(len(items), 1, -1):
        other = rng.next_int(bound)
        items[bound - 1], items[other] = items[other], items[bound - 1]


def shuffle_permutations(sizes: Sequence[int], draws: Int64s) -> Int32s:
    """The index from which Collections.shuffle takes each item, for many shuffles of several lists at once.

    The lists stand one after the other; `sizes` are theirs. A row of `draws` holds the draws of one shuffle of all of them:
    for a list of n items n - 1 draws, with bounds n down to 2. Row s of the result, (shuffles, items), holds indices into
    all items: `items[row]` are the shuffled lists. Method: every shuffle's j-th swap in every list in one array
    operation. Bound: as many operations as the longest list has items. Test: tests/placement/kafka/test_java_random.py.
    """
    shuffles, items = len(draws), sum(sizes)
    begins = np.cumsum(sizes) - sizes
    of_list = np.repeat(np.arange(len(sizes)), np.maximum(np.array(sizes, dtype=np.int64) - 1, 0))
    nth = np.concatenate([np.arange(size - 1) for size in sizes])
    # A swap touches one item of all shuffles, so items are stored as rows.
    taken_from = np.repeat(np.arange(items, dtype=np.int32)[:, None], shuffles, axis=1)
    cells = taken_from.reshape(-1)
    by_step = np.argsort(nth, kind="stable")
    last = (begins + sizes - 1)[of_list] - nth
    # 32 bits halve what is transposed: cells are at most as many as draws, which fit into memory.
    other = np.ascontiguousarray(draws.astype(np.int32).T)[by_step]
    other += begins[of_list][by_step, None].astype(np.int32)
    other *= shuffles
    other += np.arange(shuffles, dtype=np.int32)
    ends = np.cumsum(np.bincount(nth)).tolist()
    for begin, end in zip([0, *ends], ends, strict=False):
        rows, swapped = last[by_step[begin:end]], other[begin:end]
        kept = taken_from[rows]
        # Every index is valid; without "clip", NumPy takes twice as long to check that.
        taken_from[rows] = cells.take(swapped, mode="clip")
        cells[swapped] = kept
    return np.ascontiguousarray(taken_from.T)


def utf16(text: str | None) -> bytes:
    """The sort key of Java's String order: UTF-16 code units, which is not the order of code points. None comes first."""
    return b"" if text is None else b"\x01" + text.encode("utf-16-be", "surrogatepass")


def hash_map_order(keys: Iterable[RackId | None]) -> list[RackId | None]:
    """The order in which java.util.HashMap<Optional<String>, ?> yields keys put into it in this order.

    It is the order of HashMap's table. It begins with 16 buckets, doubles beyond three quarters full, and also where a
    bucket would reach nine keys of the first 64; a bucket keeps the order of arrival. Limit: nine names whose hashes
    agree in a table of 64 or more would become a tree in Java, whose order is not kept here.
    """
    spread = {key: _spread(java_hash(key or "") & 0xFFFFFFFF) for key in keys}
    buckets = 16
    arrived: list[int] = []
    for value in spread.values():
        same_bucket = sum((other ^ value) & (buckets - 1) == 0 for other in arrived) if buckets < 64 else 0
        arrived.append(value)
        if same_bucket >= 8:
            buckets *= 2
        if len(arrived) > buckets * 3 // 4:
            buckets *= 2
    return sorted(spread, key=lambda key: spread[key] & (buckets - 1))


def _spread(value: int) -> int:
    """HashMap mixes the upper half of an unsigned hash into the lower half, which chooses the bucket."""
    return value ^ (value >> 16)
