"""Where KIP-36's followers are found: a walk around the rack-alternated list, for many partitions at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rackspan.model.partitions import Int32s, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class FollowerSearch:
    """The list as tables. A *place* is an index into it; places beyond its end begin again, up to twice around.

    `racks` (brokers,): the rack code of each place. `by_rack[c]` and `by_place[c]` (2 * brokers,): from each place on,
    the nearest place of the c-th rack met, and the c-th place.
    """

    racks: Int32s
    rack_count: int
    by_rack: Int64s
    by_place: Int64s

    def places(self, leaders: Int64s, shifts: Int64s, replicas: int) -> Iterator[Int64s]:
        """The places of each partition's replicas, one (partitions,) array a replica, leaders first.

        A candidate is passed over while its rack is taken and some rack is not; once every rack has a replica, while the
        broker itself is. The search for a follower begins after the one before it, the first one `shifts` places on.
        """
        yield leaders
        brokers = len(self.racks)
        if replicas == 1:
            return
        # The leader's own place is not counted, so a shift of brokers - 1 is once around.
        begin = leaders + 1 + shifts % (brokers - 1)
        taken = [leaders]
        for _ in range(replicas - 1):
            found = self._next_free(begin, taken)
            taken.append(found)
            begin = found + 1
            yield found

    def _next_free(self, begin: Int64s, taken: Sequence[Int64s]) -> Int64s:
        # Each replica so far took a rack of its own until there were no more.
        if len(taken) < self.rack_count:
            return _nearest(begin, self.by_rack, [self.racks[place] for place in taken], self.racks)
        return _nearest(begin, self.by_place, taken, np.arange(len(self.racks)))


def follower_search(racks: Int32s, rack_count: int, replicas: int) -> FollowerSearch:
    brokers = len(racks)
    around = np.arange(2 * brokers)
    return FollowerSearch(
        racks=racks,
        rack_count=rack_count,
        by_rack=_nearest_of_each_rack(racks.tolist(), min(rack_count, replicas)),
        by_place=(around + np.arange(replicas)[:, None]) % brokers,
    )


def _nearest(
    begin: Int64s, candidates: Int64s, taken: Sequence[npt.NDArray[np.integer]], labels: npt.NDArray[np.integer]
) -> Int64s:
    """The first of the candidates of each `begin` whose label is not taken.

    Candidates of one place differ in label, so one more than are taken must hold a free one: few looks, whatever the
    list. Most are free at the first.
    """
    found = candidates[0][begin]
    waiting = np.flatnonzero(_is_any(labels[found], taken))
    for candidate in candidates[1:]:
        if not len(waiting):
            break
        found[waiting] = candidate[begin[waiting]]
        waiting = waiting[_is_any(labels[found[waiting]], [label[waiting] for label in taken])]
    return np.asarray(found)


def _is_any(label: npt.NDArray[np.integer], taken: Sequence[npt.NDArray[np.integer]]) -> npt.NDArray[np.bool_]:
    hit = label == taken[0]
    for other in taken[1:]:
        hit |= label == other
    return np.asarray(hit)


def _nearest_of_each_rack(racks: list[int], racks_wanted: int) -> Int64s:
    """Shape (racks wanted, 2 * brokers). Method: backwards, each place puts itself before what the next one knew."""
    brokers = len(racks)
    near: list[int] = []
    rows = []
    # Three times around: after the first, what lies ahead is known.
    for step in reversed(range(3 * brokers)):
        place = step % brokers
        near = [place, *(other for other in near if racks[other] != racks[place])][:racks_wanted]
        rows.append(near)
    return np.array(rows[: brokers - 1 : -1], dtype=np.int64).T.copy()
