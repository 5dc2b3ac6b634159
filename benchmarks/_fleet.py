"""A warehouse of many snapshots of one cluster, for benchmarks: sixty brokers in three racks, some replicas out of sync."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.audit import BROKERS, RACKS, REPLICATION_FACTOR, snapshot
from rackspan.model import ClusterSnapshot
from rackspan.model.ids import NO_BROKER
from rackspan.pipeline import Warehouse, create_warehouse
from rackspan.pipeline.landing.store import store_all

SNAPSHOTS = 100
TOGETHER = 10
MIN_INSYNC_RACKS = 2
FIRST = datetime(2026, 11, 1, tzinfo=UTC)

__all__ = ["BROKERS", "MIN_INSYNC_RACKS", "RACKS", "REPLICATION_FACTOR", "SNAPSHOTS", "fleet"]


def fleet(root: Path, partitions: int) -> Warehouse:
    """So many partition rows in a hundred snapshots, a quarter of an hour apart."""
    warehouse = create_warehouse(root)
    for first in range(0, SNAPSHOTS, TOGETHER):
        store_all([_snapshot(number, partitions // SNAPSHOTS) for number in range(first, first + TOGETHER)], warehouse)
    return warehouse


@cache
def _placed(partitions: int) -> ClusterSnapshot:
    return snapshot(partitions, misplaced=0.01, seed=0)


def _snapshot(number: int, partitions: int) -> ClusterSnapshot:
    """Of a thousand partitions ten have a replica in a wrong rack, twenty one out of sync, five two, and one no leader."""
    whole = _placed(partitions)
    rng = np.random.default_rng(number)
    isr = whole.partitions.isr.copy()
    isr[rng.random(partitions) < 0.02, 2] = NO_BROKER
    isr[rng.random(partitions) < 0.005, 1:] = NO_BROKER
    leader = np.where(rng.random(partitions) < 0.001, np.int32(NO_BROKER), whole.partitions.leader)
    columns = replace(whole.partitions, isr=isr, leader=leader)
    return replace(whole, taken_at=FIRST + timedelta(minutes=15 * number), partitions=columns)
