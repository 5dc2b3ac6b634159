"""KRaft's striped placement where rounds of partitions are shorter than twice the racks, for all rounds side by side.

Kafka's broker lists then mistake a partition after a shuffle for one before it (`RackStripes.lists_restart_after_shuffle`),
so that a round depends on the one before: on the partition for which each list was last used, and on little else. All
rounds are computed as if nothing had been used before them; then those again whose beginning turns out to be otherwise,
until none does, which is mostly so after the second time. Test: tests/placement/kafka/test_short_rounds.py, against the loop.
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Final

import numpy as np

from rackspan.model import Bools, Int32s, Int64s
from rackspan.placement.kafka.rack_stripes import RackStripes
from rackspan.placement.kafka.stripe_arrays import Lists, initial_state, round_blocks, shuffled_rounds

PASSES_MAX: Final = 40
"""Computed again so often, rounds that still change are left to the loop: where hardly a broker is live, a list may stay
unused for many rounds, and what follows from it moves on by one round at a time."""


def place_in_short_rounds(stripes: RackStripes, num_partitions: int, num_replicas: int) -> Int32s:
    """What `num_partitions` calls of `stripes.next_partition` would return, shape (partitions, replicas).

    Requires at least one partition, more than one live broker, and stripes that have placed nothing yet. It draws the random
    numbers of those calls; `stripes` itself stays unchanged.
    """
    loop = deepcopy(stripes)
    state, length = initial_state(stripes), stripes.live_brokers
    sizes = state.lists.sizes.astype(np.int32)
    width = int(sizes.max()) + 1
    rounds = -(-num_partitions // length)
    placed = np.empty((rounds, length, num_replicas), dtype=np.int32)
    earlier = _RoundsBefore.nothing(len(state.lists.sizes))
    settled = True
    for block in round_blocks(rounds, state.lists):
        orders, contents = shuffled_rounds(state, len(placed[block]), unshuffled_first=block.start == 0)
        first = (stripes.offset + length * np.arange(block.start, block.start + len(orders))) % orders.shape[1]
        rounds_of_block = _Rounds(np.ascontiguousarray(orders.T, dtype=np.int32), first.astype(np.int32), sizes, width)
        picks = rounds_of_block.settled(earlier, length, num_replicas) if settled else None
        settled = picks is not None
        if picks is not None:
            placed[block] = picks.brokers(contents, earlier, state.lists)
            earlier = earlier.after(picks)
    if settled:
        return placed.reshape(-1, num_replicas)[:num_partitions]
    return np.array([loop.next_partition(num_replicas) for _ in range(num_partitions)], dtype=np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class _RoundsBefore:
    """What a round receives from the ones before. Both of shape (lists,).

    `used`: epoch * width + index of each list's last use, see `_Rounds`; 0 for none. `restarts`: how often it began anew.
    """

    used: Int32s
    restarts: Int64s

    @classmethod
    def nothing(cls, lists: int) -> "_RoundsBefore":
        return cls(np.zeros(lists, dtype=np.int32), np.zeros(lists, dtype=np.int64))

    def after(self, picks: "_Picks") -> "_RoundsBefore":
        return _RoundsBefore(picks.used[:, -1].copy(), self.restarts + picks.restarts.sum(axis=1))


@dataclass(slots=True, eq=False)
class _Picks:
    """The replicas of all rounds: the list of each, its number there within the partition, and the list's restarts so far.

    Shape (partitions of a round, replicas, rounds); `used` and `restarts` at the end of each round: (lists, rounds).
    """

    of_list: Int32s
    nth: Int32s
    restarted: Int32s
    used: Int32s
    restarts: Int32s

    def replace(self, rounds: Int64s, others: "_Picks") -> None:
        for name in ("of_list", "nth", "restarted", "used", "restarts"):
            getattr(self, name)[..., rounds] = getattr(others, name)

    def brokers(self, contents: Int32s, earlier: _RoundsBefore, lists: Lists) -> Int32s:
        """The broker ids, shape (rounds, partitions, replicas). `contents`: the lists' brokers in each round."""
        count = self.of_list.shape[2]
        before = np.cumsum(self.restarts, axis=1) - self.restarts + (earlier.restarts + lists.offsets)[:, None]
        begin = np.take(before.ravel(), self.of_list * count + np.arange(count))
        position = (begin + self.restarted + self.nth) % lists.sizes[self.of_list] + lists.slots[self.of_list]
        return np.asarray(contents.ravel()[position + np.arange(count) * contents.shape[1]].transpose(2, 0, 1))


@dataclass(slots=True, eq=False)
class _Rounds:
    """Rounds that are computed together. `order`: the racks in their order of use, (racks, rounds). `first`: the index of the
    rack that leads first in each round. `sizes`: of the lists. `width`: one more than the largest list, so that an epoch and an
    index within it are one number."""

    order: Int32s
    first: Int32s
    sizes: Int32s
    width: int

    def settled(self, earlier: _RoundsBefore, length: int, num_replicas: int) -> _Picks | None:
        """The picks of all rounds; None where they have not settled after PASSES_MAX."""
        # A list that was used for no partition picks as one that was used for another partition does.
        begin = np.zeros((len(earlier.used), len(self.first)), dtype=np.int32)
        begin[:, 0] = earlier.used
        picks = self._pass(begin, length, num_replicas)
        for _ in range(PASSES_MAX):
            changed = np.flatnonzero((begin[:, 1:] != picks.used[:, :-1]).any(axis=0)) + 1
            if not len(changed):
                return picks
            begin[:, changed] = picks.used[:, changed - 1]
            again = _Rounds(np.ascontiguousarray(self.order[:, changed]), self.first[changed], self.sizes, self.width)
            picks.replace(changed, again._pass(np.ascontiguousarray(begin[:, changed]), length, num_replicas))
        return None

    def _pass(self, begin: Int32s, length: int, num_replicas: int) -> _Picks:
        """All rounds from `begin` on, one partition of each after another."""
        count = len(self.first)
        of_list, nth, restarted = np.zeros((3, length, num_replicas, count), dtype=np.int32)
        picks = _Picks(of_list, nth, restarted, begin.copy(), np.zeros_like(begin))
        for epoch in range(length):
            offset = (self.first + np.int32(epoch)) % np.int32(len(self.order))
            filled = np.zeros(count, dtype=np.int32)
            leader = self._lead(picks, epoch, offset, filled)
            if num_replicas > 1:
                self._follow(picks, epoch, offset, filled, leader)
        return picks

    def _lead(self, picks: _Picks, epoch: int, offset: Int32s, filled: Int32s) -> Int32s:
        """Pick the leaders: the first live broker from rack `offset` on. Returns the index of its rack, (rounds,)."""
        leader = offset.copy()
        waiting, at = np.arange(len(offset), dtype=np.int32), offset
        while len(waiting):
            found = self._pick(picks, epoch, 2 * self._racks(at, waiting) + np.int32(1), waiting, filled)
            leader[waiting[found]] = at[found]
            waiting, at = waiting[~found], self._next(at[~found])
        return leader

    def _follow(self, picks: _Picks, epoch: int, offset: Int32s, filled: Int32s, leader: Int32s) -> None:
        """Pick the other replicas: one of each rack from `offset` on, live before fenced, skipping the leader's rack once."""
        num_replicas = picks.of_list.shape[1]
        waiting, at = np.arange(len(offset), dtype=np.int32), offset
        while len(waiting):
            skipped = leader[waiting] == at
            walking, here = waiting, at
            if skipped.any():
                leader[waiting[skipped]] = -1
                walking, here = waiting[~skipped], at[~skipped]
            racks = self._racks(here, walking)
            found = self._pick(picks, epoch, 2 * racks + np.int32(1), walking, filled)
            if not found.all():
                self._pick(picks, epoch, 2 * racks[~found], walking[~found], filled)
            incomplete = filled[waiting] < num_replicas
            waiting, at = waiting[incomplete], self._next(at[incomplete])

    def _pick(self, picks: _Picks, epoch: int, of_list: Int32s, rounds: Int32s, filled: Int32s) -> Bools:
        """`BrokerList.next_broker` of a list in each of `rounds`: whether there was one, which is then the next replica."""
        replicas, count = picks.of_list.shape[1:]
        used, restarts, begin = picks.used.reshape(-1), picks.restarts.reshape(-1), np.int32(epoch * self.width)
        cell = of_list * np.int32(count) + rounds
        index = used.take(cell) - begin
        # Below 0 it is a huge number without a sign: an earlier epoch is another one as a later one is.
        restarting = index.view(np.uint32) >= self.width
        index[restarting] = 0
        found: Bools = index < self.sizes.take(of_list)
        if not found.all():
            of_list, rounds, cell = of_list[found], rounds[found], cell[found]
            index, restarting = index[found], restarting[found]
        used[cell] = index + (begin + np.int32(1))
        restarts[cell] += restarting
        replica = ((np.int32(epoch * replicas) + filled[rounds]) * np.int32(count)) + rounds
        picks.of_list.reshape(-1)[replica] = of_list
        picks.nth.reshape(-1)[replica] = index
        picks.restarted.reshape(-1)[replica] = restarts.take(cell)
        filled[rounds] += np.int32(1)
        return found

    def _racks(self, at: Int32s, rounds: Int32s) -> Int32s:
        return self.order.reshape(-1).take(at * np.int32(len(self.first)) + rounds)

    def _next(self, at: Int32s) -> Int32s:
        return np.asarray((at + np.int32(1)) % np.int32(len(self.order)))
