"""The brokers of one snapshot: what each holds, and what its loss alone would do.

Pure: a batch of partitions in, values for the page out.
"""

import numpy as np

from rackspan.audit.batch import PartitionBatch
from rackspan.audit.loads import loads
from rackspan.model import (
    NO_BROKER,
    Bools,
    Int64s,
    count_in_row,
    distinct_racks,
)
from rackspan.report.data import BrokerRow


def broker_rows(batch: PartitionBatch) -> tuple[BrokerRow, ...]:
    """One row a listed broker, by id. Cost: a few passes over the replica columns, however many brokers there are."""
    rack_map = batch.members.rack_map
    held, brokers = loads(batch), len(rack_map.broker_ids)
    every = _per_broker(batch, np.asarray(batch.rows.replicas != NO_BROKER), brokers)
    in_sync = np.bincount(batch.isr_index[batch.isr_index >= 0], minlength=brokers)
    offline, refused = _if_lost(batch)
    racks = rack_map.rack_of
    return tuple(
        BrokerRow(
            broker=int(broker),
            rack=racks.get(int(broker)),
            fenced=not bool(batch.members.usable[at]),
            replicas=int(every[at]),
            out_of_sync=int(every[at] - in_sync[at]),
            leaders=int(held.leaders[at]),
            preferred=int(held.preferred[at]),
            size_bytes=int(held.bytes[at]),
            offline_if_lost=int(offline[at]),
            refused_if_lost=int(refused[at]),
        )
        for at, broker in enumerate(rack_map.broker_ids.tolist())
    )


def _per_broker(batch: PartitionBatch, counted: Bools, brokers: int) -> Int64s:
    index = batch.replica_index[counted]
    return np.bincount(index[index >= 0], minlength=brokers)


def _if_lost(batch: PartitionBatch) -> tuple[Int64s, Int64s]:
    """For each broker the partitions with a leader that would have none without it, and those left with too few in sync."""
    brokers = len(batch.members.rack_map.broker_ids)
    live = batch.isr_up
    online = batch.rows.leader != NO_BROKER
    left = count_in_row(live) - 1
    racks = np.where(live, batch.isr_racks, -1)
    spanned, required = distinct_racks(racks), batch.required.min_insync_racks
    offline, refused = np.zeros(brokers, dtype=np.int64), np.zeros(brokers, dtype=np.int64)
    for column in range(batch.isr_index.shape[1]):
        here = live[:, column] & online
        alone_in_rack = (racks[:, column] >= 0) & ((racks == racks[:, column][:, None]).sum(axis=1) == 1)
        too_few = (left < batch.min_isr) | ((required > 1) & (spanned - alone_in_rack < required))
        offline += np.bincount(batch.isr_index[here & (left == 0), column], minlength=brokers)
        refused += np.bincount(batch.isr_index[here & (left > 0) & too_few, column], minlength=brokers)
    return offline, refused
