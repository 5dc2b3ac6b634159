"""What a plan costs in safety: partitions that would survive less of the loss of one rack than they do now."""

from dataclasses import dataclass

import numpy as np

from rackspan.audit import RackPolicy, effective_min_isr, requirements
from rackspan.model import (
    NO_BROKER,
    Bools,
    ClusterSnapshot,
    Int32s,
    Int64s,
    RackMap,
    counts_descending,
    left_without_fullest,
    lengths,
    rack_map,
)


@dataclass(frozen=True, slots=True, eq=False)
class PlacementSafety:
    """How a placement survives the loss of one rack. Shapes (P,).

    `racks`: distinct racks of the replicas. `left`: replicas left without the fullest of them. `writable`: enough are left for min.insync.replicas.
    """

    racks: Int64s
    left: Int64s
    writable: Bools

    def take(self, rows: Int64s) -> "PlacementSafety":
        return PlacementSafety(self.racks[rows], self.left[rows], self.writable[rows])


def placement_safety(rack_map: RackMap, replicas: Int32s, min_insync_replicas: Int64s) -> PlacementSafety:
    """`replicas` (P, width): broker ids, NO_BROKER for padding. `min_insync_replicas` (P,)."""
    counts = counts_descending(rack_map.codes(replicas))
    left = left_without_fullest(counts)
    required = effective_min_isr(min_insync_replicas, lengths(replicas))
    return PlacementSafety(np.count_nonzero(counts, axis=1), left, np.asarray(left >= required))


def safety_of_rows(
    snapshot: ClusterSnapshot, policy: RackPolicy, rows: Int64s, replicas: Int32s | None = None
) -> PlacementSafety:
    """The safety of partitions of a snapshot by row: on the replicas that they have, or on `replicas` (len(rows), width)."""
    if replicas is None:
        now = snapshot.partitions
        replicas = staying_replicas(now.replicas[rows], now.removing_replicas[rows])
    required = requirements(snapshot.topics, policy).of(snapshot.partitions.topic[rows])
    return placement_safety(rack_map(snapshot.brokers, policy.unracked), replicas, required.min_insync_replicas)


def less_safe(before: PlacementSafety, after: PlacementSafety) -> Bools:
    """Partitions that end on fewer racks, or that stop to accept acks=all where they accept it now. Shape (P,)."""
    return np.asarray((after.racks < before.racks) | (before.writable & ~after.writable))


def staying_replicas(replicas: Int32s, removing_replicas: Int32s) -> Int32s:
    """The replicas that no reassignment is removing; NO_BROKER in the place of the others. Shape as `replicas`."""
    staying = replicas.copy()
    for removed in removing_replicas.T:
        staying[replicas == removed[:, None]] = NO_BROKER
    return staying


def words(before: PlacementSafety, after: PlacementSafety) -> str:
    """What these partitions lose: `in 1 rack instead of 3; the loss of one rack would then take 6 offline`.

    All of them are less safe. Racks are counted together: the fewest and the most. For one partition its harm is not
    counted.
    """
    fewer = after.racks < before.racks
    parts = []
    if fewer.any():
        noun = "rack" if int(after.racks[fewer].max()) == 1 else "racks"
        parts.append(f"in {_range(after.racks[fewer])} {noun} instead of {_range(before.racks[fewer])}")
    offline = int(np.count_nonzero((before.left > 0) & (after.left == 0)))
    refused = int(np.count_nonzero(before.writable & ~after.writable & (after.left > 0)))
    alone = len(before.racks) == 1
    harms = [
        *([f"take {'it' if alone else offline} offline"] if offline else []),
        *([f"stop acks=all on {'it' if alone else refused}"] if refused else []),
    ]
    lost = f"the loss of one rack would {'then ' if parts else ''}{' and '.join(harms)}"
    if not parts:
        return f"so that {lost}"
    return "; ".join([*parts, *([lost] if harms else [])])


def _range(numbers: Int64s) -> str:
    low, high = int(numbers.min()), int(numbers.max())
    return str(low) if low == high else f"{low} to {high}"
