"""The state of each partition in one word: offline, under-min-isr, under-min-racks, one-rack or ok.

Constraints: the words are the names of constraints, tested by the same functions; a partition that breaks several has the
worst. Goal: none. Method: the masks of constraints/partitions.py, in order of how much is already lost. Bound: a few passes
over the batch. Source: min.insync.racks ("UnderMinRackIsr"), and Kafka's own UnderMinIsr and OfflinePartitions. Test:
tests/audit/test_durability.py.
"""

from typing import Final

import numpy as np

from rackspan.audit.batch import PartitionBatch
from rackspan.audit.constraints.partitions import PARTITION_CONSTRAINTS
from rackspan.model.partitions import Bools, Int64s

ONE_RACK: Final = "one-rack"
OK: Final = "ok"

STATES: Final = ("offline", "under-min-isr", "under-min-racks", ONE_RACK, OK)
"""Worst first: no leader; acks=all refused by replicas; by racks; one rack away from loss; none of these."""

_BROKEN: Final = {constraint.name: constraint.broken for constraint in PARTITION_CONSTRAINTS}


def states(batch: PartitionBatch) -> Int64s:
    """The worst state of each partition, as its index in STATES. Shape (P,)."""
    broken = [_BROKEN[name](batch) for name in STATES if name in _BROKEN]
    return np.asarray(np.select([*broken, _in_one_rack(batch)], list(range(len(STATES) - 1)), len(STATES) - 1))


def _in_one_rack(batch: PartitionBatch) -> Bools:
    # An in-sync replica whose rack is unknown is no proof of a second rack, so it does not count as one.
    several = len(batch.members.rack_map.racks) > 1
    return np.asarray((batch.isr_rack_count <= 1) & several)
