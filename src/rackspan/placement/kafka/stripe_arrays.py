"""KRaft's striped placement for many partitions at once.

Between two shuffles the order of racks is fixed, so the placement is periodic: two partitions whose distance is the number
of racks use the same lists. The broker that a list returns depends on its offset and on how often it was used before, and
both are sums. The axes are *round* (the partitions between two shuffles), *cycle* (as many partitions as racks), *step* (one
of these) and *replica*. Test: tests/placement/kafka/test_stripe_arrays.py, against rack_stripes.py.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from rackspan.model.partitions import Int32s, Int64s
from rackspan.placement.kafka.java_random import RandomGenerator, shuffle_permutations
from rackspan.placement.kafka.rack_stripes import BrokerList, RackStripes

ELEMENTS_AT_ONCE: Final = 1 << 21
"""Rounds are computed in blocks of about this many array elements: tens of megabytes."""
CELLS_AT_ONCE: Final = 1 << 16
"""Replicas computed together: few enough to fit into the processor's cache."""
MANY_SHUFFLES: Final = 4
"""With more shuffles than so many for each item, shuffling in parts is faster than one after another."""
TURNS_SUBTRACTED: Final = 3
"""A division costs as much as some three of the steps that subtract a power of two times the modulus."""

UInt32s: TypeAlias = npt.NDArray[np.uint32]


def place_in_stripes(stripes: RackStripes, num_partitions: int, num_replicas: int) -> Int32s:
    """What `num_partitions` calls of `stripes.next_partition` would return, shape (partitions, replicas).

    Requires `stripes.lists_restart_after_shuffle`, at least one partition, and stripes that have placed nothing yet. It
    draws the random numbers of those calls; `stripes` itself stays unchanged.
    """
    length = num_partitions if stripes.live_brokers == 1 else min(stripes.live_brokers, num_partitions)
    rounds = -(-num_partitions // length)
    placed = np.empty((rounds, length, num_replicas), dtype=np.int32)
    state = initial_state(stripes)
    for block in round_blocks(rounds, state.lists):
        orders, contents = shuffled_rounds(state, len(placed[block]), unshuffled_first=block.start == 0)
        first = stripes.offset + length * np.arange(block.start, block.start + len(orders))
        picks = _picks(orders, first, state.lists, num_replicas)
        _fill(placed[block], contents, _positions(state, picks, length), state.lists)
    return placed.reshape(-1, num_replicas)[:num_partitions]


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """All broker lists of all racks, in the order in which they draw: list 2r is rack r's fenced, 2r + 1 its live one.

    `sizes`, `offsets` (where each begins) and `slots` (where its brokers are in a row of contents): shape (lists,).
    """

    sizes: Int64s
    offsets: Int64s
    slots: Int64s

    @property
    def live(self) -> Int64s:
        """Live brokers of each rack."""
        return self.sizes[1::2]

    @property
    def brokers(self) -> Int64s:
        """All brokers of each rack."""
        return self.sizes[0::2] + self.sizes[1::2]


@dataclass(slots=True, eq=False)
class _State:
    """The state between two blocks of rounds: the order of racks, every list's brokers, and how often each list was used.

    `early` marks lists first used in epoch 0: they are in this epoch from the start, so they do not advance that once.
    """

    lists: Lists
    rng: RandomGenerator
    order: Int64s
    content: Int32s
    times_used: Int64s
    early: Int64s


@dataclass(frozen=True, slots=True, eq=False)
class _Picks:
    """The list that each replica comes from, and its number there within the partition. Shape (rounds, steps, replicas)."""

    of_list: Int64s
    nth: Int64s


@dataclass(frozen=True, slots=True, eq=False)
class _Positions:
    """The index of each replica in its list in the first cycle, and the step to the next cycle. Shapes as in `_Picks`."""

    of_list: Int64s
    first: Int64s
    per_cycle: Int64s


def initial_state(stripes: RackStripes) -> _State:
    lists: list[BrokerList] = [part for rack in stripes.drawing for part in (rack.fenced, rack.unfenced)]
    sizes = np.array([len(part.brokers) for part in lists], dtype=np.int64)
    drawing = {id(rack): index for index, rack in enumerate(stripes.drawing)}
    return _State(
        lists=Lists(sizes, np.array([part.offset for part in lists], dtype=np.int64), np.cumsum(sizes) - sizes),
        rng=stripes.rng,
        order=np.array([drawing[id(rack)] for rack in stripes.striped], dtype=np.int64),
        content=np.array([broker for part in lists for broker in part.brokers], dtype=np.int32),
        times_used=np.zeros(len(lists), dtype=np.int64),
        early=np.zeros(len(lists), dtype=np.int64),
    )


def round_blocks(rounds: int, lists: Lists) -> Iterator[slice]:
    racks = len(lists.live)
    at_once = max(1, ELEMENTS_AT_ONCE // max(int(lists.sizes.sum()), 2 * racks * racks))
    return (slice(begin, begin + at_once) for begin in range(0, rounds, at_once))


def shuffled_rounds(state: _State, rounds: int, *, unshuffled_first: bool) -> tuple[Int64s, Int32s]:
    """The order of racks (rounds, racks) and the lists' brokers (rounds, brokers). Draws as Kafka does: racks first."""
    racks = len(state.order)
    current: Int32s = np.concatenate([state.order.astype(np.int32), state.content])
    shuffled = np.empty((rounds, len(current)), dtype=current.dtype)
    if unshuffled_first:
        shuffled[0] = current
    rest = shuffled[int(unshuffled_first) :]
    permutations = _permutations(state, len(rest))
    if len(rest) > MANY_SHUFFLES * len(current):
        _apply_in_parts(current, permutations, rest)
    else:
        last = current
        for row, permutation in enumerate(permutations):
            # A shuffle begins with what the last one left.
            last = last.take(permutation, out=rest[row], mode="clip")
    current = shuffled[-1]
    state.order, state.content = current[:racks].astype(np.int64), current[racks:]
    return shuffled[:, :racks].astype(np.int64), np.ascontiguousarray(shuffled[:, racks:])


def _apply_in_parts(items: Int32s, permutations: Int32s, shuffled: Int32s) -> None:
    """Fill row s of `shuffled` with the items after shuffles 0 to s: parts of as many shuffles as there are parts, side by side.

    A row of a part is first the shuffle that its shuffles up to there amount to; the items of a part's beginning come last.
    """
    shuffles, size = permutations.shape
    of_part = math.isqrt(shuffles)
    parts = -(-shuffles // of_part)
    together = np.zeros((parts * of_part, size), dtype=np.int32)
    together[:shuffles] = permutations
    in_parts = together.reshape(parts, of_part, size)
    begins = np.arange(parts, dtype=np.int32)[:, None] * np.int32(size)
    for step in range(1, of_part):
        in_parts[:, step] = in_parts[:, step - 1].ravel().take(in_parts[:, step] + begins, mode="clip")
    at_begin = np.empty((parts, size), dtype=np.int32)
    for part in range(parts):
        at_begin[part] = items
        items = items.take(in_parts[part, -1], mode="clip")
    in_parts += begins[:, :, None]
    shuffled[:] = at_begin.ravel().take(together[:shuffles], mode="clip")


def _permutations(state: _State, shuffles: int) -> Int32s:
    """The shuffles of the racks' order and of all lists, shape (shuffles, racks + brokers)."""
    sizes = [len(state.order), *state.lists.sizes.tolist()]
    bounds = np.concatenate([np.arange(size, 1, -1) for size in sizes])
    draws = state.rng.next_ints(np.tile(bounds, shuffles)).reshape(shuffles, len(bounds))
    return shuffle_permutations(sizes, draws)


def _picks(orders: Int64s, first: Int64s, lists: Lists, num_replicas: int) -> _Picks:
    """The racks of every step, in the order of `RackStripes.next_partition`, for all rounds and steps together."""
    rounds, racks = orders.shape
    # Row (round, step) is the order of racks, starting at the rack that leads next.
    rotated = (first[:, None, None] + np.arange(racks)[:, None] + np.arange(racks)) % racks
    walks = np.take_along_axis(orders[:, None, :], rotated, axis=2).reshape(-1, racks)
    rack, nth = _walked(walks, lists, num_replicas)
    fenced = nth >= lists.live[rack]
    shape = (rounds, racks, num_replicas)
    return _Picks((2 * rack + ~fenced).reshape(shape), (nth - fenced * lists.live[rack]).reshape(shape))


def _walked(walks: Int64s, lists: Lists, num_replicas: int) -> tuple[Int64s, Int64s]:
    """For each walk the racks of its replicas, and the number of each replica within its rack."""
    rows, racks = np.arange(len(walks)), walks.shape[1]
    leader_step = (lists.live[walks] > 0).argmax(axis=1)
    rack, nth = np.zeros((2, len(walks), num_replicas), dtype=np.int64)
    rack[:, 0] = walks[rows, leader_step]
    used = np.zeros(walks.shape, dtype=np.int64)
    used[rows, rack[:, 0]] = 1
    step = np.zeros(len(walks), dtype=np.int64)
    for replica in range(1, num_replicas):
        waiting = rows
        while len(waiting):
            at = walks[waiting, step[waiting]]
            skipped = step[waiting] == leader_step[waiting]
            leader_step[waiting[skipped]] = -1
            step[waiting] = (step[waiting] + 1) % racks
            placed = ~skipped & (used[waiting, at] < lists.brokers[at])
            row, at = waiting[placed], at[placed]
            rack[row, replica], nth[row, replica] = at, used[row, at]
            used[row, at] += 1
            waiting = waiting[~placed]
    return rack, nth


def _positions(state: _State, picks: _Picks, length: int) -> _Positions:
    """The positions of all picks. A list advances by one in every partition that uses it, so uses are counted."""
    rounds, steps, _ = picks.of_list.shape
    uses = np.zeros((rounds, steps, len(state.times_used)), dtype=np.int64)
    np.put_along_axis(uses, picks.of_list, 1, axis=2)
    so_far = np.cumsum(uses, axis=1)
    per_cycle = so_far[:, -1]
    in_round = length // steps * per_cycle + (so_far[:, length % steps - 1] if length % steps else 0)
    until = state.times_used + np.cumsum(in_round, axis=0)
    before = until - in_round
    early = np.maximum(state.early, np.maximum.accumulate((before == 0) * uses[:, 0], axis=0))
    state.times_used, state.early = until[-1], early[-1]
    begin = (state.lists.offsets + before - early)[:, None] + so_far
    return _Positions(
        of_list=picks.of_list,
        first=np.take_along_axis(begin, picks.of_list, axis=2) + picks.nth,
        per_cycle=np.take_along_axis(per_cycle[:, None], picks.of_list, axis=2),
    )


def _fill(placed: Int32s, contents: Int32s, positions: _Positions, lists: Lists) -> None:
    """Fill `placed` (rounds, partitions of a round, replicas), a few rounds or a part of one at a time."""
    rounds, length, replicas = placed.shape
    steps = positions.first.shape[1]
    cycles = -(-length // steps)
    sizes = lists.sizes[positions.of_list]
    slots = lists.slots[positions.of_list] + np.arange(rounds)[:, None, None] * contents.shape[1]
    # 32 bits are twice as fast; positions stay below the number of partitions plus a list's length.
    first, per_cycle, size, slot = (
        part[..., None].astype(np.uint32) for part in (positions.first % sizes, positions.per_cycle, sizes, slots)
    )
    turns = int(((first + (cycles - 1) * per_cycle) // size).max())
    flat = contents.ravel()
    for rounds_part in _pieces(rounds, cycles * steps * replicas):
        for part in _pieces(cycles, steps * replicas):
            # Cycles last: numbers that are alike stand side by side, so that NumPy computes several at once.
            at = np.arange(part.start, min(part.stop, cycles), dtype=np.uint32) * per_cycle[rounds_part]
            at += first[rounds_part]
            _wrap(at, size[rounds_part], turns)
            at += slot[rounds_part]
            # Every index is valid; without "clip", NumPy takes twice as long to check that.
            brokers = flat.take(at, mode="clip").transpose(0, 3, 1, 2)
            batch = placed[rounds_part, part.start * steps : part.stop * steps]
            whole, rest = divmod(batch.shape[1], steps)
            batch[:, : whole * steps].reshape(len(batch), whole, steps, replicas)[:] = brokers[:, :whole]
            if rest:
                batch[:, whole * steps :] = brokers[:, whole, :rest]


def _wrap(values: UInt32s, modulus: UInt32s, turns: int) -> None:
    """`values` modulo `modulus`, in place. `turns`: the largest quotient; for small ones a few subtractions are faster."""
    if turns >= 2**TURNS_SUBTRACTED:
        values %= modulus
        return
    for power in reversed(range(turns.bit_length())):
        # Below the modulus the difference wraps around to a huge number, so that the minimum keeps the value.
        np.minimum(values, values - (modulus << np.uint32(power)), out=values)


def _pieces(count: int, cells_each: int) -> Iterator[slice]:
    at_once = max(1, CELLS_AT_ONCE // cells_each)
    return (slice(begin, begin + at_once) for begin in range(0, count, at_once))
