"""The load of each broker: leaders, replicas and bytes. Loads of batches add up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from rackspan.audit.batch import ClusterMembers, PartitionBatch
from rackspan.audit.leader_racks import leader_choices
from rackspan.audit.policy import SURVIVE_CODES
from rackspan.model import Bools, Int32s, Int64s, RackMap, any_in_row, even_shares
from rackspan.model.partitions import listed_in

BELIEVED_BYTES_MAX: Final = 2**50
"""One PiB. No log is larger, and sums of larger sizes in a snapshot could overflow."""


@dataclass(frozen=True, slots=True, eq=False)
class BrokerLoads:
    """One entry a broker, in the order of `RackMap.broker_ids`; `by_survive[code]` have to survive the loss of that code in SURVIVE_CODES.

    `assigned`: all replicas that Kafka lists. The others are without those of diskless topics and without what is being removed.
    `preferred`: partitions whose first replica is here. `preferred_required`: those of them that no plan gives to another broker now.
    `leadable`: replicas here of all other partitions. `preferred_led`: partitions whose first replica is here, and that no
    election would bring here: led from here, being reassigned, or not in sync here. `failed`: replicas in a failed log directory;
    `failed_last`: those of them without which no replica is in sync. `bytes`: sizes of the
    replicas held, where known. `movable` and `movable_bytes`: replicas and their bytes without those of topics whose placement
    is left alone; of these `by_replication_factor[n]` partitions have n replicas. `largest_partition_bytes` is the one figure
    that takes the maximum, not the sum.
    """

    assigned: Int64s
    leaders: Int64s
    preferred: Int64s
    preferred_required: Int64s
    leadable: Int64s
    preferred_led: Int64s
    failed: Int64s
    failed_last: Int64s
    replicas: Int64s
    bytes: Int64s
    movable: Int64s
    movable_bytes: Int64s
    by_replication_factor: Int64s
    by_survive: Int64s
    largest_partition_bytes: int


def loads(batch: PartitionBatch) -> BrokerLoads:
    """The load that the partitions of one batch put on each broker."""
    brokers = len(batch.members.rack_map.broker_ids)
    assigned = _per_broker(batch.replica_index, brokers)
    batch = batch.judged
    replicas = np.where(batch.staying, batch.replica_index, -1)
    preferred = _first_staying(batch)
    size_bytes = np.clip(batch.rows.size_bytes, 0, BELIEVED_BYTES_MAX)
    # While a partition is being reassigned its preferred replica may be one that is still copied: no election is due.
    # Nor where it is not in sync, its log directory has failed, or nothing leads: the election would change nothing.
    electable = any_in_row(batch.isr_up & (batch.isr_index == preferred[:, None])) & (batch.rows.leader >= 0)
    led = (preferred == batch.leader_index) | batch.reassigning | ~electable
    required = _leaders_required(batch, preferred)
    held = _per_broker(replicas, brokers)
    # Of a million partitions no second copy is made where all may move.
    alone = batch.required.left_alone
    free = replicas, size_bytes, batch.replication_factor
    if alone.any():
        free = replicas[~alone], size_bytes[~alone], batch.replication_factor[~alone]
    movable, movable_bytes, factors = free
    return BrokerLoads(
        assigned=assigned,
        leaders=_per_broker(batch.leader_index, brokers),
        preferred=_per_broker(preferred, brokers),
        preferred_required=_per_broker(preferred[required], brokers),
        leadable=held - _per_broker(replicas[required], brokers),
        preferred_led=_per_broker(np.where(led, preferred, -1), brokers),
        failed=_per_broker(np.where(batch.on_failed_log_dir, batch.replica_index, -1).ravel(), brokers),
        failed_last=_per_broker(np.where(_failed_last(batch), batch.replica_index, -1).ravel(), brokers),
        replicas=held,
        bytes=_bytes_per_broker(replicas, size_bytes, brokers),
        movable=_per_broker(movable, brokers),
        movable_bytes=_bytes_per_broker(movable, movable_bytes, brokers),
        by_replication_factor=np.bincount(factors),
        by_survive=np.bincount(batch.required.survive, minlength=len(SURVIVE_CODES)),
        largest_partition_bytes=int(size_bytes.max(initial=0)),
    )


def summed_loads(parts: Sequence[BrokerLoads]) -> BrokerLoads:
    """The load of partitions that were counted in parts, of at least one batch."""
    columns = {}
    for name in (field.name for field in fields(BrokerLoads) if field.name != LARGEST):
        counts = [getattr(part, name) for part in parts]
        total = np.zeros(max(map(len, counts)), dtype=np.int64)
        for count in counts:
            total[: len(count)] += count
        columns[name] = total
    return BrokerLoads(**columns, largest_partition_bytes=max(part.largest_partition_bytes for part in parts))


LARGEST: Final = "largest_partition_bytes"
"""The only field that takes the largest figure; all others are summed."""


def replica_bound(
    rack_map: RackMap,
    by_replication_factor: Int64s,
    shares: Callable[[Int64s, int], tuple[Int64s, Int64s]] = even_shares,
) -> int:
    """The least possible maximum of replicas on one broker when every partition is spread as evenly as racks allow.

    Constraints: each partition is spread over racks as evenly as their sizes allow, or as other `shares` say: from sizes
        and replication factor to the fewest and the most replicas of a partition in each rack. Goal: the least maximum.
    Method: water-filling. A partition of n replicas puts between floor and ceil of its share into each rack; the
        bound is the smallest t at which racks of s brokers, filled to t each but never below their floors or above their
        ceilings, hold all replicas.
    Bound: log2(replicas) steps of one pass over the racks.
    Source: our own. Tests: placements that reach it (tests/placement/balanced), and brute force on small clusters
        (tests/audit/test_loads.py).
    """
    sizes = rack_map.sizes
    least, most = np.zeros(len(sizes), dtype=np.int64), np.zeros(len(sizes), dtype=np.int64)
    total = 0
    for factor in np.flatnonzero(by_replication_factor).tolist():
        partitions = int(by_replication_factor[factor])
        floor, ceil = shares(sizes, factor)
        least += partitions * floor
        most += partitions * ceil
        total += partitions * min(factor, int(sizes.sum()))
    # A floor above the level means that some broker of that rack must hold more.
    floors = -(-least // sizes) if len(sizes) else least
    return max(fill_level(sizes, least, most, total), int(floors.max(initial=0)))


def fill_level(sizes: Int64s, least: Int64s, most: Int64s, total: int) -> int:
    """The smallest t at which groups of so many brokers, filled to t each but never below `least` or above `most`, hold `total`.

    Shapes (groups,). Bound: log2(total) steps of one pass over the groups.
    """
    low, high = 0, max(total, 1)
    while low < high:
        middle = (low + high) // 2
        fits = np.minimum(np.maximum(middle * sizes, least), most).sum() >= total
        low, high = (low, middle) if fits else (middle + 1, high)
    return low


def even_leaders(members: ClusterMembers, loads: BrokerLoads) -> Int64s:
    """How many partitions each broker prefers to lead once a plan has reordered replica lists. Shape (B,), 0 for excluded ones.

    Constraints: a leader that no plan moves stays; a broker leads what it holds, and gets nothing new while it is down.
    Goal: the least maximum of what can move. Method: water-filling above the leaders that stay.
    Bound: exact where each leader may move to every broker with a replica left to lead; other replica sets can keep a plan
        above it. Test: brute force on small clusters (tests/audit/test_loads_of_leaders.py).
    """
    most = np.where(members.receiving, loads.preferred_required + loads.leadable, loads.preferred)
    least, most, total = (np.where(members.excluded, 0, of) for of in (loads.preferred_required, most, loads.preferred))
    level = fill_level(np.ones(len(least), dtype=np.int64), least, most, int(total.sum()))
    return np.asarray(np.minimum(np.maximum(level, least), most))


def _failed_last(batch: PartitionBatch) -> Bools:
    """Which replicas are in a failed log directory, of partitions of which no replica in sync is up. Shape as `replicas`.

    If the ISR is empty, any of them may be the last that was in sync.
    """
    none_up = ~any_in_row(batch.isr_up)
    was_in_sync = listed_in(batch.rows.replicas, batch.rows.isr) | (batch.isr_size == 0)[:, None]
    return np.asarray(batch.on_failed_log_dir & was_in_sync & none_up[:, None])


def _leaders_required(batch: PartitionBatch, preferred: Int32s) -> Bools:
    """Partitions whose preferred leader no plan changes by reordering replicas. Shape (P,).

    Their placement is left alone, `leader.racks` decides, they are being reassigned, nothing leads them, a broker is not
    listed, or no other replica is on a broker that can get new leaders.
    """
    rows, _ = leader_choices(batch)
    other = batch.staying & (batch.replica_index != preferred[:, None])
    able = other & np.append(batch.members.receiving, False)[batch.replica_index]
    unlisted = batch.staying & (batch.replica_index < 0)
    required = (
        batch.required.left_alone | batch.reassigning | batch.leaderless | any_in_row(unlisted) | ~any_in_row(able)
    )
    required[rows] = True
    return np.asarray(required)


def _first_staying(batch: PartitionBatch) -> Int32s:
    """Index of each partition's preferred leader: its first replica that is not being removed."""
    if not len(batch.rows):
        return np.empty(0, dtype=np.int32)
    first = batch.staying.argmax(axis=1)[:, None]
    chosen = np.take_along_axis(batch.replica_index, first, axis=1)[:, 0]
    return np.where(any_in_row(batch.staying), chosen, np.int32(-1))


def _per_broker(index: Int32s, brokers: int) -> Int64s:
    known: Int32s = index[index >= 0]
    return np.bincount(known, minlength=brokers)


def _bytes_per_broker(replicas: Int32s, size_bytes: Int64s, brokers: int) -> Int64s:
    # Column by column with integers: a float bincount would lose bytes beyond 2^53.
    held = np.zeros(brokers, dtype=np.int64)
    for column in replicas.T:
        on: Bools = column >= 0
        np.add.at(held, column[on], size_bytes[on])
    return held
