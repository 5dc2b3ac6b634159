"""Why a plan needs more batches than there are racks: the partitions that forbid to stop a whole rack, and what would help."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rackspan.audit import PartitionBatch, RackPolicy
from rackspan.model import NO_RACK, ClusterSnapshot, Int64s
from rackspan.reassign import ReassignmentRequest, plan, snapshot_after
from rackspan.restart.stopping import InSyncRows, marks, touched

NAMED: Final = 20

TOPICS_NAMED: Final = 3
"""Topics in a command; a plan for more is one for every topic."""

PARTITIONS_MOST: Final = 200_000
"""In a larger cluster no reassignment is tried: it would take longer than the plan of the restart."""


@dataclass(frozen=True, slots=True)
class ReassignmentGain:
    """A reassignment after which fewer batches are enough: its command, the replicas that it copies, the batches then."""

    command: str
    moves: int
    batches: int


@dataclass(frozen=True, slots=True)
class ForcingPartitions:
    """Partitions without which each rack could stop at once: the first by name, how many, of which topics."""

    partitions: tuple[str, ...]
    partition_count: int
    topics: tuple[str, ...]
    racks: int
    gain: ReassignmentGain | None = None


def forcing_partitions(
    batch: PartitionBatch, rows: InSyncRows, chosen: Int64s, ordered: Sequence[Int64s]
) -> ForcingPartitions | None:
    """The partitions that forbid to stop the chosen brokers of one rack together; None where a rack fewer gains nothing."""
    codes = batch.members.rack_map.rack_codes[chosen]
    racks = np.unique(codes[codes != NO_RACK])
    if len(ordered) <= len(racks):
        return None
    size = len(batch.members.rack_map.broker_ids)
    forbidding = np.zeros(len(batch.rows), dtype=np.bool_)
    for rack in racks.tolist():
        stopped = marks(size, chosen[codes == rack])
        reached = rows.take(touched(rows, stopped))
        forbidding[reached.row[reached.blocks(reached.left_without(stopped))]] = True
    found = np.flatnonzero(forbidding)
    if not len(found):
        return None
    names = [f"{batch.topic(row)}-{batch.rows.partition[row]}" for row in found[:NAMED].tolist()]
    topics = [batch.topics[code] for code in np.unique(batch.rows.topic[found]).tolist()]
    return ForcingPartitions(tuple(names), len(found), tuple(topics), len(racks))


def reassigned(
    snapshot: ClusterSnapshot, policy: RackPolicy, forcing: ForcingPartitions
) -> tuple[str, int, ClusterSnapshot] | None:
    """The command that reassigns the forcing topics, its moves, and the cluster afterwards; None if it moves nothing."""
    if len(snapshot.partitions) > PARTITIONS_MOST:
        return None
    few = len(forcing.topics) <= TOPICS_NAMED
    pattern = "|".join(re.escape(topic) for topic in forcing.topics) if few else None
    proposed = plan(snapshot, policy, ReassignmentRequest(topics=pattern))
    if not proposed.moves:
        return None
    command = "rackspan reassign plan" + (f" --topic {shlex.quote(pattern)}" if pattern is not None else "")
    return command, proposed.moves, snapshot_after(snapshot, proposed)
