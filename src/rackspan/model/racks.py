"""Rack counts: the rack of each broker, the racks that a replica set spans, and the min.insync.replicas that forces more.

Audit, placement, reassignments and the Spark tables call these functions. `acks.min_insync_racks.RackBits` counts the racks of one
in-sync set as bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

import numpy as np

from rackspan.errors import UsageError
from rackspan.model.broker import Broker
from rackspan.model.ids import UNNAMED_RACK, RackId
from rackspan.model.partitions import Int32s, Int64s, sorted_columns

NO_RACK: Final = -1
"""Rack code of padding, of brokers the snapshot does not list, and of rackless brokers under `ignore`."""

DENSE_IDS_MAX: Final = 1_000_000
"""Up to this broker id a lookup table (4 MB) beats a binary search by ten times."""


class UnrackedPolicy(StrEnum):
    """What a broker without `broker.rack` counts as (`--unracked`)."""

    SHARED = "shared"
    """All such brokers are in one unnamed rack, as in min.insync.racks. The default."""
    OWN = "own"
    """Each is a rack of its own, as in Cruise Control."""
    ERROR = "error"
    """A cluster with such a broker is refused."""
    IGNORE = "ignore"
    """Such brokers count in no rack."""


@dataclass(frozen=True, eq=False)
class RackMap:
    """Which rack each broker counts in.

    `broker_ids` (B,) ascending; `rack_codes` (B,) index into `racks`, or NO_RACK; `racks` sorted by name, so that equal
    clusters have equal codes.
    """

    broker_ids: Int32s
    rack_codes: Int32s
    racks: tuple[RackId, ...]

    @cached_property
    def sizes(self) -> Int64s:
        """Brokers in each rack, at least one, shape (racks,)."""
        return np.bincount(self.rack_codes[self.rack_codes != NO_RACK])

    @cached_property
    def _index_by_id(self) -> Int32s | None:
        largest = int(self.broker_ids.max(initial=-1))
        if largest > DENSE_IDS_MAX:
            return None
        # The slot after the largest id is for every id beyond it, and for index -1 (padding).
        table = np.full(largest + 2, -1, dtype=np.int32)
        table[self.broker_ids] = np.arange(len(self.broker_ids), dtype=np.int32)
        return table

    def broker_index(self, broker_ids: Int32s) -> Int32s:
        """Position of each id in `broker_ids`, −1 for padding and for brokers that are not listed. Any shape."""
        table = self._index_by_id
        if table is not None:
            return table[np.where((broker_ids < 0) | (broker_ids >= len(table)), len(table) - 1, broker_ids)]
        position = np.minimum(np.searchsorted(self.broker_ids, broker_ids), len(self.broker_ids) - 1)
        return np.where(self.broker_ids[position] == broker_ids, position, -1).astype(np.int32)

    def codes(self, broker_ids: Int32s) -> Int32s:
        """Rack code of each broker id, NO_RACK for padding, unlisted and uncounted brokers. Any shape."""
        return self.codes_at(self.broker_index(broker_ids))

    def codes_at(self, broker_index: Int32s) -> Int32s:
        """Rack codes by the positions that `broker_index` returned."""
        return self._codes_and_none[broker_index]

    def counts_at(self, broker_index: Int32s) -> Int64s:
        """How many of each row's brokers, given by the positions that `broker_index` returned, are in each rack. Shape (rows, racks)."""
        codes, racks = self.codes_at(broker_index), len(self.racks)
        row, column = np.nonzero(codes != NO_RACK)
        return np.bincount(row * racks + codes[row, column], minlength=len(codes) * racks).reshape(len(codes), racks)

    @cached_property
    def _codes_and_none(self) -> Int32s:
        # One NO_RACK at the end, at index −1.
        return np.append(self.rack_codes, np.int32(NO_RACK))

    @cached_property
    def rack_of(self) -> dict[int, RackId]:
        """The rack of each broker that counts in one, for messages about single brokers."""
        by_id = zip(self.broker_ids.tolist(), self.rack_codes.tolist(), strict=True)
        return {broker: self.racks[code] for broker, code in by_id if code != NO_RACK}

    def names(self, codes: Sequence[int] | Int32s | Int64s) -> tuple[RackId, ...]:
        """The distinct racks among `codes`, by name."""
        return tuple(self.racks[code] for code in sorted({int(code) for code in codes} - {NO_RACK}))


def rack_map(brokers: Sequence[Broker], unracked: UnrackedPolicy = UnrackedPolicy.SHARED) -> RackMap:
    """The rack in which each broker counts; `unracked` decides about those without `broker.rack`.

    Errors: UsageError under UnrackedPolicy.ERROR, naming the brokers.
    """
    ordered = sorted(brokers, key=lambda broker: broker.id)
    rackless = [broker.id for broker in ordered if broker.rack is None]
    if rackless and unracked is UnrackedPolicy.ERROR:
        raise UsageError(
            f"brokers without a rack: {', '.join(map(str, rackless))}; set broker.rack on them, or choose --unracked shared, own or ignore"
        )
    counted_in = [_counted_in(broker, unracked) for broker in ordered]
    racks = tuple(sorted({rack for rack in counted_in if rack is not None}))
    code_of: dict[RackId | None, int] = {rack: code for code, rack in enumerate(racks)}
    code_of[None] = NO_RACK
    return RackMap(
        broker_ids=np.array([broker.id for broker in ordered], dtype=np.int32),
        rack_codes=np.array([code_of[rack] for rack in counted_in], dtype=np.int32),
        racks=racks,
    )


def _counted_in(broker: Broker, unracked: UnrackedPolicy) -> RackId | None:
    if broker.rack is not None:
        return broker.rack
    match unracked:
        case UnrackedPolicy.OWN:
            return RackId(f"(broker {broker.id})")
        case UnrackedPolicy.IGNORE:
            return None
        case _:
            return UNNAMED_RACK


def counts_descending(rack_codes: Int32s) -> Int64s:
    """Replicas in each of a partition's racks, largest first: c1 ≥ c2 ≥ …, then zeros.

    `rack_codes` is (P, width) with NO_RACK wherever nothing counts; so is the result. Cost: one sort of each row,
    whatever the number of racks in the cluster.
    """
    counts = np.zeros(rack_codes.T.shape, dtype=np.int32)
    before: Int32s | None = None
    for place, column in enumerate(sorted_columns(rack_codes.T.copy())):
        # Along each row runs of equal codes are counted, and the last of a run has its length.
        counts[place] = column != NO_RACK
        if before is not None:
            same = (column == before) & (column != NO_RACK)
            counts[place] += counts[place - 1] * same
            counts[place - 1] *= ~same
        before = column
    return np.array(sorted_columns(counts)[::-1], dtype=np.int64).reshape(counts.shape).T


def distinct_racks(rack_codes: Int32s) -> Int64s:
    """The number of distinct racks in each row. Shape (P,)."""
    found = np.zeros(len(rack_codes), dtype=np.int64)
    before: Int32s | None = None
    for column in sorted_columns(rack_codes.T.copy()):
        first = column != NO_RACK
        found += first if before is None else first & (column != before)
        before = column
    return found


def left_without_fullest(counts: Int64s) -> Int64s:
    """The replicas of each row that are certain to be left when its fullest rack is lost. Shape (P,).

    `counts` is what `counts_descending` returns: the fullest comes first. A replica that counts in no rack may be in the one
    that is lost, so it is not among those left. Whatever judges the loss of a rack counts by this rule.
    """
    left = np.zeros(len(counts), dtype=np.int64)
    for column in counts.T[1:]:
        left += column
    return left


def forcing_value(counts: Int64s, min_insync_racks: Int64s | int) -> Int64s:
    """The least min.insync.replicas that leaves no in-sync set on fewer than k racks: c1 + … + c(k−1) + 1.

    The k − 1 fullest racks can together hold that many replicas less one; one more must stand elsewhere. `counts` is
    what `counts_descending` returns, k is `min_insync_racks`, one for all or (P,). Where the result exceeds the
    replication factor no value forces k racks.
    """
    k = np.broadcast_to(np.asarray(min_insync_racks, dtype=np.int64), counts.shape[:1])
    among_fullest = np.arange(counts.shape[1]) < (k - 1)[:, None]
    return np.asarray(np.where(among_fullest, counts, 0).sum(axis=1) + 1)


def even_spread(rack_sizes: Sequence[int] | Int64s, replication_factor: int) -> tuple[int, ...]:
    """The most even way to hold `replication_factor` replicas, largest first.

    Each rack takes at most as many as it has brokers; apart from full racks, counts differ by at most one. Among all
    assignments this has the least sum of squares, so its descending counts are unique: a replica set is spread as well
    as it can be exactly if its own descending counts are these.
    """
    counts = [0] * len(rack_sizes)
    for _ in range(min(replication_factor, int(sum(rack_sizes)))):
        _, rack = min((count, rack) for rack, count in enumerate(counts) if count < rack_sizes[rack])
        counts[rack] += 1
    return tuple(sorted(counts, reverse=True))


def even_shares(rack_sizes: Int64s, replication_factor: int) -> tuple[Int64s, Int64s]:
    """The fewest and the most replicas of one partition that an even spread puts into each rack, shape (racks,).

    The same spread as `even_spread`, rack by rack instead of sorted: a partition is spread evenly exactly if every rack
    holds between the two. Method: water-filling, in rounds of one replica per rack until all are placed or all racks full. Bound: as many rounds as
    the fullest rack gets replicas. Test: tests/model/test_racks.py.
    """
    level, full = 0, int(rack_sizes.max(initial=0))
    while level < min(replication_factor, full) and int(np.minimum(rack_sizes, level + 1).sum()) <= replication_factor:
        level += 1
    fewest = np.minimum(rack_sizes, level)
    some_over = int(fewest.sum()) < replication_factor
    return fewest, np.where(some_over & (rack_sizes > level), level + 1, fewest)
