"""The followers of KIP-36: a search around the rack-alternated list, for many partitions at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rackspan.model.partitions import Int32s, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class FollowerSearch:
    """The list as tables. Indices beyond its end start again at 0, up to twice around.

    `racks` (brokers,): the rack code at each index. `by_rack[c]` and `by_index[c]` (2 * brokers,): from each index on,
    the nearest index of the c-th distinct rack, and the c-th index.
    """

    racks: Int32s
    rack_count: int
    by_rack: Int64s
    by_index: Int64s

    def indices(self, leaders: Int64s, shifts: Int64s, replicas: int) -> Iterator[Int64s]:
        """The list indices of each partition's replicas, one (partitions,) array a replica, leaders first.

        A candidate is skipped while its rack is used and another rack is not; once every rack has a replica, it is skipped
        while the broker itself is used. Each search begins after the previous replica, the first one `shifts` further on.
        """
        yield leaders
        brokers = len(self.racks)
        if replicas == 1:
            return
        # The leader's own index is not counted, so a shift of brokers - 1 is once around.
        begin = leaders + 1 + shifts % (brokers - 1)
        used = [leaders]
        for _ in range(replicas - 1):
            follower = self._next_unused(begin, used)
            used.append(follower)
            begin = follower + 1
            yield follower

    def _next_unused(self, begin: Int64s, used: Sequence[Int64s]) -> Int64s:
        # Each replica so far is in a rack of its own, as long as there are unused racks.
        if len(used) < self.rack_count:
            return _nearest(begin, self.by_rack, [self.racks[index] for index in used], self.racks)
        return _nearest(begin, self.by_index, used, np.arange(len(self.racks)))


def follower_search(racks: Int32s, rack_count: int, replicas: int) -> FollowerSearch:
    """The tables for a list of brokers whose rack codes are `racks`."""
    brokers = len(racks)
    around = np.arange(2 * brokers)
    return FollowerSearch(
        racks=racks,
        rack_count=rack_count,
        by_rack=_nearest_of_each_rack(racks.tolist(), min(rack_count, replicas)),
        by_index=(around + np.arange(replicas)[:, None]) % brokers,
    )


def _nearest(
    begin: Int64s, candidates: Int64s, used: Sequence[npt.NDArray[np.integer]], labels: npt.NDArray[np.integer]
) -> Int64s:
    """The first of the candidates of each `begin` whose label is not in `used`.

    Candidates of one index differ in label, so among one more than are used there is an unused one: few steps, whatever
    the list. For most partitions the first candidate is unused.
    """
    nearest = candidates[0][begin]
    waiting = np.flatnonzero(_is_any(labels[nearest], used))
    for candidate in candidates[1:]:
        if not len(waiting):
            break
        nearest[waiting] = candidate[begin[waiting]]
        waiting = waiting[_is_any(labels[nearest[waiting]], [label[waiting] for label in used])]
    return np.asarray(nearest)


def _is_any(label: npt.NDArray[np.integer], used: Sequence[npt.NDArray[np.integer]]) -> npt.NDArray[np.bool_]:
    hit = label == used[0]
    for other in used[1:]:
        hit |= label == other
    return np.asarray(hit)


def _nearest_of_each_rack(racks: list[int], rack_limit: int) -> Int64s:
    """Shape (rack_limit, 2 * brokers). Backwards: each index goes before the nearest ones of the next index."""
    brokers = len(racks)
    near: list[int] = []
    rows = []
    # Three times around: the first one fills `near`.
    for step in reversed(range(3 * brokers)):
        index = step % brokers
        near = [index, *(other for other in near if racks[other] != racks[index])][:rack_limit]
        rows.append(near)
    return np.array(rows[: brokers - 1 : -1], dtype=np.int64).T.copy()
